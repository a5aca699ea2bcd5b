//! Makes untrusted text safe to show, and masks secrets in everything that is shown or stored.

mod difference;
pub(crate) mod edited;
mod escapes;
mod forms;
mod globs;
mod hidden;
mod known_secrets;
pub(crate) mod lines;
mod reasons;
mod secret;
mod surrogates;
mod visible;
mod wrap;

pub use difference::{changed_lines, line_difference};
pub use globs::{glob, glob_reason};
pub use hidden::{holds_hidden, show_hidden};
pub use reasons::{io_reason, json_reason, parse_url, regex_reason, toml_reason};
pub use secret::{MASK, Secret, holds_secret, looks_secret, mask, mask_value};
pub use surrogates::fix_surrogates;
pub use visible::{
    code_point, counted, escape_json, exact, find_deceptive, has_invisible, one_line, quoted, shell_quote, visible,
    visible_text, without_colors,
};
pub use wrap::wrap_words;
