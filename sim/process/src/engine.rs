//! The card with its power, its file and its host: every access goes through here, under one lock.
//!
//! Time is the card's. It passes while the card has something to do, and by some cycles with each
//! access.

use std::collections::VecDeque;
use std::fs::File;

use anyhow::{Context, Result};
use nearpm_cards::Cards;
use nearpm_endpoint::bus::{Bus, HostWrite};
use nearpm_interface::geometry::SAVE_BASE;
use nearpm_interface::registers::{self as reg, control, state};
use nearpm_interface::save::ArmWord;
use nearpm_sim::core::{Access, Answer, CardCore, Ticket};

use crate::ledger::Ledger;
use crate::record::Record;
use crate::store::{Patch, Store, is_full};

/// How the host reaches the PM window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowMode {
    /// Each access traps and passes the card's ordering point.
    Trapping,
    /// The host maps the file: nothing orders its accesses with commands.
    Mapped,
}

/// Energy for a save that no test wants to fail, in cycles.
pub const AMPLE_CYCLES: u64 = 1 << 20;
/// Cycles that pass with a posted write.
const WRITE_CYCLES: u64 = 16;
/// Cycles between two looks for an answer.
const LOOK_CYCLES: u64 = 16;
/// Cycles after which an answer will not come any more: more than the longest work that a card can
/// have accepted takes.
const HANG_CYCLES: u64 = 20_000_000;
/// Writes that the card has taken and not answered.
const MOST_POSTED: usize = 64;
/// Bytes of the journal at which the memory of now is put in force.
const JOURNAL_BYTES: u64 = 8 << 20;

/// A power cut to come.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Cycle of the card since its power-up.
    pub cycle: u64,
    /// Energy for the save, in cycles.
    pub save_cycles: u64,
    /// Draws what becomes of writes that the memory has not answered.
    pub seed: u64,
}

/// What happened, for people and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Accesses that changed something and were journalled.
    pub journalled: u64,
    /// Accesses that the start did again because the last process was killed.
    pub replayed: u64,
    /// Times that a memory was put in force while the card ran.
    pub compactions: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Accesses that the card did not answer.
    pub unanswered: u64,
    /// Resets of the function that came while the card had something to do.
    pub resets_under_way: u64,
}

/// See the module.
pub struct Engine {
    cards: Cards,
    pub(crate) store: Store,
    pub(crate) mode: WindowMode,
    /// `None` without power.
    pub(crate) card: Option<Box<dyn CardCore>>,
    pub(crate) ledger: Ledger,
    /// What the card does to the host.
    pub bus: Bus,
    posted: VecDeque<Ticket>,
    /// Writes to host memory that have left the card and not arrived.
    held: Vec<HostWrite>,
    pub(crate) holds_records: bool,
    cut: Option<Cut>,
    /// Rises with each power-up: hosts and mappings of before are dead.
    pub life: u64,
    /// Why the card was taken out of service.
    pub broken: Option<String>,
    /// What happened.
    pub counters: Counters,
}

impl Engine {
    /// Powers a card up on what its file holds. What the last process was killed with is done
    /// first, and saved as at a power cut.
    pub fn start(cards: Cards, store: Store, mode: WindowMode) -> Result<Engine> {
        let mut engine = Engine {
            cards,
            store,
            mode,
            card: None,
            ledger: Ledger::default(),
            bus: Bus::default(),
            posted: VecDeque::new(),
            held: Vec::new(),
            holds_records: false,
            cut: None,
            life: 0,
            broken: None,
            counters: Counters::default(),
        };
        engine.recover()?;
        if mode == WindowMode::Mapped {
            engine.store.take_room()?;
        }
        engine.power_up()?;
        Ok(engine)
    }

    /// Brings the file to the state of a card without power: nothing is in the journal.
    fn recover(&mut self) -> Result<()> {
        let journal = self.store.journal()?;
        let lines: Vec<_> = match journal.last() {
            None => return Ok(()),
            Some(Record::Seal) => journal
                .iter()
                .filter_map(|record| match record {
                    Record::Line { address, data } => Some((*address, *data)),
                    _ => None,
                })
                .collect(),
            // Nobody was told of lines without their seal.
            Some(Record::Line { .. }) => Vec::new(),
            Some(Record::Access(_)) => return self.replay(journal),
        };
        self.store.replace_lines(&lines).context("cannot write what a command had written")
    }

