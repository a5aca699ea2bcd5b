//! Colors and the size of the terminal.

use std::io::IsTerminal;

use crate::protocol::types::Status;

/// Whether to use colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    colors: bool,
}

/// The color of a piece of text, by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Color {
    Plain,
    Heading,
    Good,
    Attention,
    Bad,
    SignIn,
    Dim,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub columns: usize,
    pub rows: usize,
}

impl Style {
    /// Colors if stdout is a terminal, unless `NO_COLOR` is set.
    pub fn of_stdout() -> Self {
        Self::of(&std::io::stdout())
    }

    pub fn of_stderr() -> Self {
        Self::of(&std::io::stderr())
    }

    pub fn plain() -> Self {
        Self { colors: false }
    }

    #[cfg(test)]
    pub fn colored() -> Self {
        Self { colors: true }
    }

    fn of(stream: &impl IsTerminal) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self { colors: !unwanted && stream.is_terminal() }
    }

    pub fn good(self, text: &str) -> String {
        self.paint(Color::Good, text)
    }

    pub fn paint(self, color: Color, text: &str) -> String {
        match color {
            Color::Plain => text.to_owned(),
            Color::Heading => self.ansi("1", text),
            Color::Good => self.ansi("32", text),
            Color::Attention => self.ansi("33", text),
            Color::Bad => self.ansi("31", text),
            Color::SignIn => self.ansi("35", text),
            Color::Dim => self.ansi("90", text),
        }
    }

    pub fn ansi(self, code: &str, text: &str) -> String {
        if self.colors && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

impl Color {
    /// The color of a server status.
    pub fn of_status(status: Status) -> Self {
        match status {
            Status::Connected => Self::Good,
            Status::Pending => Self::Attention,
            Status::Failed => Self::Bad,
            Status::NeedsAuth => Self::SignIn,
            Status::Disabled | Status::Stopped => Self::Dim,
        }
    }
}

/// The size of the terminal on stdout; `None` if stdout is not a terminal. Text is then not truncated.
pub(super) fn size() -> Option<Size> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let (columns, rows) = measured().filter(|(columns, _)| *columns > 0).unwrap_or((80, 24));
    Some(Size { columns, rows })
}

#[cfg(unix)]
fn measured() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some((size.ws_col.into(), size.ws_row.into()))
}

#[cfg(not(unix))]
fn measured() -> Option<(usize, usize)> {
    None
}
