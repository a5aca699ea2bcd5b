//! The person at the terminal: told things on stderr, asked on stdin. Answers of programs stay alone on stdout.

use std::io::{self, BufRead, IsTerminal, Write};

/// Longer than anybody types in one line.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Whether what is typed can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Echo {
    On,
    Off,
}

/// Whether there is somebody to ask.
pub(super) fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

pub(super) fn say(text: &str) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(text.as_bytes())?;
    stderr.flush()
}

/// Asks and waits for a line; `None` at the end of input. Dropping the future leaves the terminal as it was.
pub(super) async fn ask(prompt: &str, echo: Echo) -> io::Result<Option<String>> {
    // Before the prompt: whoever types at once is not seen either.
    let silence = (echo == Echo::Off).then(Silence::begin).flatten();
    say(prompt)?;
    let answer = tokio::task::spawn_blocking(read_line).await.map_err(io::Error::other)?;
    if silence.is_some() {
        // The Enter was not shown either.
        say("\n")?;
    }
    answer
}

fn read_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let mut stdin = io::Read::take(io::stdin().lock(), LONGEST_ANSWER);
    let read = stdin.read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned()))
}

/// While it lives, the terminal does not show what is typed.
struct Silence {
    #[cfg(unix)]
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl Silence {
    fn begin() -> Option<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent).ok()?;
        Some(Self { before })
    }
}

#[cfg(unix)]
impl Drop for Silence {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        tcsetattr(io::stdin(), OptionalActions::Now, &self.before).ok();
    }
}

#[cfg(not(unix))]
impl Silence {
    fn begin() -> Option<Self> {
        None
    }
}
