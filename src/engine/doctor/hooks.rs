//! Whether the agents that are set up to ask about their own tools can do so, and have done so.

use std::collections::BTreeMap;
use std::path::Path;

use super::Check;
use crate::config::Loaded;
use crate::config::interop::Homes;
use crate::config::interop::hooks::{hook_programs, hooks_file, setup_name};
use crate::model::{HookAgent, Timestamp};
use crate::paths::read_file;

/// Settings of agents contain more than hooks.
const MAX_FILE: usize = 32 << 20;

/// One check for each agent with hooks, or with rules that need them. `answered` has the last answer to each agent.
pub fn check(loaded: &Loaded, homes: Option<&Homes>, answered: &BTreeMap<HookAgent, Timestamp>) -> Vec<Check> {
    let Some(homes) = homes else { return Vec::new() };
    HookAgent::ALL.into_iter().filter_map(|agent| check_agent(agent, loaded, homes, answered.get(&agent))).collect()
}

fn check_agent(agent: HookAgent, loaded: &Loaded, homes: &Homes, last: Option<&Timestamp>) -> Option<Check> {
    let file = hooks_file(agent, homes);
    let text = read_file(&file, MAX_FILE).ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok());
    let programs = text.map(|text| hook_programs(agent, &text)).unwrap_or_default();
    let name = format!("hooks of {}", agent.title());
    let setup = format!("run `mcp-sidecar setup {} --hooks`", setup_name(agent));
    if programs.is_empty() {
        let has_rules = loaded.config.agent_tools.iter().any(|rules| rules.agent == Some(agent));
        return has_rules
            .then(|| Check::bad(name, "not set up, so the rules under `agentTools` have no effect", setup));
    }
    let is_missing = |program: &&String| Path::new(program).is_absolute() && !Path::new(program).is_file();
    if let Some(missing) = programs.iter().find(is_missing) {
        return Some(Check::bad(name, format!("{} starts {missing}, which does not exist", file.display()), setup));
    }
    let last = match last {
        Some(last) => format!("last answer in this workspace: {last}"),
        None => "no answer in this workspace yet".to_owned(),
    };
    Some(Check::good(name, format!("{}; {last}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::interop::hooks::add_hooks;

    #[test]
    fn a_hook_whose_program_is_gone_and_a_rule_without_a_hook_fail() {
        let home = tempfile::tempdir().unwrap();
        let homes = Homes::under(home.path());
        let none = Loaded::default();
        assert_eq!(check(&none, Some(&homes), &BTreeMap::new()), []);
        let file = hooks_file(HookAgent::Codex, &homes);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, add_hooks(HookAgent::Codex, "", "/gone/mcp-sidecar").unwrap()).unwrap();
        let checks = check(&none, Some(&homes), &BTreeMap::new());
        assert!(
            matches!(checks.as_slice(), [only] if !only.ok && only.message.contains("/gone/mcp-sidecar")),
            "{checks:?}"
        );
        std::fs::write(&file, add_hooks(HookAgent::Codex, "", "mcp-sidecar").unwrap()).unwrap();
        let checks = check(&none, Some(&homes), &BTreeMap::new());
        assert!(
            matches!(checks.as_slice(), [only] if only.ok && only.message.ends_with("no answer in this workspace yet"))
        );
    }
}
