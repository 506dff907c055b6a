//! Runs the Verilated persist buffer beside the machine that defines it, on random events, and goes
//! on where its record ends: `persist_buffer_campaign [EVENTS [RECORD]]`.

use nearpm_hdl_bench::persist_buffer::{Record, run};
use std::path::PathBuf;
use std::process::ExitCode;

/// Events that are aimed at.
const EVENTS: u64 = 10_000_000;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let events = arguments.next().map_or(Ok(EVENTS), |events| events.parse());
    let record = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/results/persist-buffer.txt");
    let record = arguments.next().map_or_else(|| PathBuf::from(record), PathBuf::from);
    let Ok(events) = events else {
        eprintln!("persist_buffer_campaign [EVENTS [RECORD]]: the first is no number");
        return ExitCode::FAILURE;
    };
    let tell = |Record { seeds, counts }: Record| println!("{seeds} seeds: {counts:?}");
    match run(&record, events, tell) {
        Ok(record) => {
            tell(record);
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            eprintln!("{wrong}");
            ExitCode::FAILURE
        }
    }
}
