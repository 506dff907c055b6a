//! Counts its own runs in a pool on a card, whose commands log what a commit changes. The card is
//! one of another process:
//!
//! ```console
//! $ nearpm-sim --socket card.socket --pm card.pm &
//! $ nearpm card selftest --card vfio-user:card.socket
//! $ cargo run --release -p nearpm --example on_card -- card.socket
//! run 1
//! ```

use std::path::PathBuf;
use std::sync::Arc;

use nearpm::prelude::*;
use nearpm::{Engine, Mechanism, cards};
use nearpm_driver::{Card, CardOptions, vfio_user};

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Counter {
    runs: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let socket: PathBuf = std::env::args_os().nth(1).ok_or("on_card SOCKET")?.into();
    let function = vfio_user::open(&socket, vfio_user::TIMEOUT)?;
    let card = Card::open(Arc::new(function), CardOptions::default())?;
    // From here on the process knows the card as `sim`.
    cards::register("sim", Arc::new(card));
    let options = Options::new().mechanism(Mechanism::Undo).engine(Engine::Card);
    let pool = DirectPool::open_or_create("card:sim/counter", 4 << 20, &options)?;
    let runs = pool.tx(|tx| {
        let counter = tx.root_or_zeroed::<Counter>()?;
        tx.update(counter.runs(), |n| n + 1)
    })?;
    println!("run {runs}");
    pool.close()?;
    Ok(())
}