    fn replay(&mut self, journal: Vec<Record>) -> Result<()> {
        self.boot()?;
        for record in journal {
            if let Record::Access(access) = record {
                self.counters.replayed += 1;
                // What a register does may depend on what is under way.
                if matches!(access, Access::RegisterWrite { .. }) {
                    self.settle();
                }
                self.post(access);
            }
        }
        self.settle();
        let card = self.card.take().context("the card has no power")?;
        let medium = card.power_fail(AMPLE_CYCLES, 0);
        self.store
            .put(&medium.bytes, None)
            .context("cannot keep what the card had accepted; its journal still holds it")
    }

    fn boot(&mut self) -> Result<()> {
        let medium = self.store.medium()?;
        self.card = Some(self.cards.power_up(medium));
        self.ledger = Ledger::default();
        self.posted.clear();
        self.held.clear();
        self.holds_records = false;
        self.life += 1;
        for _ in 0..HANG_CYCLES / LOOK_CYCLES {
            match self.register(reg::STATE) {
                Some(state::BOOTING | state::REPLAYING) => self.advance(LOOK_CYCLES),
                _ => break,
            }
        }
        self.settle();
        Ok(())
    }

    /// Switches the card on; does nothing where it is on.
    pub fn power_up(&mut self) -> Result<()> {
        if self.card.is_some() {
            return Ok(());
        }
        (self.broken, self.cut) = (None, None);
        self.bus.forget_host();
        // What a card holds that ran out of room for it is still in the journal.
        self.recover()?;
        self.boot()?;
        if self.mode == WindowMode::Mapped {
            self.put_in_force().context("cannot write the card's memory")?;
        }
        Ok(())
    }

    /// Cuts the power now.
    pub fn cut(&mut self, save_cycles: u64, seed: u64) {
        let Some(card) = self.card.take() else { return };
        self.cut = None;
        self.counters.cuts += 1;
        let medium = card.power_fail(save_cycles, seed);
        let kept = match self.mode {
            WindowMode::Trapping => self.store.put(&medium.bytes, None),
            WindowMode::Mapped => self.window_after(&medium.bytes).and_then(|window| self.store.put(&window, None)),
        };
        if let Err(error) = kept {
            self.fail("keep the card's memory", &error);
        }
    }

    /// Cuts the power when the card reaches a cycle, at once where that is past.
    pub fn arm(&mut self, cut: Cut) {
        self.cut = Some(cut);
        self.advance(0);
    }

    /// Takes the card out of service because its file cannot be written. The file holds what was
    /// acknowledged.
    pub(crate) fn fail(&mut self, what: &str, error: &std::io::Error) {
        let room = if is_full(error) { "; make room, and start again" } else { "" };
        let text = format!("cannot {what}: {error}{room}; what was acknowledged is kept");
        eprintln!("nearpm-sim: {text}");
        self.broken.get_or_insert(text);
        self.card = None;
    }

    /// How the host reaches the PM window.
    pub fn mode(&self) -> WindowMode {
        self.mode
    }

    /// The file with the window in force, and where in it the window begins.
    ///
    /// # Errors
    /// If the process has no descriptor left for it.
    pub fn window_file(&self) -> std::io::Result<(File, u64)> {
        Ok((self.store.file().try_clone()?, self.store.image_start()))
    }

    /// Cycle of the card since its power-up.
    pub fn cycle(&self) -> u64 {
        self.card.as_ref().map_or(0, |card| card.cycle())
    }

    /// Keeps what the card writes to host memory back, or lets it go.
    pub(crate) fn hold_records(&mut self, hold: bool) {
        self.holds_records = hold;
        self.advance(0);
    }

    /// Whether the power is on.
    pub fn is_powered(&self) -> bool {
        self.card.is_some()
    }

