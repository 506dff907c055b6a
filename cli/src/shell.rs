//! What shells and `man` know of the program.

use std::io::stdout;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command};

/// What to complete for.
#[derive(Args)]
pub struct CompletionsArguments {
    /// The shell; the script goes to standard output
    shell: clap_complete::Shell,
}

/// Prints the script that completes commands and options of `nearpm`, which is this `program`, in a
/// shell.
pub fn completions(arguments: &CompletionsArguments, mut program: Command) {
    clap_complete::generate(arguments.shell, &mut program, "nearpm", &mut stdout());
}

/// Where to write.
#[derive(Args)]
pub struct ManualArguments {
    /// The folder, such as /usr/local/share/man/man1; it is made if it is not there
    folder: PathBuf,
}

/// Writes a manual page for each command: `nearpm.1`, `nearpm-pool.1`, `nearpm-pool-check.1`.
///
/// # Errors
/// What the system refuses.
pub fn manual(arguments: &ManualArguments, program: Command) -> Result<()> {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    clap_mangen::generate_to(program, folder)
        .with_context(|| format!("cannot write manual pages into {}", folder.display()))
}
