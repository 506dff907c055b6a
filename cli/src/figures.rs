//! `nearpm figures`: latency and throughput of the card itself.

use anyhow::Result;
use clap::Args;
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_sim::bench::provisioned;
use nearpm_sim::core::CardCore;
use nearpm_sim::figures::{self, POOL};
use nearpm_sim::machine::Power;
use nearpm_sim::model::{self, Kind, ModelCard};

use crate::hardware::rtl_cards;
use crate::rig::CardKind;

/// Clocks that are shown: closing 300 MHz on the VCU118 needs a vendor tool.
const CLOCKS_MHZ: [u64; 3] = [300, 250, 200];

/// Arguments of `nearpm figures`.
#[derive(Args, Clone, Debug)]
pub struct FiguresArguments {
    /// Card
    #[arg(long, value_enum, default_value = "rtl")]
    card: CardKind,
}

/// Runs the command.
pub fn command(arguments: &FiguresArguments) -> Result<()> {
    let columns: Result<Vec<_>> = CLOCKS_MHZ
        .into_iter()
        .map(|mhz| {
            eprintln!("{}, {mhz} MHz", arguments.card.name());
            let medium = || provisioned((POOLS_BASE + POOL.bytes) as usize, nearpm_firmware::standard().bytes());
            Ok(match arguments.card {
                CardKind::Model => figures::take(mhz, || {
                    let config = model::Config { card_mhz: mhz, memory: Kind::Cycle, ..model::Config::default() };
                    Box::new(ModelCard::new(config, medium())) as Box<dyn CardCore>
                }),
                CardKind::Rtl => {
                    let cards = rtl_cards(mhz)?;
                    figures::take(mhz, || cards.power_up(medium()))
                }
            })
        })
        .collect();
    let columns = columns?;
    let origin = match arguments.card {
        CardKind::Model => "transaction-level model",
        CardKind::Rtl => "RTL cycles, DDR4 model",
    };
    print!("{}", figures::markdown(origin, &columns));
    for column in &columns {
        eprintln!("{} MHz: {:.2} million card cycles a second", column.mhz, column.simulated_cycles_per_s / 1e6);
    }
    Ok(())
}
