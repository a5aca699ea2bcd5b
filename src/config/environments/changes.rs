//! What another environment would change for a server that is running.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Environment;
use super::supplied::variable;
use crate::config::expand::{self, Values, is_inherited};
use crate::config::spec::{Definition, Launch, Stdio};

/// They differ between two windows of the same editor, and mean nothing to a server.
const OF_A_WINDOW: &str = "
    _ SHLVL COLUMNS LINES WINDOWID TMUX TMUX_PANE STY SSH_CLIENT SSH_CONNECTION SSH_TTY XDG_SESSION_ID NVIM NVIM_LOG_FILE VIM
    VIMRUNTIME MYVIMRC COLORTERM INVOCATION_ID JOURNAL_STREAM";
const OF_A_WINDOW_PREFIXES: &str =
    "VSCODE_ ELECTRON_ TERM_ NVIM_LISTEN MCP_SIDECAR_ KITTY_ ALACRITTY_ WEZTERM_ GHOSTTY_ DESKTOP_STARTUP";

/// The names of the variables that would change a definition if it started with `now` instead of `before`: those that it
/// refers to, PATH if its command becomes another program, and with `inheritEnv` all others. Searches for programs, so
/// run it on a blocking thread.
pub fn changes(definition: &Definition, before: &Environment, now: &Environment) -> Vec<String> {
    if before == now {
        return Vec::new();
    }
    let launches = || [Some(&definition.spec.launch), definition.spec.fallback.as_ref()].into_iter().flatten();
    let mut names: BTreeSet<String> = launches().flat_map(expand::references).filter_map(variable).collect();
    for launch in launches() {
        let Launch::Stdio(stdio) = launch else { continue };
        if stdio.inherit_env {
            let all = before.iter().chain(now.iter()).map(|(name, _)| name);
            names.extend(all.filter(|name| is_inherited(name) && !is_of_a_window(name)).cloned());
        } else if program(definition, stdio, before) != program(definition, stdio, now) {
            names.insert("PATH".to_owned());
        }
    }
    names.into_iter().filter(|name| before.get(name) != now.get(name)).collect()
}

/// The program of a command on the PATH. One with a folder, or on a PATH that the entry sets, is found without ours.
fn program(definition: &Definition, stdio: &Stdio, environment: &Environment) -> Option<PathBuf> {
    if stdio.env.contains_key("PATH") {
        return None;
    }
    let values = Values::of(definition, environment, None, None);
    let command =
        expand::text(&stdio.command, &values).ok().filter(|command| !command.contains(std::path::is_separator))?;
    which::which_in(command, environment.path(), definition.folder.as_deref().unwrap_or(Path::new("/"))).ok()
}

fn is_of_a_window(name: &str) -> bool {
    OF_A_WINDOW.split_whitespace().any(|known| known == name)
        || OF_A_WINDOW_PREFIXES.split_whitespace().any(|prefix| name.starts_with(prefix))
}
