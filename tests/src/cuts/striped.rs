//! Transactions over several cards, whose power is cut at every clock cycle.
//!
//! A program changes an object on each card of a striped pool, in one durable transaction after the
//! other. The power of all is cut in each cycle of these transactions; the cards come back, the
//! library recovers the pool, and all objects are found as one transaction has left them: the last
//! that was acknowledged, or the one behind it. Behind some of these cuts
//!
//! ```text
//! the save      of one card runs out of energy, at every cycle: that card reports its loss, or nothing is missing
//! the recovery  is cut too, in some of its cycles: the next one finds the same
//!   the next    is cut as well, behind some of those: the one behind it finds the same
//! ```
//!
//! Host and cards are copied with the process before the transactions begin; a copy runs them up to
//! its cut.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::quality::FixedState;
use nearpm::cards::Registered;
use nearpm::{Engine, Error, Mechanism, OffsetTx, Options, Pool, Synchronisation};
use nearpm_driver::{Card, CardError, CardOptions};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_interface::registers::COMMANDS_ACCEPTED;
use nearpm_sim::core::Medium;
use nearpm_sim::host::{Cut as Arming, Peers};
use nearpm_sim::machine::{Machine, until_power_cut};
use nearpm_sim::rtl::RtlCards;
use nearpm_sim::saved::Saved;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::copies::{Copies, caught};
use super::fingerprint::Fingerprint;
use super::subject::{Deeper, Settings, Subject};
use super::tally::{Cut, Failure, Findings, Moment, Tally};
use crate::rig::nearby_host;

/// Bytes of a member: a stripe, a ring, spare pages.
const MEMBER_BYTES: u64 = (2 << 20) + (128 << 10);
/// Bytes of a log ring.
const RING_BYTES: u32 = 16 << 10;
/// The first transaction is durable before anything is cut; these are cut.
const TRANSACTIONS: std::ops::RangeInclusive<u64> = 2..=3;
/// What a transaction writes into an object beside its number: over lines, and not in whole ones.
const BYTES: usize = 200;
/// Cycles behind the last traffic.
const TAIL_CYCLES: u64 = 40;
/// Cycles of a recovery in which it is cut.
const RECOVERY_CUTS: usize = 100;
/// Cuts of a recovery behind which the next one is cut, too.
const SECOND_RECOVERY_CUTS: usize = 50;

/// A striped pool and how its cards agree.
#[derive(Clone, Copy, Debug)]
pub struct Striped {
    /// Members.
    pub cards: usize,
    /// How the pool is kept consistent.
    pub mechanism: Mechanism,
    /// Who waits for whom.
    pub synchronisation: Synchronisation,
}

/// Every mechanism on two cards with both kinds of synchronisation, and on three that wait for each
/// other; one on four of these.
pub fn all() -> Vec<Striped> {
    let of = |cards, synchronisation| {
        Mechanism::ALL.into_iter().map(move |mechanism| Striped { cards, mechanism, synchronisation })
    };
    of(2, Synchronisation::Delayed)
        .chain(of(2, Synchronisation::Software))
        .chain(of(3, Synchronisation::Delayed))
        .chain(of(4, Synchronisation::Delayed).take(1))
        .collect()
}

/// The one of the ordinary tests.
pub fn fast() -> Vec<Striped> {
    vec![Striped { cards: 2, mechanism: Mechanism::Undo, synchronisation: Synchronisation::Delayed }]
}

impl Striped {
    fn options(&self) -> Options {
        let options =
            Options::new().mechanism(self.mechanism).engine(Engine::Card).synchronisation(self.synchronisation);
        options.lanes(1).ring_bytes(RING_BYTES).spare_pages(16).epoch_ops(1).id(1)
    }
}

impl Subject for Striped {
    fn family(&self) -> &str {
        "several cards"
    }

    fn name(&self) -> String {
        let synchronisation = match self.synchronisation {
            Synchronisation::Software => "software waits",
            Synchronisation::Delayed => "they wait",
        };
        format!("{:?} on {} cards, {synchronisation}", self.mechanism, self.cards)
    }

