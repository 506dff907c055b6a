//! A whole computer in deterministic virtual time: cores, caches, link, card, and the power cord.
//!
//! ```text
//! let machine = Machine::new(Parameters::default(), &card, Medium::blank(64 << 20));
//! let function = machine.function();              // an `impl PciFunction`, for the driver
//! machine.arm_cut(Cut::AtCycle(123_456), seed);   // optional
//! let outcome = until_power_cut(|| workload(function));
//! machine.power_up(&card);                        // the medium is what the cut left
//! ```
//!
//! Several cards have a link each to the host, links among themselves, and one power cord with it:
//!
//! ```text
//! let machine = Machine::with_cards(parameters, Peers::default(), &card, media);
//! let functions = machine.functions();            // one `impl PciFunction` a card
//! machine.cut_now(seed);
//! machine.power_up_each(&[Socket::Card(&card), Socket::Absent]);   // the second card does not come back
//! ```
//!
//! A run is the same whenever the same calls are made in the same order. Calls of several threads
//! are made in the order in which the threads get there. For a deterministic run of several cores
//! [`Machine::on_cores`] gives each a thread, of which always the one goes on whose core's time is
//! least, also while others wait for a card; or one thread takes turns with [`run_on_core`], and
//! then no other core goes on while one waits.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread::{self, ScopedJoinHandle};

use crate::core::{CardCore, Medium};
use crate::host::{Cut, CutRecord, EventRecord, Host, Parameters, Peers, Plug, Slot, Statistics};

mod function;
mod shared;
mod turns;

pub use function::Function;
use shared::Shared;

/// Makes a card and powers it up on a medium.
pub trait Power {
    /// Boots the card; its cycle counter starts at 0.
    fn power_up(&self, medium: Medium) -> Box<dyn CardCore>;
}

impl<F: Fn(Medium) -> Box<dyn CardCore>> Power for F {
    fn power_up(&self, medium: Medium) -> Box<dyn CardCore> {
        self(medium)
    }
}

/// What the power finds in a slot.
#[derive(Clone, Copy)]
pub enum Socket<'a> {
    /// A card, which boots on the medium of its slot.
    Card(&'a dyn Power),
    /// A card that does not come up: its configuration space is there, and its BARs read as all
    /// ones. The medium keeps what it holds.
    Silent,
    /// A card that is not found: configuration space reads as all ones, too. The medium keeps what
    /// it holds.
    Absent,
}

/// What a core unwinds with when it learns that the power has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut;

/// Runs a workload to its end, or to the power cut that stops it. Other panics go on.
pub fn until_power_cut<T>(workload: impl FnOnce() -> T) -> Result<T, PowerCut> {
    catch_unwind(AssertUnwindSafe(workload)).map_err(|payload: Box<dyn Any + Send>| {
        match payload.downcast::<PowerCut>() {
            Ok(_) => PowerCut,
            Err(other) => resume_unwind(other),
        }
    })
}

thread_local! {
    static CORE: Cell<usize> = const { Cell::new(0) };
}

/// Makes this thread's further accesses those of a core; threads start on core 0.
pub fn run_on_core(core: usize) {
    CORE.set(core);
}

/// The computer. Clones and [`Function`]s share it.
#[derive(Clone)]
pub struct Machine {
    shared: Shared,
}

impl Machine {
    /// A computer with one card, its power on.
    pub fn new(parameters: Parameters, card: &dyn Power, medium: Medium) -> Machine {
        Machine::with_cards(parameters, Peers::default(), card, vec![medium])
    }

    /// A computer with as many cards as there are media, its power on.
    ///
    /// # Panics
    /// If there is no medium.
    pub fn with_cards(parameters: Parameters, peers: Peers, card: &dyn Power, media: Vec<Medium>) -> Machine {
        assert!(!media.is_empty(), "a computer has a card");
        let sizes = media.iter().map(|medium| medium.bytes.len() as u64).collect();
        let mut host = Host::new(parameters, peers, sizes);
        host.power_up(media.into_iter().map(|medium| Plug::Card(card.power_up(medium))).collect());
        Machine { shared: Shared::new(host) }
    }

    /// Slots of the computer.
    pub fn cards(&self) -> usize {
        self.shared.look(|host, _| host.cards())
    }

    /// The PCI function of the first card.
    pub fn function(&self) -> Function {
        self.function_of(0)
    }

