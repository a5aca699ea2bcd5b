//! Language features of config files. Each is a pure function of the text, its tree and what the engine knows; places
//! are byte spans, and the front makes lines and columns of them.

pub mod actions;
pub mod command;
pub mod completion;
pub mod definition;
pub mod diagnostics;
mod entry;
mod expected;
pub mod fixes;
#[cfg(test)]
mod fixture;
pub mod folding;
pub mod hints;
pub mod hover;
pub mod lenses;
pub mod links;
pub mod live;
pub mod markdown;
pub mod ordinary;
pub mod page;
pub mod references;
pub mod rename;
pub mod save;
pub mod selection;
pub mod symbols;
#[cfg(test)]
mod tests;
pub mod uses;
mod words;