    fn cut_work(&self, cards: &RtlCards, settings: Settings) -> Findings {
        explore(cards, self, settings, |explorer| {
            let cycles = (0..explorer.computer.length()).step_by(settings.stride as usize);
            explorer.all(cycles.map(|cycle| Trial { cycle, behind: Behind::Nothing }));
        })
    }

    fn cut_deeper(&self, cards: &RtlCards, settings: Settings, deeper: Deeper) -> Findings {
        explore(cards, self, settings, |explorer| explorer.deeper(deeper))
    }

    /// The library recovers nothing of one card.
    fn is_rare(&self, deeper: Deeper) -> bool {
        matches!(deeper, Deeper::Replay(_))
    }
}

fn explore(rtl: &RtlCards, striped: &Striped, settings: Settings, work: impl FnOnce(&mut Explorer)) -> Findings {
    let explored = caught(|| {
        let mut explorer = Explorer {
            computer: Computer::new(rtl, striped),
            settings,
            known: HashSet::new(),
            findings: Findings::default(),
        };
        work(&mut explorer);
        explorer.findings
    });
    explored
        .unwrap_or_else(|words| Findings { failure: Some(Failure { cuts: Vec::new(), words }), ..Findings::default() })
}

/// A cut of the transactions, and what comes behind it.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// Since the first transaction began.
    cycle: u64,
    behind: Behind,
}

#[derive(Clone, Copy, Debug)]
enum Behind {
    /// The recovery, to its end.
    Nothing,
    /// A card has so many cycles for its save.
    Save { card: usize, cycles: u64 },
    /// A cut in this cycle of the recovery, then one in this cycle of the next, if any, and then
    /// another recovery.
    Recovery { cycle: u64, second: Option<u64> },
}

impl Trial {
    fn moment(&self) -> Moment {
        match self.behind {
            Behind::Nothing => Moment::Work,
            Behind::Save { .. } => Moment::Save,
            Behind::Recovery { .. } => Moment::BootWithEnergy,
        }
    }

    fn cuts(&self) -> Vec<Cut> {
        let cut = |moment, cycle| Cut { moment, cycle, draw: 0 };
        let (behind, second) = match self.behind {
            Behind::Nothing => (None, None),
            Behind::Save { cycles, .. } => (Some(cut(Moment::Save, cycles)), None),
            Behind::Recovery { cycle, second } => {
                (Some(cut(Moment::BootWithEnergy, cycle)), second.map(|cycle| cut(Moment::BootWithEnergy, cycle)))
            }
        };
        [cut(Moment::Work, self.cycle)].into_iter().chain(behind).chain(second).collect()
    }
}

/// What a copy of the process tells of a trial.
#[derive(Serialize, Deserialize)]
struct Seen {
    /// Names the memories that the cut left, and what was acknowledged.
    key: u64,
    /// A card reported a loss.
    is_loss: bool,
    /// Cycles of the first card until the pool was open.
    recovery: u64,
    tally: Tally,
}

struct Explorer<'a> {
    computer: Computer<'a>,
    settings: Settings,
    /// What was found whole, by [`Seen::key`].
    known: HashSet<u64>,
    findings: Findings,
}

