//! The `sandbox` of a program with absolute paths.

use std::path::PathBuf;

use super::{ExpandError, Values, resolve, text};
use crate::config::spec::Sandbox;

/// What a program may reach. Everything else is closed.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpandedSandbox {
    /// `None`: it may read every file.
    pub read: Option<Vec<PathBuf>>,
    pub write: Vec<PathBuf>,
    pub network: bool,
    /// Do not start the program if this machine cannot enforce this.
    pub required: bool,
}

/// Relative paths start at the folder that the program runs in.
pub(super) fn expand(sandbox: &Sandbox, values: &Values) -> Result<ExpandedSandbox, ExpandError> {
    let Sandbox { read, write, network, required } = sandbox;
    let paths = |written: &Vec<String>| -> Result<Vec<PathBuf>, ExpandError> {
        let path = |written: &String| Ok(resolve(&text(written, values)?, values.run_folder.as_deref(), values));
        written.iter().map(path).collect()
    };
    let read = read.as_ref().map(paths).transpose()?;
    Ok(ExpandedSandbox { read, write: paths(write)?, network: *network, required: *required })
}
