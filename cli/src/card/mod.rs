//! `nearpm card`: what cards there are, what they have counted, and whether they work, whatever
//! they are reached by.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use nearpm_driver::Card;
use nearpm_driver::pci::DmaPages;
use nearpm_driver::registers::Capabilities;
use nearpm_interface::registers::{self as reg, Access};

use nearpm_text::{Table, size};

mod bench;
mod driver;
mod firmware;
mod selftest;
mod share;
mod transport;

pub use transport::{Attachment, Opened, Transport, is_virtual_machine};

/// The card of a command.
#[derive(Args, Clone, Debug)]
pub struct CardArgument {
    /// model or rtl (simulated in this process), vfio-user:SOCKET (in another one),
    /// vfio:ADDRESS[,window=uncached|wc|wb] (in this machine); behind the last two
    /// `,wait=interrupts` sleeps until a completion's interrupt instead of polling for it
    #[arg(long, default_value = "model")]
    pub card: Transport,
}

/// What to do with a card.
#[derive(Subcommand, Clone, Debug)]
pub enum CardCommand {
    /// Print what can be reached: the cards that can be simulated here, those in this machine, and
    /// those that are named
    List {
        /// Look at this one, too (may be given several times)
        #[arg(long)]
        card: Vec<Transport>,
    },
    /// Give a card of this machine to vfio-pci, so that programs can open it; says what is missing
    /// for that
    Bind {
        /// Its PCI address, as `nearpm card list` or `lspci -D` print it
        address: String,
    },
    /// Take a card of this machine from vfio-pci, back to the driver that the kernel finds for it
    Unbind {
        /// Its PCI address, as `nearpm card list` or `lspci -D` print it
        address: String,
    },
    /// Open a card and print its identity, capabilities, pools and registers
    Info(CardArgument),
    /// Open a card and print each register with its meaning
    Registers(CardArgument),
    /// Open a card and try what it has to do, in a pool that is made for it and removed afterwards
    Selftest(CardArgument),
    /// Open a card and print which firmware is in force; load another one
    Firmware {
        /// The card
        #[command(flatten)]
        card: CardArgument,
        /// Image to put in force, as `nearpm firmware assemble` writes it
        #[arg(long)]
        load: Option<PathBuf>,
    },
    /// Open a card and share it among processes: each opens vfio-user:SOCKET as it would open the
    /// card. Runs until the card has gone
    Share {
        /// The card
        #[command(flatten)]
        card: CardArgument,
        /// Where processes find it
        #[arg(long)]
        socket: PathBuf,
    },
    /// Measure how long a register, the status line and a command take
    Bench {
        /// The card
        #[command(flatten)]
        card: CardArgument,
        /// Accesses of each kind
        #[arg(long, default_value_t = 1000)]
        count: u32,
    },
}

/// Runs the command.
pub fn command(command: &CardCommand) -> Result<()> {
    print!("{}", report(command)?);
    Ok(())
}

/// What the command prints.
///
/// # Errors
/// If the card does not open, or fails what is asked of it.
pub fn report(command: &CardCommand) -> Result<String> {
    match command {
        CardCommand::List { card } => Ok(list(card)),
        CardCommand::Bind { address } => driver::bind(address),
        CardCommand::Unbind { address } => driver::unbind(address),
        CardCommand::Info(argument) => info(&argument.card.open("card")?),
        CardCommand::Registers(argument) => Ok(explained(&argument.card.open("card")?.card).to_string()),
        CardCommand::Selftest(argument) => selftest::run(&argument.card.open("card")?),
        CardCommand::Firmware { card, load } => firmware::run(&card.card.open("card")?, load.as_deref()),
        CardCommand::Share { card, socket } => share::run(&card.card.open("card")?, socket),
        CardCommand::Bench { card, count } => bench::run(&card.card.open("card")?, *count),
    }
}

fn list(asked: &[Transport]) -> String {
    let mut table = Table::new(&["card", "is", "memory", "pools"]);
    let simulated = Transport::simulated().into_iter().map(|card| (card.to_string(), "can be simulated".into()));
    for (name, is) in simulated.chain(transport::in_this_machine()) {
        table.row([name, is, "-".into(), "-".into()]);
    }
    for (number, card) in asked.iter().enumerate() {
        let opened = card.open(&format!("list{number}"));
        table.row(match opened.and_then(|opened| Ok((size(opened.card.pm_bytes()), opened.pools()?.len()))) {
            Ok((memory, pools)) => [card.to_string(), "open".into(), memory, pools.to_string()],
            Err(error) => [card.to_string(), crate::sentence(&error), "-".into(), "-".into()],
        });
    }
    table.to_string()
}

fn info(opened: &Opened) -> Result<String> {
    let card = &opened.card;
    let capabilities: Vec<&str> = [
        (Capabilities::HOST_ORDERED, "orders host accesses and commands together"),
        (Capabilities::COMPLETION_RECORDS, "writes completion records"),
        (Capabilities::POWER_FAIL_SAFE, "keeps what it acknowledged through a power cut"),
    ]
    .into_iter()
    .filter(|&(bit, _)| card.capabilities().contains(bit))
    .map(|(_, meaning)| meaning)
    .collect();
    let mut text = String::new();
    writeln!(text, "{}, {} of persistent memory", opened.what, size(card.pm_bytes()))?;
    writeln!(text, "it {}", capabilities.join(", "))?;
    let pages = match card.function().dma_pages() {
        Some(DmaPages::Large) => Some("a page of 2 MiB"),
        Some(DmaPages::Ordinary) => Some("ordinary pages"),
        None => None,
    };
    if let Some(pages) = pages {
        writeln!(text, "its completion records lie in {pages}")?;
    }
    writeln!(text, "who waits for them does so by {}", card.waiting())?;
    if let Some(seat) = card.seat() {
        writeln!(text, "it is shared: this is process {} of at most {}", seat.number, seat.seats)?;
    }
    writeln!(text)?;
    let pools = opened.pools().context("its pools cannot be read")?;
    if !pools.is_empty() {
        let mut table = Table::new(&["pool", "size", "base"]);
        for pool in pools {
            table.row([pool.name, size(pool.bytes), format!("{:#x}", pool.base)]);
        }
        writeln!(text, "{table}")?;
    }
    write!(text, "{}", registers(card))?;
    Ok(text)
}

/// Registers with their values.
fn values(card: &Card) -> impl Iterator<Item = (&'static reg::Register, [String; 3])> {
    reg::ALL.iter().filter(|register| register.access != Access::WriteOnly).map(|register| {
        let value = card.registers().read(register.offset);
        (register, [register.name.to_string(), format!("{:#05x}", register.offset), format!("{value:#010x}")])
    })
}

fn registers(card: &Card) -> Table {
    let mut table = Table::new(&["register", "offset", "value"]);
    values(card).for_each(|(_, row)| table.row(row));
    table
}

/// The same with what each register holds.
fn explained(card: &Card) -> Table {
    let mut table = Table::new(&["register", "offset", "value", "holds"]);
    for (register, [name, offset, value]) in values(card) {
        // The text is written for the pages that are made of it.
        let meaning = register.doc.trim().replace(['[', ']', '`'], "");
        table.row([name, offset, value, meaning]);
    }
    table
}
