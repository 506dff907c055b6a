//! What the programs `nearpm-gphashbench` and `nearpm gpu hash` do.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use nearpm_gpmbench::report::Report;
use nearpm_gpu::{Device, Interpreted};

use crate::measure::{self, Bench};

/// Arguments of a measurement.
#[derive(Args)]
pub struct BenchArguments {
    /// Run on the interpreter, at small sizes: nothing is measured, times are predicted from counted transactions
    #[arg(long)]
    interpreted: bool,
    /// Number of the GPU
    #[arg(long, default_value_t = 0)]
    card: usize,
    /// Only these measurements
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(measure::NAMES))]
    only: Vec<String>,
    /// Repeats of each value
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Slots of our table for each spare cell
    #[arg(long, default_value_t = 16)]
    spares: u32,
    /// File for the results as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// File for the results as text, which go to standard output, too
    #[arg(long)]
    text: Option<PathBuf>,
}

fn device(arguments: &BenchArguments) -> Result<Rc<dyn Device>> {
    if arguments.interpreted {
        return Ok(Rc::new(Interpreted::new(1 << 30)));
    }
    #[cfg(feature = "cuda")]
    return Ok(Rc::new(nearpm_gpu::Cuda::open(arguments.card)?));
    #[cfg(not(feature = "cuda"))]
    anyhow::bail!("built without the feature `cuda`: there is the interpreter (--interpreted)")
}

/// Measures. Whether everything went well.
///
/// # Errors
/// No device, or a file that cannot be written.
pub fn bench(arguments: &BenchArguments) -> Result<bool> {
    let device = device(arguments)?;
    let mut report = Report {
        device: device.name(),
        times: match arguments.interpreted {
            true => "predicted by the cost model from counted transactions; nothing was measured".to_owned(),
            false => "measured, by events on the device or by the wall".to_owned(),
        },
        memory: "memfd (tmpfs pages of 4 KiB), pinned".to_owned(),
        ..Report::default()
    };
    let bench = Bench {
        device,
        full: !arguments.interpreted,
        repeats: arguments.repeats.max(1),
        spares: arguments.spares.max(1),
    };
    measure::run(&bench, &arguments.only, &mut report);
    let table = report.table();
    print!("{table}");
    if let Some(path) = &arguments.text {
        write(path, &table)?;
    }
    if let Some(path) = &arguments.json {
        write(path, &serde_json::to_string_pretty(&report)?)?;
    }
    Ok(report.failures.is_empty())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