impl Explorer<'_> {
    /// Makes the trials, each in a copy of the process, for as long as there is time.
    fn all(&mut self, trials: impl Iterator<Item = Trial>) {
        let mut copies = Copies::<Seen>::new(self.settings.jobs);
        let mut running = std::collections::VecDeque::new();
        for trial in trials {
            self.findings.cut_short |= self.settings.is_late();
            if self.findings.cut_short || self.findings.failure.is_some() {
                break;
            }
            running.push_back(trial);
            if let Some(ended) = copies.start(|| self.computer.make(trial, self.settings.seed, &self.known)) {
                self.take(running.pop_front().expect("it ran"), ended);
            }
        }
        while let Some(ended) = copies.oldest() {
            self.take(running.pop_front().expect("it ran"), ended);
        }
    }

    fn take(&mut self, trial: Trial, ended: Result<Seen, String>) -> Option<Seen> {
        match ended {
            Ok(seen) => {
                self.findings.tally.add(&seen.tally);
                self.findings.tally.cuts[trial.moment() as usize] += 1;
                let is_second = matches!(trial.behind, Behind::Recovery { second: Some(_), .. });
                self.findings.tally.second_recoveries += u64::from(is_second);
                let is_new = !seen.is_loss && self.known.insert(seen.key);
                self.findings.tally.distinct += u64::from(is_new);
                Some(seen)
            }
            Err(words) => {
                self.findings.failure.get_or_insert(Failure { cuts: trial.cuts(), words });
                None
            }
        }
    }

    /// Makes a trial at once, also of what is known; `None` where it fails.
    fn one(&mut self, trial: Trial) -> Option<Seen> {
        let mut copies = Copies::<Seen>::new(1);
        copies.start(|| self.computer.make(trial, self.settings.seed, &HashSet::new()));
        self.take(trial, copies.oldest().expect("it has begun"))
    }

    fn deeper(&mut self, deeper: Deeper) {
        let length = self.computer.length();
        let mut rng = ChaCha8Rng::seed_from_u64(self.settings.seed);
        match deeper {
            Deeper::Save(number) => {
                rng.set_stream(number as u64);
                self.sweep_save(rng.random_range(0..length), rng.random_range(0..self.computer.striped.cards));
            }
            Deeper::Replay(number) => {
                rng.set_stream(1000 + number as u64);
                let cycle = rng.random_range(0..length);
                let Some(seen) = self.one(Trial { cycle, behind: Behind::Nothing }) else { return };
                let once = (0..seen.recovery).sample(&mut rng, RECOVERY_CUTS).into_iter().map(|at| (at, None));
                // The next recovery is about as long.
                let moment = |rng: &mut ChaCha8Rng| rng.random_range(0..seen.recovery);
                let twice = [(); SECOND_RECOVERY_CUTS].map(|()| (moment(&mut rng), Some(moment(&mut rng))));
                let cuts = once.chain(twice);
                self.all(cuts.map(|(at, second)| Trial { cycle, behind: Behind::Recovery { cycle: at, second } }));
                self.findings.tally.recoveries += u64::from(self.is_done());
            }
        }
    }

    /// Whether everything that was asked for was cut, and held.
    fn is_done(&self) -> bool {
        !self.findings.cut_short && self.findings.failure.is_none()
    }

    /// Lets the energy of a card's save end at every cycle, until it is enough.
    fn sweep_save(&mut self, cycle: u64, card: usize) {
        let with = |cycles| Trial { cycle, behind: Behind::Save { card, cycles } };
        // The least energy that is enough.
        let (mut too_little, mut enough) = (0, nearby_host().save_cycles);
        while enough - too_little > 1 {
            let middle = too_little.midpoint(enough);
            match self.one(with(middle)) {
                Some(seen) if seen.is_loss => too_little = middle,
                Some(_) => enough = middle,
                None => return,
            }
        }
        self.all((0..=enough + 1).map(with));
        self.findings.tally.saves += u64::from(self.is_done());
    }
}

/// Host and cards with the pool.
struct Computer<'a> {
    rtl: &'a RtlCards,
    striped: &'a Striped,
    machine: Machine,
    cards: Vec<Registered>,
    /// Closed by a power cut.
    pool: Option<Pool>,
    /// One on each card.
    objects: Vec<u64>,
}

impl<'a> Computer<'a> {
    /// Powers it up, makes the pool, and its first transaction durable.
    fn new(rtl: &'a RtlCards, striped: &'a Striped) -> Self {
        let medium = Medium::blank((POOLS_BASE + MEMBER_BYTES).next_multiple_of(2 << 20) as usize + (2 << 20));
        let machine = Machine::with_cards(nearby_host(), Peers::default(), rtl, vec![medium; striped.cards]);
        let mut computer = Computer { rtl, striped, machine, cards: Vec::new(), pool: None, objects: Vec::new() };
        computer.plug();
        let pool = striped
            .options()
            .create(&computer.location(), striped.cards as u64 * MEMBER_BYTES)
            .expect("the pool is made");
        // Two are in a chunk, and chunks go to the members in turn.
        let all = (0..2 * striped.cards).map(|_| pool.tx(|tx| tx.alloc_zeroed(8192)).expect("there is room"));
        computer.objects = all.step_by(2).collect();
        let accepted = |computer: &Self| -> Vec<u32> {
            computer.cards.iter().map(|card| card.card().registers().read(COMMANDS_ACCEPTED)).collect()
        };
        let before = accepted(&computer);
        pool.tx(|tx| write(tx, &computer.objects, 1)).expect("the first transaction");
        pool.persist().expect("the first transaction is durable");
        let all_took_part = before.iter().zip(accepted(&computer)).all(|(before, after)| *before < after);
        assert!(all_took_part, "a card has no part in the transactions");
        computer.pool = Some(pool);
        computer.machine.settle();
        computer
    }

