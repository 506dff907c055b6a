//! `nearpm pool stats`.

use std::process::ExitCode;

use anyhow::Result;
use nearpm::check::Image;

use super::{Target, line, print_json};
use nearpm_text::{Table, grouped, size};

/// Runs the command.
pub fn command(target: &Target) -> Result<ExitCode> {
    let mut image = Image::open(&target.location)?;
    let log = image.info()?.log;
    let state = image.heap_state()?;
    if target.json {
        print_json(&serde_json::json!({ "heap": state, "log": log }))?;
        return Ok(ExitCode::SUCCESS);
    }
    line("objects", format_args!("{} ({})", grouped(state.objects), size(state.used_bytes)));
    line("whole chunks", format_args!("{} of them ({})", grouped(state.large_objects), size(state.large_bytes)));
    line("free", format_args!("{}, {} free chunks", size(state.free_bytes), grouped(state.free_chunks)));
    line("largest piece", size(state.largest_free_bytes));
    line("fragmentation", format_args!("{:.1} %", state.fragmentation * 100.0));
    line("log", format_args!("{} in {} segments, {} records wait", size(log.segment_bytes), log.segments, log.records));
    let mut table = Table::new(&["object bytes", "runs", "objects", "free places"]);
    for class in &state.classes {
        let cells = [class.object_bytes.into(), class.runs, class.objects, class.free];
        table.row(cells.map(grouped));
    }
    print!("\n{table}");
    Ok(ExitCode::SUCCESS)
}
