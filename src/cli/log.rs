//! `mcp-sidecar log`: the end of the newest log file.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::Context as _;

use super::context::Context;
use super::{Status, print};
use crate::logging;
use crate::text::{mask, visible};

/// Enough for any number of lines that a person reads.
const MOST_BYTES: u64 = 4 << 20;
const LONGEST_LINE: usize = 10_000;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// How many lines
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    lines: usize,
    /// Only tell where the file is
    #[arg(long)]
    path: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let folder = context.paths()?.logs_dir();
    let file = logging::newest_file(&folder)
        .with_context(|| format!("no log yet in {}; it begins when an editor or agent connects", folder.display()))?;
    if arguments.path {
        print(&format!("{}\n", file.display()))?;
        return Ok(Status::Ok);
    }
    let text = end_of(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(arguments.lines);
    let mut shown = format!("==> {} <==\n", file.display());
    for line in lines.into_iter().skip(first) {
        shown.push_str(&visible(&mask(line), LONGEST_LINE));
        shown.push('\n');
    }
    print(&shown)?;
    Ok(Status::Ok)
}

fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
