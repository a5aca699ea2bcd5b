//! The front for editors, as an editor sees it.

mod diagnostics;
mod documents;
mod lifecycle;
#[path = "../support/mod.rs"]
mod support;
