//! `mcp-sidecar log`: prints the end of the newest log file.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::Context as _;

use super::context::{Context, parse_number};
use super::{Status, print};
use crate::logging;
use crate::text::{mask, visible};

/// How much of the end of the file is read.
const MOST_BYTES: u64 = 4 << 20;
const LONGEST_LINE: usize = 10_000;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Show this many lines
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50, value_parser = parse_number::<usize>)]
    lines: usize,
    /// Print only the path of the file
    #[arg(long)]
    path: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let folder = context.paths()?.logs_dir();
    let file = logging::newest_file(&folder).with_context(|| {
        format!("no log file in {}; it is created when an editor or agent connects", folder.display())
    })?;
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
