//! Language features of config files. Each is a pure function of the text, its tree and what the engine knows; places
//! are byte spans, and the front makes lines and columns of them.

pub mod diagnostics;
pub mod folding;
pub mod links;
pub mod symbols;
