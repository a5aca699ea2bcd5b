//! The front for editors, as an editor sees it.

mod diagnostics;
mod documents;
mod lifecycle;
mod stdio;
#[path = "../support/mod.rs"]
mod support;
