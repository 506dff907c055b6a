//! `nearpm run`: operations, power cuts, recovery, and the check of what is left.

mod arguments;
mod json;
mod lives;
mod report;
mod without;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_workloads::ops::{self, Op};
use nearpm_workloads::{BTree, HashMap, Value};

pub use arguments::{
    CardChoice, CommitChoice, HostChoice, MixChoice, PostingChoice, RING_BYTES, RunArguments, Workload,
};
pub use lives::{End, Job};
pub use report::{After, Crash, During, Fall, Measured, Recovered, Report};

use nearpm_cards::{Cards, SimulatedCard, traced_rtl_cards, waves};

/// Runs the command.
pub fn command(arguments: &RunArguments) -> Result<()> {
    let started = Instant::now();
    let kind = match arguments.card {
        CardChoice::None => None,
        CardChoice::Model => Some(SimulatedCard::Model),
        CardChoice::Rtl => Some(SimulatedCard::Rtl),
    };
    let fits = kind.is_some() || arguments.memory_ports == MemoryPorts::One;
    ensure!(fits, "without a card there are no memory ports");
    let is_rtl = kind == Some(SimulatedCard::Rtl);
    ensure!(is_rtl || arguments.waves.is_none(), "only the RTL has signals to write: --waves goes with --card rtl");
    let cards = |kind: SimulatedCard| match &arguments.waves {
        None => kind.cards(arguments.memory_ports),
        Some(path) => Ok(Arc::new(traced_rtl_cards(arguments.memory_ports, &waves::written_to(path)?)?) as Cards),
    };
    let report = match (kind, arguments.workload) {
        (None, Workload::Btree) => without::run::<BTree>(arguments),
        (None, Workload::Hashmap) => without::run::<HashMap>(arguments),
        (Some(kind), Workload::Btree) => Job::new(arguments, cards(kind)?).run::<BTree>(),
        (Some(kind), Workload::Hashmap) => Job::new(arguments, cards(kind)?).run::<HashMap>(),
    }?;
    if arguments.json {
        println!("{:#}", report.json());
    } else {
        print!("{report}");
    }
    // The cards are gone by now, and what they wrote is whole.
    if let Some(path) = arguments.waves.as_ref().filter(|path| waves::is_fst(path)) {
        waves::to_fst(path)?;
    }
    eprintln!("wall-clock time: {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// A bar on standard error.
pub fn bar(operations: usize, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:40} [{bar:30}] {human_pos}/{human_len} {eta}")
        .expect("the template is right")
        .progress_chars("=> ");
    ProgressBar::new(operations as u64).with_style(style).with_message(what.to_string())
}

/// What a map holds after these operations.
fn model_of(operations: &[Op]) -> BTreeMap<u64, Value> {
    let mut model = BTreeMap::new();
    operations.iter().for_each(|op| ops::apply(&mut model, op));
    model
}
