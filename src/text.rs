//! Foreign text made safe to show, and secrets kept out of everything that is shown or stored.

mod escapes;
mod foreign;
mod forms;
pub mod lines;
mod secret;
mod surrogates;
mod visible;

pub use foreign::{clean_words, words_hide_something};
pub use secret::{MASK, Secret, holds_secret, looks_secret, mask, mask_value};
pub use surrogates::whole;
pub use visible::{cleaned, hides_something, one_line, shell_word, visible};
