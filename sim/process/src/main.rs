//! `nearpm-sim`: the simulated card as a process.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use nearpm_cards::SimulatedCard;
use nearpm_endpoint::server;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_simcard::control;
use nearpm_simcard::device::{OneClient, Shared};
use nearpm_simcard::engine::{Engine, WindowMode};
use nearpm_simcard::store::Store;

/// How hosts reach the PM window.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Window {
    /// Each access traps and passes the card's ordering point
    Trapping,
    /// Hosts map the file; the card says that it orders nothing
    Mapped,
}

/// A simulated NearPM card, served over vfio-user.
#[derive(Parser)]
#[command(name = "nearpm-sim", version)]
struct Arguments {
    /// Socket of the vfio-user server
    #[arg(long, required_unless_present = "send")]
    socket: Option<PathBuf>,
    /// File that holds the persistent memory; it is made if it is missing
    #[arg(long, required_unless_present = "send")]
    pm: Option<PathBuf>,
    /// Bytes of persistent memory of a new file, as in 64M
    #[arg(long, default_value = "64M", value_parser = nearpm::size::parse)]
    bytes: u64,
    /// Card to simulate
    #[arg(long, value_enum, default_value = "model")]
    card: SimulatedCard,
    /// The PM window
    #[arg(long, value_enum, default_value = "trapping")]
    window: Window,
    /// Socket for power cuts, statistics and faults
    #[arg(long)]
    control: Option<PathBuf>,
    /// Send this to the control socket of a simulator that runs, and print the answer
    #[arg(long, requires = "control", conflicts_with_all = ["socket", "pm"])]
    send: Option<String>,
}

fn run(arguments: &Arguments) -> Result<()> {
    if let (Some(command), Some(path)) = (&arguments.send, &arguments.control) {
        println!("{}", control::request(path, command)?);
        return Ok(());
    }
    let (socket, pm) = arguments.socket.as_ref().zip(arguments.pm.as_ref()).context("no socket or no file")?;
    let mode = match arguments.window {
        Window::Trapping => WindowMode::Trapping,
        Window::Mapped => WindowMode::Mapped,
    };
    let cards = arguments.card.cards(MemoryPorts::One)?;
    let store = Store::open(pm, arguments.bytes)?;
    let shared = Shared::new(Engine::start(cards, store, mode)?);
    if let Some(path) = &arguments.control {
        let listener = control::listen(path)?;
        let shared = shared.clone();
        std::thread::spawn(move || control::serve(&shared, &listener));
    }
    let runner = shared.clone();
    std::thread::spawn(move || runner.run());
    server::serve(&OneClient(shared), socket)
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nearpm-sim: {}", nearpm_cards::sentence(&error));
            ExitCode::FAILURE
        }
    }
}