    /// Whether the card has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.card.as_ref().is_none_or(|card| card.is_idle())
    }

    /// Lets time pass, up to an armed cut.
    pub fn advance(&mut self, cycles: u64) {
        let Some(card) = &mut self.card else { return };
        let target = card.cycle() + cycles;
        let due = self.cut.filter(|cut| cut.cycle <= target);
        card.advance_to(due.map_or(target, |cut| cut.cycle));
        while let Some(write) = card.take_dma() {
            self.held.push(HostWrite { address: write.bus_address, data: write.data, strobes: write.strobes });
        }
        if !self.holds_records {
            self.held.drain(..).for_each(|write| self.bus.deliver(&write));
        }
        while let Some(ticket) = self.posted.front() {
            if card.take(*ticket).is_none() {
                break;
            }
            self.posted.pop_front();
        }
        if let Some(cut) = due {
            self.cut(cut.save_cycles, cut.seed);
        }
    }

    /// Lets time pass until nothing is under way.
    pub fn settle(&mut self) {
        for _ in 0..HANG_CYCLES / LOOK_CYCLES {
            if self.is_idle() && self.posted.is_empty() {
                return;
            }
            self.advance(LOOK_CYCLES);
        }
    }

    /// Hands over reads and waits for their answers, in their order; `None` where the card has gone
    /// or does not answer.
    pub(crate) fn answers(&mut self, reads: Vec<Access>) -> Vec<Option<Answer>> {
        let Some(card) = &mut self.card else { return vec![None; reads.len()] };
        let tickets: Vec<_> = reads.into_iter().map(|read| card.submit(read)).collect();
        tickets.into_iter().map(|ticket| self.answer(ticket)).collect()
    }

    fn answer(&mut self, ticket: Ticket) -> Option<Answer> {
        for _ in 0..HANG_CYCLES / LOOK_CYCLES {
            if let Some(answer) = self.card.as_mut()?.take(ticket) {
                return Some(answer);
            }
            self.advance(LOOK_CYCLES);
        }
        self.counters.unanswered += 1;
        None
    }

    /// Reads a register.
    pub fn register(&mut self, offset: u32) -> Option<u32> {
        let answer = self.answers(vec![Access::RegisterRead { offset }]).pop()??;
        Some(u32::from_le_bytes(answer.data[..4].try_into().expect("four bytes")))
    }

    /// Submits an access that changes something.
    pub(crate) fn post(&mut self, access: Access) {
        let Some(card) = &mut self.card else { return };
        self.ledger.note(&access);
        self.posted.push_back(card.submit(access));
        self.advance(WRITE_CYCLES);
        while self.posted.len() > MOST_POSTED && self.card.is_some() {
            self.advance(LOOK_CYCLES);
        }
    }

    /// An access of the host that changes something. When this returns it is the card's, whatever
    /// becomes of the process.
    pub(crate) fn accept(&mut self, access: Access) {
        if self.card.is_none() {
            return;
        }
        if self.mode == WindowMode::Trapping {
            let record = Record::Access(access.clone());
            if let Err(error) = self.store.append(&record) {
                return self.fail("journal an access", &error);
            }
            self.counters.journalled += 1;
        }
        self.post(access);
        if self.store.journal_bytes() > JOURNAL_BYTES && !self.ledger.has_parts() {
            self.compact();
        }
    }

    /// Puts the memory of now in force, so that the journal stays short.
    fn compact(&mut self) {
        self.settle();
        if !self.is_open() {
            return;
        }
        let put = self.put_in_force().and_then(|()| {
            let preamble = self.ledger.preamble();
            preamble.into_iter().try_for_each(|access| self.store.append(&Record::Access(access)))
        });
        self.counters.compactions += 1;
        if let Err(error) = put {
            self.fail("write the card's memory", &error);
        }
    }

    /// Whether the memory is complete once nothing is under way: no save waits for its replay or
    /// for somebody to accept its loss.
    fn is_open(&mut self) -> bool {
        matches!(self.register(reg::STATE), Some(state::OPEN | state::NO_FIRMWARE))
    }

    /// Puts the memory of an idle card in force. A card that is open says in it that it runs, which
    /// without a save of it would be a loss: it is put down as a card that was shut down.
    fn put_in_force(&mut self) -> Result<(), std::io::Error> {
        let open = self.is_open();
        let Some(medium) = self.card.as_ref().and_then(|card| card.durable()) else { return Ok(()) };
        let patch = open.then(|| clean(&medium.bytes)).flatten();
        self.store.put(&medium.bytes, patch)
    }

    /// Function-level reset: returns when what was accepted is done and the mappings are forgotten.
    pub fn reset(&mut self) {
        self.counters.resets_under_way += u64::from(!self.is_idle());
        self.accept(Access::RegisterWrite { offset: reg::CONTROL, value: control::FUNCTION_RESET });
        self.await_reset();
        self.settle();
        self.bus.master = false;
    }

    /// Advances until boot, replay or reset are over.
    pub(crate) fn await_reset(&mut self) {
        for _ in 0..HANG_CYCLES / LOOK_CYCLES {
            match self.register(reg::STATE) {
                Some(state::BOOTING | state::REPLAYING) => self.advance(LOOK_CYCLES),
                _ => break,
            }
        }
    }
}

/// The arm word of a memory, as a clean shutdown leaves it.
pub(crate) fn clean(memory: &[u8]) -> Option<Patch> {
    let word = memory[SAVE_BASE as usize..][..8].try_into().expect("eight bytes");
    match ArmWord::decode(u64::from_le_bytes(word))? {
        ArmWord::Running(generation) => Some((SAVE_BASE, ArmWord::Clean(generation).encode().to_le_bytes())),
        ArmWord::Blank | ArmWord::Clean(_) => None,
    }
}