    /// Opens the cards of all slots.
    fn open_cards(&self) -> Vec<Result<Registered, CardError>> {
        let open = |function| {
            let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
            let card = Card::open(
                Arc::new(function),
                CardOptions { firmware, timeout_ns: 400_000, ..CardOptions::default() },
            )?;
            Ok(Registered::new(Arc::new(card)))
        };
        self.machine.functions().into_iter().map(open).collect()
    }

    fn location(&self) -> String {
        let names: Vec<&str> = self.cards.iter().map(Registered::name).collect();
        format!("card:{}/striped", names.join("+"))
    }

    /// Runs the transactions; `acknowledged` is the last one that was.
    fn transactions(&self, acknowledged: &mut u64) {
        let pool = self.pool.as_ref().expect("the pool is open");
        for number in TRANSACTIONS {
            pool.tx(|tx| write(tx, &self.objects, number)).expect("a transaction");
            *acknowledged = number;
        }
        assert_eq!(pool.statistics().fallbacks, 0, "the processor does what the cards are to do");
    }

    /// Cycles of all transactions, until nothing is under way; seen in a copy of the process.
    fn length(&self) -> u64 {
        let mut copies = Copies::<u64>::new(1);
        copies.start(|| {
            let start = self.machine.cycle();
            self.transactions(&mut 0);
            self.machine.settle();
            self.machine.cycle() - start + TAIL_CYCLES
        });
        let length = copies.oldest().expect("it has begun");
        length.unwrap_or_else(|words| panic!("without a cut: {words}"))
    }

    /// Makes a trial, in a copy of the process.
    fn make(&mut self, trial: Trial, seed: u64, known: &HashSet<u64>) -> Seen {
        let draw = ChaCha8Rng::seed_from_u64(seed ^ trial.cycle << 8).random();
        if let Behind::Save { card, cycles } = trial.behind {
            self.machine.set_save_cycles_of(card, cycles);
        }
        let acknowledged = self.cut(trial.cycle, draw);
        let left = self.left();
        let key = left.iter().fold(acknowledged, |key, (medium, _)| FixedState::with_seed(key).hash_one(medium));
        let mut seen = Seen { key, is_loss: false, recovery: 0, tally: Tally::default() };
        let images = || left.iter().filter_map(|(_, saved)| saved.image);
        seen.tally.cycles += trial.cycle * self.striped.cards as u64;
        seen.tally.with_commands += u64::from(images().any(|image| image.commands > 0));
        seen.tally.with_stores += u64::from(images().any(|image| image.stores > 0));
        if left.iter().any(|(_, saved)| saved.is_loss()) {
            self.report_losses(&left, trial);
            seen.is_loss = true;
            seen.tally.losses += 1;
            return seen;
        }
        if let Behind::Recovery { cycle, second } = trial.behind {
            for cycle in std::iter::once(cycle).chain(second) {
                self.cut_recovery(cycle, draw);
                seen.tally.cycles += cycle * self.striped.cards as u64;
            }
        } else if known.contains(&key) {
            return seen;
        }
        self.recover();
        seen.recovery = self.machine.cycle();
        seen.tally.cycles += seen.recovery * self.striped.cards as u64;
        let recovery = self.pool.as_ref().expect("it is open").recovery();
        seen.tally.decided += u64::from(recovery.released + recovery.discarded > 0);
        self.check(acknowledged);
        seen
    }

