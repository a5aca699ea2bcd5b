//! How text looks in a terminal: which colours it has, and how much room there is.

use std::io::IsTerminal;

/// Colours or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    colours: bool,
}

/// What a piece of text is, for the eye.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Heading,
    Good,
    Waiting,
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

impl Look {
    /// Colours for a terminal, unless NO_COLOR asks for none.
    pub fn of_stdout() -> Self {
        Self::of(&std::io::stdout())
    }

    pub fn of_stderr() -> Self {
        Self::of(&std::io::stderr())
    }

    pub fn plain() -> Self {
        Self { colours: false }
    }

    #[cfg(test)]
    pub fn coloured() -> Self {
        Self { colours: true }
    }

    fn of(stream: &impl IsTerminal) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self { colours: !unwanted && stream.is_terminal() }
    }

    pub fn good(self, text: &str) -> String {
        self.tone(Tone::Good, text)
    }

    pub fn tone(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Plain => text.to_owned(),
            Tone::Heading => self.paint("1", text),
            Tone::Good => self.paint("32", text),
            Tone::Waiting => self.paint("33", text),
            Tone::Bad => self.paint("31", text),
            Tone::SignIn => self.paint("35", text),
            Tone::Dim => self.paint("90", text),
        }
    }

    pub fn paint(self, colour: &str, text: &str) -> String {
        if self.colours && !text.is_empty() { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

impl Tone {
    /// The colour that a status has everywhere.
    pub fn of_status(status: &str) -> Self {
        match status {
            "connected" => Self::Good,
            "pending" => Self::Waiting,
            "failed" => Self::Bad,
            "needs-auth" => Self::SignIn,
            _ => Self::Dim,
        }
    }
}

/// The size of the terminal on stdout; `None` when it is none, and then nothing is cut.
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
