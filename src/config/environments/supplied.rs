//! The variables that an agent may supply for a definition: those that it refers to, unless they decide what runs.

use std::collections::BTreeSet;

use crate::config::expand::{self, Reference, is_passed_on};
use crate::config::risky;
use crate::config::spec::{Definition, Launch, Sandbox, Stdio};

/// The names of these variables.
pub fn names(definition: &Definition) -> BTreeSet<String> {
    let launches = || [Some(&definition.spec.launch), definition.spec.fallback.as_ref()].into_iter().flatten();
    let deciding: BTreeSet<String> =
        launches().flat_map(decides).flat_map(expand::references_in).filter_map(variable).collect();
    let referred = launches().flat_map(expand::all_references).filter_map(variable);
    referred.filter(|name| is_harmless(name) && !deciding.contains(name)).collect()
}

/// Whether a variable with this name decides only what the definition uses it for.
pub fn is_harmless(name: &str) -> bool {
    let own = name.to_ascii_uppercase().starts_with("MCP_SIDECAR_");
    !own && !is_passed_on(name) && risky::effect(name).is_none()
}

/// The texts of a launch that decide which program runs, which code it loads, and which files are open to it.
fn decides(launch: &Launch) -> Vec<&str> {
    let Launch::Stdio(Stdio { command, args: _, env, env_file, cwd, inherit_env: _, sandbox }) = launch else {
        return Vec::new();
    };
    let loads_code = env.iter().filter(|(name, _)| risky::effect(name).is_some());
    let values = loads_code.filter_map(|(_, value)| value.as_ref());
    let opened = sandbox.iter().flat_map(Sandbox::paths);
    std::iter::once(command).chain(env_file).chain(cwd).chain(opened).chain(values).map(String::as_str).collect()
}

pub(super) fn variable(reference: Reference) -> Option<String> {
    match reference {
        Reference::Variable { name, .. } => Some(name),
        _ => None,
    }
}
