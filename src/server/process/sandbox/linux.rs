//! Landlock and the filter of system calls.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::{Abilities, Plan};

/// Devices that hold nothing of the user.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// System calls of the x32 interface have the same numbers with this bit.
const X32: i64 = 0x4000_0000;

pub fn abilities() -> Abilities {
    let strict = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    // Older versions let a program empty files outside of the sandbox.
    let landlock = strict().handle_access(AccessFs::from_all(ABI::V3)).and_then(Ruleset::create).is_ok();
    let landlock_signals = strict().scope(Scope::from_all(ABI::V6)).and_then(Ruleset::create).is_ok();
    Abilities { landlock, landlock_signals, filter: filter(false).is_ok(), bubblewrap: None }
}

pub fn run(arguments: Vec<OsString>) -> String {
    let mut arguments = arguments.into_iter();
    let plan = arguments.next().and_then(|plan| serde_json::from_str::<Plan>(plan.to_str()?).ok());
    let (Some(plan), Some(_), Some(program)) = (plan, arguments.next(), arguments.next()) else {
        return "this subcommand is for mcp-sidecar itself".to_owned();
    };
    if plan.landlock
        && let Err(error) = restrict_files(&plan)
    {
        return format!("Landlock: {error}");
    }
    // Rights of root bypass the sandbox. They do not come back: Landlock and the filter both forbid new ones.
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    if let Err(error) = set_capabilities(None, none) {
        return format!("capset: {error}");
    }
    let filtered =
        filter(plan.network).and_then(|filter| seccompiler::apply_filter(&filter).map_err(|e| e.to_string()));
    if let Err(error) = filtered {
        return format!("seccomp: {error}");
    }
    let error = Command::new(&program).args(arguments).exec();
    format!("cannot run {}: {error}", Path::new(&program).display())
}

fn restrict_files(plan: &Plan) -> Result<(), Box<dyn std::error::Error>> {
    let abi = ABI::V6;
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?;
    let everything = vec![PathBuf::from("/")];
    let readable = plan.read.as_ref().unwrap_or(&everything);
    let mut rules = rules;
    for path in readable {
        rules = rules.add_rule(rule(path, AccessFs::from_read(abi))?)?;
    }
    for path in &plan.write {
        rules = rules.add_rule(rule(path, AccessFs::from_all(abi))?)?;
    }
    for path in DEVICES.map(Path::new).into_iter().filter(|path| path.exists()) {
        rules = rules.add_rule(rule(path, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate)?)?;
    }
    rules.restrict_self()?;
    Ok(())
}

/// A file has fewer rights than a folder.
fn rule(path: &Path, access: BitFlags<AccessFs>) -> Result<PathBeneath<PathFd>, Box<dyn std::error::Error>> {
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(ABI::V6) };
    Ok(PathBeneath::new(PathFd::new(path)?, access))
}

/// Without the network, no socket can be created. With it, no Unix socket: these lead to programs outside of the sandbox,
/// such as Docker and D-Bus, which do what they are asked. `io_uring` could create sockets behind the filter.
fn filter(network: bool) -> Result<BpfProgram, String> {
    let sockets = match network {
        false => Vec::new(),
        true => {
            let other = |family: i32| {
                SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()))
            };
            let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(other);
            let conditions = families.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
            vec![SeccompRule::new(conditions).map_err(|error| error.to_string())?]
        }
    };
    let calls = [(libc::SYS_socket, sockets), (libc::SYS_io_uring_setup, Vec::new())];
    let both = calls.into_iter().flat_map(|(call, rules)| [(call, rules.clone()), (call | X32, rules)]);
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let denied = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    SeccompFilter::new(both.collect(), SeccompAction::Allow, denied, arch)
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())
}
