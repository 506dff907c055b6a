//! `nearpm pool info`.

use std::process::ExitCode;

use anyhow::Result;
use nearpm::check::{Image, Info};

use super::{Target, line, print_json};
use crate::table::{Table, grouped, size};

/// Runs the command.
pub fn command(target: &Target) -> Result<ExitCode> {
    let info = Image::open(&target.location)?.info()?;
    if target.json {
        print_json(&info)?;
    } else {
        print(&info);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(info: &Info) {
    line("format", info.version);
    line("identifier", format_args!("{:#010x}", info.id));
    line("size", format_args!("{} ({} bytes)", size(info.bytes), grouped(info.bytes)));
    if info.file_bytes != info.bytes {
        line("file", format_args!("{} bytes, more than the pool", grouped(info.file_bytes)));
    }
    line("log rings", format_args!("{} of {}, {} used", info.lanes, size(info.ring_bytes.into()), info.log.rings_used));
    line("closed", if info.closed { "in order, or never open for direct use" } else { "no: open it, or recover it" });
    let log = info.log;
    line("log segments", format_args!("{} ({}), {} records wait", log.segments, size(log.segment_bytes), log.records));
    match info.recovery {
        Some(found) => line(
            "recovery",
            format_args!("would undo {}, redo {}, write {}", found.undone, found.redone, size(found.bytes)),
        ),
        None => line("recovery", "damage is in its way: see nearpm pool check"),
    }
    if let (Some(root), Some(used), Some(free)) = (info.root, info.used_bytes, info.free_bytes) {
        line("root", if root == 0 { "none".to_owned() } else { format!("{root:#x}") });
        line("heap", format_args!("{} used, {} free", size(used), size(free)));
    }
    let mut table = Table::new(&["part", "offset", "bytes"]);
    for region in &info.regions {
        table.row([region.name.to_owned(), format!("{:#x}", region.offset), grouped(region.bytes)]);
    }
    print!("\n{table}");
}
