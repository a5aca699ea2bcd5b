//! Makes untrusted text safe to show, and masks secrets in everything that is shown or stored.

mod escapes;
mod forms;
pub mod lines;
mod prose;
mod secret;
mod surrogates;
mod visible;

pub use prose::{clean_prose, prose_has_invisible};
pub use secret::{MASK, Secret, holds_secret, looks_secret, mask, mask_value};
pub use surrogates::fix_surrogates;
pub use visible::{has_invisible, one_line, shell_quote, strip_invisible, visible};
