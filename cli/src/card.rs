//! `nearpm card`: what a card is and what it has counted.

use anyhow::{Context, Result};
use clap::Subcommand;
use nearpm_driver::Posting;
use nearpm_driver::registers::Capabilities;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_interface::registers::{self as reg, Access};
use nearpm_sim::host::Parameters;

use crate::rig::{CardKind, Rig};
use crate::table::{Table, size};

/// What to do with a card.
#[derive(Subcommand)]
pub enum CardCommand {
    /// Open a card and print its identity, capabilities and registers
    Info {
        /// Card to power up
        #[arg(long, value_enum, default_value = "model")]
        card: CardKind,
    },
}

/// Persistent memory of the card that `info` powers up.
const INFO_POOL_BYTES: u64 = 16 << 20;

/// Runs the command.
pub fn command(command: &CardCommand) -> Result<()> {
    let CardCommand::Info { card: kind } = command;
    let rig =
        Rig::new(kind.cards(MemoryPorts::One)?, "sim", Parameters::default(), Posting::default(), INFO_POOL_BYTES);
    let card = rig.open_card().context("the simulated card does not open")?;
    let capabilities: Vec<&str> = [
        (Capabilities::HOST_ORDERED, "orders host accesses and commands together"),
        (Capabilities::COMPLETION_RECORDS, "writes completion records"),
        (Capabilities::POWER_FAIL_SAFE, "keeps what it acknowledged through a power cut"),
    ]
    .into_iter()
    .filter(|&(bit, _)| card.capabilities().contains(bit))
    .map(|(_, meaning)| meaning)
    .collect();
    println!("{}, {} of persistent memory", kind.name(), size(card.pm_bytes()));
    println!("it {}\n", capabilities.join(", "));
    let mut table = Table::new(&["register", "offset", "value"]);
    for register in reg::ALL.iter().filter(|r| r.access != Access::WriteOnly) {
        let value = card.registers().read(register.offset);
        table.row([register.name.to_string(), format!("{:#05x}", register.offset), format!("{value:#010x}")]);
    }
    print!("{table}");
    Ok(())
}
