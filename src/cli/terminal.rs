//! Messages and questions for the user: printed on stderr, answered on stdin. Results go to stdout.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::server::process;
use crate::text::visible;

/// The longest line that is read.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Whether the terminal shows what the user types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Echo {
    On,
    Off,
}

/// Whether there is a user to ask.
pub(super) fn is_interactive() -> bool {
    let is_started_by_user = process::started_by(std::process::id()).is_none();
    is_started_by_user && io::stdin().is_terminal() && io::stderr().is_terminal()
}

pub(super) fn eprint(text: &str) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(text.as_bytes())?;
    stderr.flush()
}

/// Asks the user to open a page. Returns whether that was shown.
pub(super) fn show_page(url: &str) -> bool {
    eprint(&format!("open this page in your browser: {}\n", visible(url, 8_000))).is_ok()
}

/// Asks and waits for a line; `None` at the end of the input. Dropping the future restores the terminal.
pub(super) async fn ask(prompt: &str, echo: Echo) -> io::Result<Option<String>> {
    // Before the prompt, in case the user types immediately.
    let echo_off = (echo == Echo::Off).then(EchoOff::new).flatten();
    eprint(prompt)?;
    let answer = tokio::task::spawn_blocking(read_line).await.map_err(io::Error::other)?;
    if echo_off.is_some() {
        // The terminal did not show the Enter key either.
        eprint("\n")?;
    }
    answer
}

/// Asks for a decision. What was typed before the question was shown is not an answer to it.
pub(super) async fn ask_decision(prompt: &str) -> io::Result<Option<String>> {
    #[cfg(unix)]
    rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush).ok();
    ask(prompt, Echo::On).await
}

/// What to say if an answer is none of the letters that a question offers.
pub(super) const NO_SUCH_KEY: &str = "type one of the letters in brackets, then press Enter";

/// The answer if the user only presses Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preselected {
    Yes,
    No,
}

/// Asks a question about yes or no until it is answered. At the end of the input, the answer is no.
pub(super) async fn confirm(question: &str, preselected: Preselected) -> io::Result<bool> {
    let keys = if preselected == Preselected::Yes { "[Y/n]" } else { "[y/N]" };
    let prompt = format!("{question} {keys} ");
    loop {
        let Some(typed) = ask_decision(&prompt).await? else { return Ok(false) };
        match typed.trim().to_lowercase().as_str() {
            "" => return Ok(preselected == Preselected::Yes),
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}

fn read_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let mut stdin = io::Read::take(io::stdin().lock(), LONGEST_ANSWER);
    let read = stdin.read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned()))
}

/// The terminal does not show what the user types until this is dropped.
struct EchoOff {
    #[cfg(unix)]
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl EchoOff {
    fn new() -> Option<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent).ok()?;
        Some(Self { before })
    }
}

#[cfg(unix)]
impl Drop for EchoOff {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        tcsetattr(io::stdin(), OptionalActions::Now, &self.before).ok();
    }
}

#[cfg(not(unix))]
impl EchoOff {
    fn new() -> Option<Self> {
        None
    }
}
