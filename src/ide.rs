//! Language features for config files. Each is a pure function of the text, its tree and the state of the engine.
//! Positions are byte spans; the front end converts them to lines and columns.

pub mod actions;
pub mod completion;
pub mod config_view;
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
pub mod occurrences;
pub mod references;
pub mod rename;
pub mod save_preview;
pub mod selection_range;
pub mod settings_file;
pub mod symbols;
#[cfg(test)]
mod tests;
pub mod user_actions;
pub mod value_docs;