    /// The PCI function of a card.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn function_of(&self, card: usize) -> Function {
        assert!(card < self.cards(), "card {card} of a computer with {}", self.cards());
        Function { shared: self.shared.clone(), card }
    }

    /// The PCI functions of all slots.
    pub fn functions(&self) -> Vec<Function> {
        (0..self.cards()).map(|card| self.function_of(card)).collect()
    }

    /// Runs each work on a core of its own, from core 0 on: a thread each, of which at any time one
    /// goes on, the one whose core's time is least. So the run is the same each time, and cores
    /// meet on link and cards at their own times. What they wait for beside the machine (locks)
    /// they have to wait for in its time, by [`nearpm_driver::pci::PciFunction::contended`]: the
    /// other would not go on.
    ///
    /// # Panics
    /// With what one of them panics with, and with a [`PowerCut`] only if there is nothing else. If
    /// it is called by one of them.
    pub fn on_cores<T: Send, W: FnOnce() -> T + Send>(&self, works: Vec<W>) -> Vec<T> {
        self.shared.begin_turns(works.len());
        let ended: Vec<_> = thread::scope(|scope| {
            let start = |(core, work): (usize, W)| {
                scope.spawn(move || {
                    run_on_core(core);
                    let _turns = self.shared.take_part(core);
                    work()
                })
            };
            let threads: Vec<_> = works.into_iter().enumerate().map(start).collect();
            threads.into_iter().map(ScopedJoinHandle::join).collect()
        });
        self.shared.end_turns();
        let (ended, panics): (Vec<_>, Vec<_>) = ended.into_iter().partition(Result::is_ok);
        match panics.into_iter().filter_map(Result::err).min_by_key(|payload| payload.is::<PowerCut>()) {
            Some(payload) => resume_unwind(payload),
            None => ended.into_iter().filter_map(Result::ok).collect(),
        }
    }

    /// Charges processor time to this thread's core.
    pub fn compute(&self, ns: u64) {
        self.shared.access(|host, core| {
            host.pass(core, ns * 1000);
            host.begin(core);
        });
    }

    /// Where cores take turns, lets those go on whose time is less: what this core looks at next
    /// beside the machine (locks) it finds as they leave it.
    pub fn let_others_catch_up(&self) {
        self.shared.access(|_, _| ());
    }

    /// Lets a core that is behind a time wait until then.
    pub fn wait_on_core(&self, core: usize, ps: u64) {
        self.shared.look(|host, _| {
            host.use_core(core);
            host.pass_to(core, ps);
        });
    }

    /// Time of this thread's core, in picoseconds.
    pub fn now_ps(&self) -> u64 {
        self.shared.look(|host, core| host.now_ps(core))
    }

    /// Lets time pass until nothing is under way on a link or in a card. What waits for other cards
    /// that do not answer is not under way.
    ///
    /// # Panics
    /// If that is not reached within a second.
    pub fn settle(&self) {
        self.shared.access(|host, core| {
            let end_ps = host.now_ps(core) + 1_000_000_000_000;
            host.begin(core);
            while !host.fabric.is_idle() {
                assert!(host.now_ps(core) < end_ps, "a card does not come to rest");
                host.pass(core, 100_000);
                host.catch_up(core);
            }
        });
    }

    /// Arms a power cut in the place of an armed one. The cards' memories drop and tear by `seed`.
    pub fn arm_cut(&self, cut: Cut, seed: u64) {
        self.shared.look(|host, core| {
            // What the core has left behind is past, for the cut too.
            host.catch_up(core);
            host.arm(Some(cut), seed);
        });
    }

    /// Disarms the power cut.
    pub fn disarm_cut(&self) {
        self.shared.look(|host, _| host.arm(None, 0));
    }

    /// Cuts the power of host and cards at the time of this thread's core. Each core unwinds at its
    /// next access.
    pub fn cut_now(&self, seed: u64) {
        self.shared.look(|host, core| {
            host.arm(None, seed);
            host.catch_up(core);
            host.fabric.cut();
        });
    }

    /// Holds what is sent to a card from now on, on its link, until so much time of this thread's
    /// core has passed or the power is cut. Fences do not wait for it.
    pub fn hold_link(&self, card: usize, ns: u64) {
        self.shared.look(|host, core| host.fabric.hold_link(card, host.now_ps(core) + ns * 1000));
    }

    /// Whether the power is on.
    pub fn is_powered(&self) -> bool {
        self.shared.look(|host, _| host.fabric.is_powered())
    }

    /// Boots a card in each slot, on the medium that the cut left. Caches are cold, host memory is
    /// empty, mappings and DMA buffers of before are dead, and so is an armed cut.
    ///
    /// # Panics
    /// If the power is on.
    pub fn power_up(&self, card: &dyn Power) {
        self.power_up_each(&vec![Socket::Card(card); self.cards()]);
    }

    /// The same, with a choice for each slot.
    ///
    /// # Panics
    /// If the power is on, or there is not one choice a slot.
    pub fn power_up_each(&self, sockets: &[Socket]) {
        self.shared.look(|host, _| {
            assert_eq!(sockets.len(), host.cards(), "one choice a slot");
            let plug = |(slot, socket): (&mut Slot, &Socket)| {
                let medium = slot.medium.take().expect("the power is off");
                match socket {
                    Socket::Card(card) => Plug::Card(card.power_up(medium)),
                    Socket::Silent => Plug::Silent(medium),
                    Socket::Absent => Plug::Absent(medium),
                }
            };
            assert!(!host.fabric.is_powered(), "the power is off");
            let plugs = host.fabric.slots.iter_mut().zip(sockets).map(plug).collect();
            host.power_up(plugs);
        });
    }

    /// The last power cut: its moment, and how long after each kind of event it came.
    pub fn last_cut(&self) -> Option<CutRecord> {
        self.shared.look(|host, _| host.fabric.last_cut)
    }

    /// Lines in the caches that were stored to and not written back. A power cut loses them; they
    /// are shown until the next power-up.
    pub fn dirty_lines(&self) -> usize {
        self.shared.look(|host, _| host.dirty_lines())
    }

    /// Energy for the saves of further power cuts, in cycles of the card, in the place of
    /// [`Parameters::save_cycles`].
    pub fn set_save_cycles(&self, cycles: u64) {
        self.shared.look(|host, _| {
            host.fabric.parameters.save_cycles = cycles;
            host.fabric.slots.iter_mut().for_each(|slot| slot.save_cycles = None);
        });
    }

    /// The same for one card.
    pub fn set_save_cycles_of(&self, card: usize, cycles: u64) {
        self.shared.look(|host, _| host.fabric.slots[card].save_cycles = Some(cycles));
    }

    /// A copy of the first card's medium, while the power is off.
    pub fn medium(&self) -> Option<Medium> {
        self.look_at_medium(Medium::clone)
    }

    /// Looks at the first card's medium, while the power is off.
    pub fn look_at_medium<R>(&self, look: impl FnOnce(&Medium) -> R) -> Option<R> {
        self.look_at_medium_of(0, look)
    }

    /// Looks at the medium of a card, while the power is off or the card is not there.
    pub fn look_at_medium_of<R>(&self, card: usize, look: impl FnOnce(&Medium) -> R) -> Option<R> {
        self.shared.look(|host, _| host.fabric.slots[card].medium.as_ref().map(look))
    }

    /// Puts another medium in for the first card, while the power is off: the same size.
    ///
    /// # Panics
    /// If the power is on or the size differs.
    pub fn replace_medium(&self, medium: Medium) {
        self.replace_medium_of(0, medium);
    }

    /// The same for any card.
    ///
    /// # Panics
    /// If the power is on or the size differs.
    pub fn replace_medium_of(&self, card: usize, medium: Medium) {
        self.shared.look(|host, _| {
            assert!(!host.fabric.is_powered(), "the power is off");
            let old = host.fabric.slots[card].medium.as_mut().expect("a slot without power has its medium");
            assert_eq!(old.bytes.len(), medium.bytes.len(), "a medium keeps its size");
            *old = medium;
        });
    }

    /// Cycle of the cards since power-up, as far as they have been simulated; 0 without power.
    pub fn cycle(&self) -> u64 {
        self.shared.look(|host, _| host.fabric.cycle())
    }

    /// Counters since the machine was made, over all cards.
    pub fn statistics(&self) -> Statistics {
        self.shared.look(|host, _| host.all_statistics())
    }

    /// Counters of one card.
    pub fn statistics_of(&self, card: usize) -> Statistics {
        self.shared.look(|host, _| *host.statistics(card))
    }

    /// Starts or ends the recording of events at the cards' ports; gives what was recorded.
    pub fn record_events(&self, on: bool) -> Vec<EventRecord> {
        self.shared.look(|host, _| host.fabric.trigger.record_events(on))
    }

    /// Lets the cards show what happens inside them, so that a cut may wait for it and
    /// [`CutRecord::since`] knows of it: from now on, and after each power-up.
    pub fn watch_card(&self, on: bool) {
        self.shared.look(|host, _| host.fabric.watch(on));
    }
}
