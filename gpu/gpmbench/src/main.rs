//! Measures GPM on this machine's GPU, or runs the same measurements, small, on the interpreter.

use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::{Context, Result};
use clap::Parser;
use nearpm_gpmbench::measure::{self, Bench, Scale};
use nearpm_gpmbench::report::Report;
use nearpm_gpmbench::soak;
use nearpm_gpu::{Device, Interpreted};

/// Measures persistent memory of a GPU: streams, logs, key-value store, checkpoints, recovery.
#[derive(Parser)]
struct Arguments {
    /// Run on the interpreter, at small sizes: nothing is measured, times are predicted from counted transactions
    #[arg(long)]
    interpreted: bool,
    /// Number of the GPU
    #[arg(long, default_value_t = 0)]
    card: usize,
    /// Only these measurements
    #[arg(long, value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(measure::NAMES))]
    only: Vec<String>,
    /// Processes that the soak kills; 0 for no soak
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// What the soak starts
    #[arg(long, hide = true)]
    soak_child: Option<PathBuf>,
    /// Repeats of each value
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// File for the results as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// File for the results as text, which go to standard output, too
    #[arg(long)]
    text: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("nearpm-gpmbench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn device(arguments: &Arguments) -> Result<(Rc<dyn Device>, Scale)> {
    if arguments.interpreted {
        return Ok((Rc::new(Interpreted::new(1 << 30)), Scale::Small));
    }
    #[cfg(feature = "cuda")]
    return Ok((Rc::new(nearpm_gpu::Cuda::open(arguments.card)?), Scale::Full));
    #[cfg(not(feature = "cuda"))]
    anyhow::bail!("built without the feature `cuda`: there is the interpreter (--interpreted)")
}

fn run(arguments: &Arguments) -> Result<bool> {
    let (device, scale) = device(arguments)?;
    if let Some(path) = &arguments.soak_child {
        return soak::child(device, path).map(|()| true);
    }
    let mut report = Report {
        device: device.name(),
        times: match arguments.interpreted {
            true => "predicted by the cost model from counted transactions; nothing was measured".to_owned(),
            false => "measured by events on the device".to_owned(),
        },
        memory: "memfd (tmpfs pages of 4 KiB), pinned".to_owned(),
        ..Report::default()
    };
    let bench = Bench { device, scale, repeats: arguments.repeats.max(1) };
    measure::run(&bench, &arguments.only, &mut report);
    if !arguments.interpreted && arguments.only.is_empty() && arguments.kills > 0 {
        soaked(arguments, &mut report);
    }
    let table = report.table();
    print!("{table}");
    if let Some(path) = &arguments.text {
        std::fs::write(path, &table).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(report.failures.is_empty())
}

/// Kills processes that use the GPU; what is wrong is in the report.
fn soaked(arguments: &Arguments, report: &mut Report) {
    let path = PathBuf::from(format!("/dev/shm/nearpm-soak-{}.region", std::process::id()));
    let outcome = std::env::current_exe().map_err(anyhow::Error::from).and_then(|program| {
        let command = || {
            let mut command = std::process::Command::new(&program);
            command.arg("--soak-child").arg(&path).arg("--card").arg(arguments.card.to_string());
            command
        };
        soak::soak(&command, &path, arguments.kills)
    });
    let _ = std::fs::remove_file(&path);
    match outcome {
        Ok(soaked) => {
            let group = "SIGKILL soak of gpKVS (shows recovery on hardware, not missing fences)";
            report.value(group, "kills, no violation", f64::from(soaked.kills), "", Some(">= 200"));
            report.value(group, "kills that left a batch to undo", f64::from(soaked.undone), "", None);
            report.value(group, "batches", f64::from(soaked.batches), "", None);
        }
        Err(error) => report.failures.push(format!("soak: {error:#}")),
    }
}