    /// Runs the transactions and cuts the power in a cycle of them. Which one was acknowledged
    /// last.
    fn cut(&mut self, cycle: u64, draw: u64) -> u64 {
        self.machine.arm_cut(Arming::AtCycle(self.machine.cycle() + cycle), draw);
        let mut acknowledged = TRANSACTIONS.start() - 1;
        let ended = until_power_cut(|| {
            self.transactions(&mut acknowledged);
            self.machine.settle();
        });
        if ended.is_ok() {
            self.machine.cut_now(draw);
        }
        self.close();
        acknowledged
    }

    /// What is open of the pool and the cards is no more, behind a power cut.
    fn close(&mut self) {
        let _ = until_power_cut(|| drop(self.pool.take()));
        self.cards.clear();
    }

    /// The names of the memories, and what was saved in them.
    fn left(&self) -> Vec<(u64, Saved)> {
        let look = |medium: &Medium| (Fingerprint::of(medium).value(), Saved::read(medium));
        (0..self.striped.cards)
            .map(|card| self.machine.look_at_medium_of(card, look).expect("the power is off"))
            .collect()
    }

    /// A card without the energy for its save says so, and no other one does.
    fn report_losses(&mut self, left: &[(u64, Saved)], trial: Trial) {
        self.machine.power_up(self.rtl);
        for (number, (opened, (_, saved))) in self.open_cards().into_iter().zip(left).enumerate() {
            let had_energy = !matches!(trial.behind, Behind::Save { card, .. } if card == number);
            assert!(
                !saved.is_loss() || !had_energy,
                "card {number} has saved nothing although there was energy for it"
            );
            match opened {
                Err(CardError::Loss) => {
                    assert!(saved.is_loss(), "card {number} reports a loss although its save is whole")
                }
                Err(error) => panic!("card {number}: {error}"),
                Ok(_) => assert!(!saved.is_loss(), "the torn save of card {number} is not reported"),
            }
        }
    }

    /// Opens the cards of all slots, which have lost nothing.
    fn plug(&mut self) {
        self.cards = self.open_cards().into_iter().map(|card| card.unwrap_or_else(|error| panic!("{error}"))).collect();
    }

    /// Opens cards and pool.
    fn open(&mut self) {
        self.plug();
        let pool = self.striped.options().open(&self.location());
        self.pool = Some(pool.unwrap_or_else(|error| panic!("the pool is refused: {error}")));
    }

    /// Cuts the power in a cycle of the recovery.
    fn cut_recovery(&mut self, cycle: u64, draw: u64) {
        self.machine.power_up(self.rtl);
        self.machine.arm_cut(Arming::AtCycle(cycle), draw);
        let ended = until_power_cut(|| self.open());
        if ended.is_ok() {
            self.machine.cut_now(draw);
        }
        self.close();
    }

    /// Powers the cards up and recovers the pool.
    fn recover(&mut self) {
        self.machine.power_up(self.rtl);
        self.open();
    }

    /// All objects are as one transaction has left them: the last that was acknowledged, or the
    /// next.
    fn check(&self, acknowledged: u64) {
        let pool = self.pool.as_ref().expect("the pool is open");
        let read = pool.tx(|tx| {
            self.objects.iter().map(|&object| tx.read_vec(object, OBJECT_BYTES)).collect::<Result<Vec<_>, _>>()
        });
        let read = read.expect("the objects are there");
        let allowed = acknowledged..=(acknowledged + 1).min(*TRANSACTIONS.end());
        let numbers: Vec<u64> =
            read.iter().map(|bytes| u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))).collect();
        assert!(
            allowed.clone().any(|number| read.iter().all(|bytes| *bytes == object(number))),
            "the objects are of the transactions {numbers:?}, or torn, where {allowed:?} is allowed"
        );
    }
}

/// Bytes of an object that are looked at.
const OBJECT_BYTES: usize = 512;
/// Where the bytes beside the number begin.
const BYTES_AT: usize = 100;

/// An object as a transaction leaves it.
fn object(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; OBJECT_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[BYTES_AT..BYTES_AT + BYTES].fill(number as u8);
    bytes
}

/// Does what a transaction does.
fn write(tx: &mut OffsetTx<'_>, objects: &[u64], number: u64) -> Result<(), Error> {
    objects.iter().try_for_each(|&object| {
        tx.write_u64(object, number)?;
        tx.write(object + BYTES_AT as u64, &[number as u8; BYTES])
    })
}
