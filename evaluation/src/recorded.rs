//! What arrives at a card while a program runs: recorded at its ports, to be played to other cards.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use nearpm::{Engine, Mechanism, Options};
use nearpm_interface::peer::PeerMessage;
use nearpm_sim::core::{Access, Activity, Answer, CardCore, DmaWrite, Medium, Ticket};
use nearpm_sim::model::ModelCard;
use nearpm_sim::profile::Profile;
use nearpm_workloads::check;
use nearpm_workloads::programs::ycsb::Mix;
use nearpm_workloads::programs::{Inputs, Program, Setup};

use crate::compute::Compute;
use crate::computer::Computer;
use crate::served::fill;

/// The paper's tables are divided by this: the RTL has to carry the medium.
const SHARE: usize = 500;
/// Bytes of the log.
const RING_BYTES: u32 = 1 << 20;
/// Pools are multiples of this.
const GRAIN: u64 = 1 << 20;

/// Accesses with the cycles of their arrival.
type Accesses = Arc<Mutex<Vec<(u64, Access)>>>;

/// A recording, from power-up on.
pub struct Recording {
    /// The card's memory before.
    pub medium: Medium,
    /// What arrived, and when.
    pub accesses: Vec<(u64, Access)>,
}

/// A card that writes down what it is asked for.
struct Recorder {
    card: Box<dyn CardCore>,
    heard: Accesses,
}

impl CardCore for Recorder {
    fn cycle(&self) -> u64 {
        self.card.cycle()
    }
    fn period_ps(&self) -> u64 {
        self.card.period_ps()
    }
    fn advance_to(&mut self, cycle: u64) {
        self.card.advance_to(cycle);
    }
    fn submit(&mut self, access: Access) -> Ticket {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push((self.card.cycle(), access.clone()));
        self.card.submit(access)
    }
    fn take(&mut self, ticket: Ticket) -> Option<Answer> {
        self.card.take(ticket)
    }
    fn take_dma(&mut self) -> Option<DmaWrite> {
        self.card.take_dma()
    }
    fn take_peer(&mut self) -> Option<(PeerMessage, u64)> {
        self.card.take_peer()
    }
    fn hear_peer(&mut self, message: PeerMessage) {
        self.card.hear_peer(message);
    }
    fn watch(&mut self, on: bool) {
        self.card.watch(on);
    }
    fn take_activity(&mut self) -> Option<(Activity, u64)> {
        self.card.take_activity()
    }
    fn durable(&self) -> Option<&Medium> {
        self.card.durable()
    }
    fn next_output(&self) -> Option<u64> {
        self.card.next_output()
    }
    fn is_idle(&self) -> bool {
        self.card.is_idle()
    }
    fn power_fail(self: Box<Self>, save_cycles: u64, seed: u64) -> Medium {
        self.card.power_fail(save_cycles, seed)
    }
}

/// Runs so many transactions of a program with one card, and gives what arrived there from its
/// power-up on: the driver's bring-up, the opening of the pool, the transactions with the time that
/// program and library compute for, the end of the epoch.
///
/// # Errors
/// If something fails, or the pool does not hold what the program's model says.
pub fn record(profile: &Profile, program: Program, mechanism: Mechanism, transactions: usize) -> Result<Recording> {
    let times = Compute::stored()?.of(program)?;
    let each_ns = (times.program() + times.library(mechanism)) as u64;
    let setup = Setup { inputs: Inputs::Corrected, seed: 1, count: transactions, share: SHARE, mix: Mix::W1 };
    let program = program.make(&setup);
    let bytes = (2 * program.bytes() + 3 * u64::from(RING_BYTES)).next_multiple_of(GRAIN);
    let mut computer = Computer::new(profile, 1, profile.units(), profile.parameters(), bytes)?;
    let location = computer.location("pool");
    let options = Options::new().lanes(1).ring_bytes(RING_BYTES).epoch_ops(0).id(computer.pool_id(0));
    fill(&options, &location, bytes, &*program)?;
    computer.machine.settle();
    computer.machine.cut_now(1);
    let medium = computer.machine.medium().context("the power is off")?;
    let heard = Accesses::default();
    let (config, ears) = (profile.card(profile.units()), heard.clone());
    computer.power = Box::new(move |medium: Medium| {
        Box::new(Recorder { card: Box::new(ModelCard::new(config, medium)), heard: ears.clone() }) as Box<dyn CardCore>
    });
    computer.machine.power_up(&*computer.power);
    computer.open_cards()?;
    let pool = options.mechanism(mechanism).engine(Engine::Card).open(&location)?;
    let root = pool.root()?;
    for number in 0..program.count() {
        computer.machine.compute(each_ns);
        pool.tx(|tx| program.apply(tx, root, number))?;
    }
    pool.cut()?;
    pool.persist()?;
    let accesses = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    let found = check::rows(&pool, &*program)?.context("the pool has a root")?;
    ensure!(found == program.after(program.count()), "the pool does not hold what the model says");
    Ok(Recording { medium, accesses })
}
