//! The built design, from which cards are made.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nearpm_verilate::{Error, Library, Source};

use super::card::RtlCard;
use crate::core::{CardCore, Medium};
use crate::ddr4::Config;
use crate::machine::Power;

/// The card's registers that software reads, of which those that change while no port does count
/// cycles and do nothing else: `hdl/tests/registers.rs` looks at their Verilog, and
/// `tests/tests/cosimulation.rs` compares whole cards with and without.
const COUNTERS: &str = "registers.r_";

/// How cards are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Clock of the card, in MHz.
    pub mhz: u64,
    /// The memory behind each of its memory ports.
    pub memory: Config,
    /// Where to write waveforms (VCD): the first power-up to this path, the n-th to `NAME.n.vcd`
    /// beside it.
    pub waveform: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options { mhz: 300, memory: Config::default(), waveform: None }
    }
}

/// A design that has been built once, and powers up as often as wanted.
pub struct RtlCards {
    library: Library,
    options: Options,
    power_ups: AtomicU32,
    /// Inputs beyond those of the card, and the values at which they are held.
    held: Vec<(String, u64)>,
    every_edge: bool,
}

impl RtlCards {
    /// Builds the Verilog text with module `top`, which has the ports of the card, or takes it from
    /// the cache.
    pub fn build(top: &str, verilog: &str, options: Options) -> Result<Self, Error> {
        let source = Source::new(top, verilog).with_trace(options.waveform.is_some()).with_idle_skipped(COUNTERS);
        Ok(RtlCards {
            library: Library::build(&source)?,
            options,
            power_ups: AtomicU32::new(0),
            held: Vec::new(),
            every_edge: false,
        })
    }

    /// The same cards, with an input that the design has beyond those of the card held at a value:
    /// what selects a planted fault.
    #[must_use]
    pub fn with_input(mut self, name: &str, value: u64) -> Self {
        self.held.retain(|(held, _)| held != name);
        self.held.push((name.into(), value));
        self
    }

    /// The same cards, of which no edge is skipped: what those that skip some are compared with.
    #[must_use]
    pub fn with_every_edge(self) -> Self {
        RtlCards { every_edge: true, ..self }
    }

    /// Makes a card and resets it.
    pub fn card(&self, medium: Medium) -> Result<RtlCard, Error> {
        let mut model = self.library.instance()?;
        let number = self.power_ups.fetch_add(1, Ordering::Relaxed);
        if let Some(path) = &self.options.waveform {
            model.open_trace(&numbered(path, number))?;
        }
        for (name, value) in &self.held {
            let port = model.port(name)?;
            model.set_u64(port, *value);
        }
        if self.every_edge {
            model.simulate_every_edge();
        }
        let Options { mhz, memory, waveform } = &self.options;
        RtlCard::new(model, *memory, medium, *mhz, waveform.is_some())
    }
}

impl Power for RtlCards {
    /// # Panics
    /// If the design lacks a port of the card, or the waveform cannot be written:
    /// [`RtlCards::card`] says so without a panic.
    fn power_up(&self, medium: Medium) -> Box<dyn CardCore> {
        match self.card(medium) {
            Ok(card) => Box::new(card),
            Err(error) => panic!("the card does not power up: {error}"),
        }
    }
}

/// `card.vcd`, `card.1.vcd`, `card.2.vcd` ...
fn numbered(path: &Path, number: u32) -> PathBuf {
    match number {
        0 => path.to_owned(),
        n => path.with_extension(format!("{n}.vcd")),
    }
}
