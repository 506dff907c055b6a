//! `nearpm figures`: latency and throughput of the card itself.

use anyhow::Result;
use clap::Args;
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::bench::provisioned;
use nearpm_sim::core::CardCore;
use nearpm_sim::figures::{self, POOL};
use nearpm_sim::machine::Power;
use nearpm_sim::model::{self, Kind, ModelCard};

use nearpm_cards::SimulatedCard;
use nearpm_cards::rtl_cards;

/// Clocks that are shown: closing 300 MHz on the VCU118 needs a vendor tool.
const CLOCKS_MHZ: [u64; 3] = [300, 250, 200];

/// Arguments of `nearpm figures`.
#[derive(Args, Clone, Debug)]
pub struct FiguresArguments {
    /// Card
    #[arg(long, value_enum, default_value = "rtl")]
    card: SimulatedCard,
    /// Memory ports of the card, each with a DDR4 channel behind it: 1 or 2
    #[arg(long, default_value_t)]
    memory_ports: MemoryPorts,
}

/// Runs the command.
pub fn command(arguments: &FiguresArguments) -> Result<()> {
    let FiguresArguments { card, memory_ports } = *arguments;
    card.check(memory_ports)?;
    let columns: Result<Vec<_>> = CLOCKS_MHZ
        .into_iter()
        .map(|mhz| {
            eprintln!("{}, {mhz} MHz", card.named_with(memory_ports));
            let medium = || provisioned((POOLS_BASE + POOL.bytes) as usize, nearpm_firmware::standard().bytes());
            Ok(match card {
                SimulatedCard::Model => figures::take(mhz, memory_ports, || {
                    let config = model::Config { card_mhz: mhz, memory: Kind::Cycle, ..model::Config::default() };
                    Box::new(ModelCard::new(config, medium())) as Box<dyn CardCore>
                }),
                SimulatedCard::Rtl => {
                    let cards = rtl_cards(mhz, memory_ports)?;
                    figures::take(mhz, memory_ports, || cards.power_up(medium()))
                }
            })
        })
        .collect();
    let columns = columns?;
    let origin = match (card, memory_ports) {
        (SimulatedCard::Model, _) => "transaction-level model",
        (SimulatedCard::Rtl, MemoryPorts::One) => "RTL cycles, DDR4 model",
        (SimulatedCard::Rtl, MemoryPorts::Two) => "RTL cycles, DDR4 model behind each of two memory ports",
    };
    print!("{}", figures::markdown(origin, &columns));
    for column in &columns {
        eprintln!("{} MHz: {:.2} million card cycles a second", column.mhz, column.simulated_cycles_per_s / 1e6);
    }
    Ok(())
}
