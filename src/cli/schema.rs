//! `mcp-sidecar schema`: the JSON Schema of mcp.json, for editors and other tools.

use super::{Status, print_json};
use crate::config::schema::json_schema;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {}

pub(super) fn run(_arguments: Arguments) -> anyhow::Result<Status> {
    print_json(&json_schema())
}
