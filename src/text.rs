//! Foreign text made safe to show, and secrets kept out of everything that is shown or stored.

mod forms;
pub mod lines;
mod secret;
mod visible;

pub use secret::{MASK, Secret, holds_secret, looks_secret, mask, mask_value};
pub use visible::{cleaned, hides_something, one_line, shell_word, visible};
