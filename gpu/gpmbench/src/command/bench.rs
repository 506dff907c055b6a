//! `bench`: measures a GPU, or several, or tries the measurements out on the interpreter.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use nearpm_gpu::{Device, Interpreted};

use crate::measure::{self, Bench, Scale};
use crate::record;
use crate::report::Report;
use crate::soak;

/// What is no measurement, and can be asked for like one.
const SOAK: &str = "soak";

/// Arguments of a measurement.
#[derive(Args)]
pub struct BenchArguments {
    /// Run on the interpreter, at small sizes: nothing is measured, times are predicted from
    /// counted transactions
    #[arg(long)]
    interpreted: bool,
    /// Number of the GPU
    #[arg(long, default_value_t = 0)]
    card: usize,
    /// Numbers of several GPUs of this machine: logs of all of them under one commit record are
    /// measured, and nothing else
    #[arg(long, value_delimiter = ',')]
    cards: Vec<usize>,
    /// Only these measurements, or the soak
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(measure::NAMES.into_iter().chain([SOAK])))]
    only: Vec<String>,
    /// Processes that the soak kills; 0 for no soak
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// PTX of another library's hierarchical log, to be measured beside ours: kernels peer_create,
    /// peer_insert and peer_check
    #[arg(long)]
    peer_log: Option<PathBuf>,
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

/// The GPUs of `--cards`.
fn devices(arguments: &BenchArguments) -> Result<Vec<Rc<dyn Device>>> {
    anyhow::ensure!(arguments.cards.len() > 1, "--cards names two GPUs or more");
    if arguments.interpreted {
        return Ok(arguments.cards.iter().map(|_| Rc::new(Interpreted::new(1 << 28)) as Rc<dyn Device>).collect());
    }
    #[cfg(feature = "cuda")]
    return arguments.cards.iter().map(|&card| Ok(Rc::new(nearpm_gpu::Cuda::open(card)?) as Rc<dyn Device>)).collect();
    #[cfg(not(feature = "cuda"))]
    anyhow::bail!("built without the feature `cuda`: there is the interpreter (--interpreted)")
}

fn bench_several(arguments: &BenchArguments) -> Result<bool> {
    let devices = devices(arguments)?;
    let names: Vec<String> = devices.iter().map(|device| device.name()).collect();
    let mut report = empty_report(arguments, names.join(", "));
    if let Err(error) =
        measure::several::measure(&devices, !arguments.interpreted, arguments.repeats.max(1), &mut report)
    {
        report.failures.push(format!("several GPUs: {error:#}"));
    }
    tell(&report, arguments.text.as_deref(), arguments.json.as_deref())
}

fn empty_report(arguments: &BenchArguments, device: String) -> Report {
    Report {
        device,
        times: match arguments.interpreted {
            true => "predicted by the cost model from counted transactions; nothing was measured".to_owned(),
            false => "measured, by events on the device or by the wall".to_owned(),
        },
        memory: "memfd (tmpfs pages of 4 KiB), pinned".to_owned(),
        ..Report::default()
    }
}

fn device(arguments: &BenchArguments) -> Result<(Rc<dyn Device>, Scale)> {
    if arguments.interpreted {
        return Ok((Rc::new(Interpreted::new(1 << 30)), Scale::Small));
    }
    #[cfg(feature = "cuda")]
    return Ok((Rc::new(nearpm_gpu::Cuda::open(arguments.card)?), Scale::Full));
    #[cfg(not(feature = "cuda"))]
    anyhow::bail!("built without the feature `cuda`: there is the interpreter (--interpreted)")
}

/// Measures. Whether everything went well.
///
/// # Errors
/// No device, or a file that cannot be written.
pub fn bench(arguments: &BenchArguments, again: &[&str]) -> Result<bool> {
    if !arguments.cards.is_empty() {
        return bench_several(arguments);
    }
    let (device, scale) = device(arguments)?;
    if let Some(path) = &arguments.soak_child {
        return soak::child(device, path).map(|()| true);
    }
    // What cannot be written is known before an hour of measuring.
    for path in arguments.json.iter().chain(&arguments.text) {
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
        opened.with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut report = empty_report(arguments, device.name());
    let bench = Bench { device, scale, repeats: arguments.repeats.max(1) };
    let wanted = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    for name in measure::NAMES.into_iter().filter(|name| wanted(name)) {
        measure::run(&bench, name, &mut report);
        // What was measured stays, whatever ends the rest.
        if let Some(path) = &arguments.json {
            record::write(path, &report)?;
        }
    }
    if let Some(path) = &arguments.peer_log {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        if let Err(error) = measure::peer::measure(&bench, text, &mut report) {
            report.failures.push(format!("{}: {error:#}", path.display()));
        }
    }
    if !arguments.interpreted && wanted(SOAK) && arguments.kills > 0 {
        soaked(arguments, again, &mut report);
    }
    tell(&report, arguments.text.as_deref(), arguments.json.as_deref())
}

/// Prints the results as a table, and writes them into these files; says whether all of what was
/// done is right.
///
/// # Errors
/// A file that cannot be written.
pub fn tell(report: &Report, text: Option<&Path>, json: Option<&Path>) -> Result<bool> {
    let table = report.table();
    print!("{table}");
    if let Some(path) = text {
        write(path, &table)?;
    }
    if let Some(path) = json {
        write(path, &serde_json::to_string_pretty(report)?)?;
    }
    Ok(report.failures.is_empty())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Kills processes that use the GPU; what is wrong is in the report.
fn soaked(arguments: &BenchArguments, again: &[&str], report: &mut Report) {
    let path = PathBuf::from(format!("/dev/shm/nearpm-soak-{}.region", std::process::id()));
    let outcome = std::env::current_exe().map_err(anyhow::Error::from).and_then(|program| {
        let command = || {
            let mut command = std::process::Command::new(&program);
            command.args(again).arg("--soak-child").arg(&path).arg("--card").arg(arguments.card.to_string());
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
