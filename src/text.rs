//! Foreign text made safe to show, and secrets kept out of everything that is shown or stored.

mod secret;
mod visible;

pub use secret::{Secret, mask};
pub use visible::{one_line, visible};
