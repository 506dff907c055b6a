//! What is run for the coverage: programs and tests that simulate whole cards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use crate::built::program;
use crate::workspace;

/// What runs, with what it is there for.
pub const ALL: &[(&str, &str)] = &[
    (
        "the catalogue: every mechanism, conflicts, full queues, refusals, failed logs; power cuts, saves, replays",
        "target/release/every-cycle --stride 400 --deeper 0",
    ),
    (
        "the pins: random traffic over the whole space of addresses, other cards' messages, failing lines, the numbers of a long life, firmware and saves of others",
        "target/release/random-pins --memories 48",
    ),
];

/// Folder of the models that were built, with their Verilog.
pub fn models() -> PathBuf {
    let named = std::env::var_os("NEARPM_VERILATE_CACHE").filter(|folder| !folder.is_empty());
    named.map_or_else(|| workspace().join("target/verilated"), PathBuf::from)
}

/// Runs all of them; each leaves its counts in the folder, which is emptied before. `progress`
/// hears of each.
///
/// # Errors
/// The first that fails, with where its output is.
pub fn run(folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    for (number, (what, command)) in ALL.iter().enumerate() {
        progress(what);
        let path = folder.join(format!("{number}.log"));
        let log = fs::File::create(&path).with_context(|| format!("make {}", path.display()))?;
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let status = program(&words)?
            .current_dir(workspace())
            .env("NEARPM_COVERAGE", folder)
            .env("NEARPM_VERILATE_CACHE", models())
            .env_remove("NEARPM_THOROUGH")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .status()
            .with_context(|| format!("start {}", words[0]))?;
        ensure!(status.success(), "{what}: failed, see {}", path.display());
    }
    Ok(())
}
