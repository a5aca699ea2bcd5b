//! Prints the demo: numbered headings and indented lines.

use std::io::{self, Write};

use super::super::style::{Color, Style, size};
use crate::text::wrap_words;

/// Lines are not narrower than this.
const NARROWEST: usize = 24;

pub struct Out {
    stdout: io::Stdout,
    style: Style,
    step: usize,
}

impl Out {
    pub fn to_stdout() -> Self {
        Self { stdout: io::stdout(), style: Style::of_stdout(), step: 0 }
    }

    pub fn heading(&mut self, text: &str) -> anyhow::Result<()> {
        self.step += 1;
        let heading = self.paint(Color::Heading, &format!("{}. {text}", self.step));
        Ok(writeln!(self.stdout, "\n{heading}")?)
    }

    pub fn end(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.stdout, "\n{text}")?)
    }

    /// Something that the user or an agent does.
    pub fn act(&mut self, text: &str) -> anyhow::Result<()> {
        let arrow = self.paint(Color::Dim, "→");
        self.line(&format!("{arrow} {text}"))
    }

    pub fn line(&mut self, text: &str) -> anyhow::Result<()> {
        let room = size().map_or(usize::MAX, |size| size.columns.saturating_sub(3).max(NARROWEST));
        let lines: Vec<String> = text.lines().flat_map(|line| wrap_words(line, room)).collect();
        Ok(writeln!(self.stdout, "   {}", lines.join("\n   "))?)
    }

    pub fn paint(&self, color: Color, text: &str) -> String {
        self.style.paint(color, text)
    }
}
