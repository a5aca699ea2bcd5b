//! The user of the demo: a person at the terminal, or a script without one.

use std::io::{self, IsTerminal};

use super::super::terminal::{self, Echo};

#[derive(Debug, Clone, Copy)]
pub struct User {
    is_person: bool,
}

impl User {
    pub fn at_terminal() -> Self {
        Self { is_person: terminal::is_interactive() && io::stdout().is_terminal() }
    }

    pub fn is_person(self) -> bool {
        self.is_person
    }

    /// Waits until the user has read enough.
    pub async fn go_on(self) -> io::Result<()> {
        if self.is_person {
            terminal::ask_decision("   Press Enter to continue ").await?;
        }
        Ok(())
    }

    /// What the user types. Enter means `usual`, which is also the answer of the script.
    pub async fn value(self, prompt: &str, usual: &str) -> io::Result<String> {
        let typed = match self.is_person {
            true => terminal::ask(&format!("   {prompt} [{usual}]: "), Echo::On).await?,
            false => None,
        };
        Ok(typed.map(|typed| typed.trim().to_owned()).filter(|typed| !typed.is_empty()).unwrap_or(usual.to_owned()))
    }

    /// The choice of the user: one of the keys. Enter decides nothing. At the end of the input, the last key counts.
    pub async fn choice<'a>(self, keys: &[(&'a str, &str)], scripted: &'a str) -> io::Result<&'a str> {
        if !self.is_person {
            return Ok(scripted);
        }
        let shown: Vec<String> = keys.iter().map(|(key, label)| format!("[{key}] {label}")).collect();
        loop {
            let Some(typed) = terminal::ask_decision(&format!("   {}: ", shown.join("  "))).await? else {
                return Ok(keys.last().map_or(scripted, |(key, _)| *key));
            };
            if let Some((key, _)) = keys.iter().find(|(key, _)| *key == typed.trim().to_lowercase()) {
                return Ok(*key);
            }
            terminal::eprint(&format!("   {}\n", terminal::NO_SUCH_KEY))?;
        }
    }
}
