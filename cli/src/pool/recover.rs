//! `nearpm pool recover`.

use std::process::ExitCode;

use anyhow::Result;
use nearpm::{Survives, check};

use super::{Target, line, print_json};

/// Runs the command.
pub fn command(target: &Target) -> Result<ExitCode> {
    let recovery = check::recover_file(&target.location, Survives::PowerCut)?;
    if target.json {
        print_json(&recovery)?;
    } else {
        line("undone", recovery.undone);
        line("redone", recovery.redone);
        line("torn", recovery.torn);
        line("bytes written", recovery.bytes);
    }
    Ok(ExitCode::SUCCESS)
}
