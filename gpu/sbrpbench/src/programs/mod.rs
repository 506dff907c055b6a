//! The six programs (Table 2): what they store, how they recover, and what has to be found
//! afterwards.

mod hm;
mod kvs;
mod mq;
mod red;
mod scan;
mod srad;

use anyhow::{Result, bail};

use crate::device::Device;

/// How large a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// For crash campaigns: some thousand stores.
    Tiny,
    /// A tenth of the paper's, roughly.
    Small,
    /// As in Table 2.
    Paper,
}

impl Size {
    /// All names.
    pub const NAMES: [&str; 3] = ["tiny", "small", "paper"];

    /// Of its name.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "tiny" => Ok(Size::Tiny),
            "small" => Ok(Size::Small),
            "paper" => Ok(Size::Paper),
            _ => bail!("no size {name}: there are {}", Self::NAMES.join(", ")),
        }
    }

    /// One of three values.
    fn of<T>(self, tiny: T, small: T, paper: T) -> T {
        match self {
            Size::Tiny => tiny,
            Size::Small => small,
            Size::Paper => paper,
        }
    }
}

/// A program with its sizes.
pub trait Program: Send + Sync {
    /// As in the paper's figures.
    fn name(&self) -> &'static str;
    /// Words of persistent memory before its first run.
    fn image(&self) -> Vec<u32>;
    /// Runs it to its end.
    ///
    /// # Errors
    /// A kernel did not come to its end.
    fn run(&self, device: &mut dyn Device) -> Result<()>;
    /// Recovers after a crash.
    ///
    /// # Errors
    /// A kernel did not come to its end.
    fn recover(&self, device: &mut dyn Device) -> Result<()>;
    /// What persistent memory has to hold after [`Program::run`].
    ///
    /// # Errors
    /// What is wrong in it.
    fn check_done(&self, image: &[u32]) -> Result<()>;
    /// What it has to hold after a crash and [`Program::recover`].
    ///
    /// # Errors
    /// What is wrong in it.
    fn check_recovered(&self, image: &[u32]) -> Result<()>;
    /// Makes of the image of a whole run that of the crash whose recovery takes longest.
    fn crash_late(&self, image: &mut [u32]);
}

/// The names, in the order of the paper's figures.
pub const NAMES: [&str; 6] = ["gpkvs", "hm", "srad", "red", "mq", "scan"];

/// A program of a name.
///
/// # Errors
/// There is none of that name.
pub fn program(name: &str, size: Size) -> Result<Box<dyn Program>> {
    Ok(match name {
        "gpkvs" => Box::new(kvs::Kvs::new(size)),
        "hm" => Box::new(hm::Hm::new(size)),
        "srad" => Box::new(srad::Srad::new(size)),
        "red" => Box::new(red::Red::new(size)),
        "mq" => Box::new(mq::Mq::new(size)),
        "scan" => Box::new(scan::Scan::new(size)),
        _ => bail!("no program {name}: there are {}", NAMES.join(", ")),
    })
}

/// All six.
///
/// # Errors
/// None: each name has its program.
pub fn all(size: Size) -> Result<Vec<Box<dyn Program>>> {
    NAMES.iter().map(|name| program(name, size)).collect()
}

/// What a word of PM holds that was not stored yet (`SBRP_EMPTY`).
const EMPTY: u32 = 0x8000_0000;

/// The kernels' hash (`sbrp_mix`).
fn mix(x: u32) -> u32 {
    let x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    let x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

/// The kernels' seal (`sbrp_seal`).
fn seal(batch: u32, [slot, key, value]: [u32; 3]) -> u32 {
    mix(mix(mix(batch ^ 0x5eb9).wrapping_add(slot)).wrapping_add(key)).wrapping_add(value)
}

/// Small integers that differ from [`EMPTY`] also in sums.
fn input(count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| mix(i ^ 0x51ab) % 100).collect()
}

/// Says of the first place where two lists differ what is there.
fn same(what: &str, found: &[u32], expected: &[u32]) -> Result<()> {
    anyhow::ensure!(found.len() == expected.len(), "{what}: {} words for {}", found.len(), expected.len());
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        Some(at) => bail!("{what}: word {at} is {:#x}, should be {:#x}", found[at], expected[at]),
        None => Ok(()),
    }
}
