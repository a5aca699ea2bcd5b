//! The commands of `workspace/executeCommand`.

/// Every command, as listed in `executeCommandProvider.commands`.
pub const NAMES: &[&str] = &[];
