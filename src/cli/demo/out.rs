//! How the demo looks in a terminal.

use std::io::{self, IsTerminal, Write};

#[derive(Clone, Copy)]
pub enum Color {
    Red,
    Yellow,
    Green,
    Grey,
}

/// Prints for a person: colours only on a terminal that wants them.
pub struct Out {
    stdout: io::Stdout,
    colors: bool,
    step: usize,
}

impl Out {
    pub fn to_stdout() -> Self {
        let stdout = io::stdout();
        let colors = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { stdout, colors, step: 0 }
    }

    pub fn heading(&mut self, text: &str) -> anyhow::Result<()> {
        self.step += 1;
        let heading = format!("{}. {text}", self.step);
        let heading = if self.colors { format!("\x1b[1m{heading}\x1b[0m") } else { heading };
        Ok(writeln!(self.stdout, "\n{heading}")?)
    }

    pub fn end(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.stdout, "\n{text}")?)
    }

    /// What the person in front of the editor does.
    pub fn act(&mut self, text: &str) -> anyhow::Result<()> {
        let arrow = self.paint(Color::Grey, "→");
        self.line(&format!("{arrow} {text}"))
    }

    pub fn line(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.stdout, "   {text}")?)
    }

    pub fn paint(&self, color: Color, text: &str) -> String {
        let code = match color {
            Color::Red => 31,
            Color::Green => 32,
            Color::Yellow => 33,
            Color::Grey => 90,
        };
        if self.colors { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
