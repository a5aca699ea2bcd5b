//! Language features of config files. Each is a pure function of the text, its tree and what the engine knows; places
//! are byte spans, and the front makes lines and columns of them.

pub mod completion;
pub mod definition;
pub mod diagnostics;
mod expected;
#[cfg(test)]
mod fixture;
pub mod folding;
pub mod hover;
pub mod links;
mod markdown;
pub mod page;
pub mod references;
pub mod rename;
pub mod selection;
pub mod symbols;
pub mod uses;
mod words;
