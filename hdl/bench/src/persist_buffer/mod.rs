//! The persist buffer beside the machine that defines it: both get the same random events, and are
//! compared in every cycle.

mod campaign;

pub use campaign::{Record, run};

use nearpm_hdl::dut::{Dut, PortId};
use nearpm_hdl::persist_buffer::kind;
use nearpm_sbrp::buffer::{Answer, BufferRules, Flush, Kind, PersistBuffer, Sizes};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How large the unit is.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Warps.
    pub warps: usize,
    /// Lines of L1.
    pub lines: usize,
    /// Entries, and the largest count of outstanding flushes.
    pub sizes: Sizes,
}

impl Shape {
    /// The paper's.
    pub const PAPER: Shape = Shape { warps: 32, lines: 512, sizes: Sizes { entries: 256, outstanding: 255 } };
    /// That of the proofs: full and empty by turns.
    pub const SMALL: Shape = Shape { warps: 4, lines: 4, sizes: Sizes { entries: 4, outstanding: 3 } };
}

/// What has happened on both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were answered, steps of the head and acknowledgements: what the machine was
    /// asked to do.
    pub events: u64,
    /// Requests that got an entry or a share of one, and lines that were evicted.
    pub accepted: u64,
    /// Of these, warps that were held.
    pub held: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Lines that went to memory.
    pub flushed: u64,
    /// Entries that left without one.
    pub left: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.events += more.events;
        self.accepted += more.accepted;
        self.held += more.held;
        self.refused += more.refused;
        self.flushed += more.flushed;
        self.left += more.left;
    }
}

/// A request of a warp.
#[derive(Clone, Copy, Debug)]
struct Request {
    kind: u64,
    warp: usize,
    line: usize,
}

/// How likely what is in a cycle: with other habits the buffer is empty or full, coalesces or
/// stalls.
struct Habits {
    warps: usize,
    lines: usize,
    asks: f64,
    persists: f64,
    evictions: f64,
    advances: f64,
    acknowledges: f64,
    /// Warps that are held ask, too, which those of a GPU do not.
    held_ask: bool,
}

impl Habits {
    fn new(random: &mut ChaCha8Rng, shape: Shape) -> Habits {
        // More often small than large: full queues, and counters that are never zero.
        let seldom = |random: &mut ChaCha8Rng| f64::powi(random.random_range(0.1..1.0), 2);
        let up_to = |random: &mut ChaCha8Rng, most: usize| 1 << random.random_range(0..=most.ilog2());
        Habits {
            warps: up_to(random, shape.warps),
            lines: up_to(random, shape.lines),
            asks: random.random_range(0.2..1.0),
            persists: 1.0 - seldom(random),
            evictions: random.random_range(0.0..0.3),
            advances: seldom(random),
            acknowledges: seldom(random) / 2.0,
            held_ask: random.random_bool(0.25),
        }
    }

    fn request(&self, random: &mut ChaCha8Rng, buffer: &PersistBuffer) -> Option<Request> {
        let (warp, line) = (random.random_range(0..self.warps), random.random_range(0..self.lines));
        let kind = match () {
            () if random.random_bool(self.persists) => kind::PERSIST,
            () if random.random_bool(self.evictions) => kind::EVICTED,
            () => random.random_range(kind::OFENCE..=kind::DFENCE),
        };
        let asks = random.random_bool(self.asks) && (self.held_ask || !buffer.holds(warp));
        asks.then_some(Request { kind, warp, line })
    }
}

macro_rules! pins {
    ($($name:ident),+ $(,)?) => {
        struct Pins { $($name: PortId),+ }
        impl Pins {
            fn new(dut: &dyn Dut) -> Self {
                Self { $($name: dut.port(stringify!($name))),+ }
            }
        }
    };
}
pins!(
    request_valid,
    request_ready,
    request_kind,
    request_warp,
    request_line,
    accepted,
    held,
    refused,
    advance,
    flush_valid,
    flush_line,
    left,
    acknowledge,
    flush_status,
    order_delay,
    eviction_delay,
    outstanding_count,
    full,
    drained,
);

/// Both, side by side.
struct Pair<'a> {
    dut: &'a mut dyn Dut,
    pins: Pins,
    machine: PersistBuffer,
    shape: Shape,
    heads_turn: bool,
    asked: Option<Request>,
    counts: Counts,
}

impl Pair<'_> {
    fn read(&mut self, pin: PortId) -> u64 {
        self.dut.read(pin).to_u64()
    }

    /// The request that was taken in the cycle before, on the machine: accepted, held, refused, the
    /// line that goes.
    fn answer(&mut self) -> (bool, bool, bool, Option<usize>) {
        let Some(Request { kind, warp, line }) = self.asked.take() else { return (false, false, false, None) };
        self.counts.events += 1;
        let answer = match kind {
            kind::PERSIST => self.machine.persist(warp, line),
            kind::EVICTED if self.machine.evict(line) => return (true, false, false, Some(line)),
            kind::EVICTED => Answer::Refused,
            order => self.machine.order(warp, kind_of(order)),
        };
        (answer != Answer::Refused, answer == Answer::Held, answer == Answer::Refused, None)
    }

    /// A cycle, in which the head may move, memory may answer, and a warp may ask.
    fn cycle(&mut self, request: Option<Request>, advance: bool, acknowledge: bool) {
        let Request { kind, warp, line } = request.unwrap_or(Request { kind: 0, warp: 0, line: 0 });
        for (pin, value) in [
            (self.pins.request_valid, u64::from(request.is_some())),
            (self.pins.request_kind, kind),
            (self.pins.request_warp, warp as u64),
            (self.pins.request_line, line as u64),
            (self.pins.advance, u64::from(advance)),
            (self.pins.acknowledge, u64::from(acknowledge)),
        ] {
            self.dut.write(pin, value.into());
        }
        // Of no account where nothing is outstanding, and given all the same.
        let acknowledge = acknowledge && self.machine.outstanding() > 0;
        let (mut answer, mut left) = ((false, false, false, None), false);
        if self.heads_turn {
            if advance {
                self.counts.events += 1;
                match self.machine.flush() {
                    Flush::Line(line) => answer.3 = Some(line),
                    Flush::Left => left = true,
                    Flush::Nothing => {}
                }
            }
            self.asked = request;
        } else {
            answer = self.answer();
        }
        self.compare(answer, left);
        if acknowledge {
            self.counts.events += 1;
            self.machine.acknowledge();
        }
        self.dut.cycle();
        self.heads_turn = !self.heads_turn;
        self.compare_state();
    }

    fn compare(&mut self, (accepted, held, refused, line): (bool, bool, bool, Option<usize>), left: bool) {
        let (ready, sends) = (self.pins.request_ready, self.pins.flush_valid);
        let told =
            [self.pins.accepted, self.pins.held, self.pins.refused, self.pins.left].map(|pin| self.read(pin) == 1);
        assert_eq!(self.read(ready) == 1, self.heads_turn, "turns, cycle {}", self.dut.cycles());
        assert_eq!(told, [accepted, held, refused, left], "accepted, held, refused, left, cycle {}", self.dut.cycles());
        assert_eq!(self.read(sends) == 1, line.is_some(), "a line goes, cycle {}", self.dut.cycles());
        if let Some(line) = line {
            let pin = self.pins.flush_line;
            assert_eq!(self.read(pin), line as u64, "the line, cycle {}", self.dut.cycles());
        }
        self.counts.accepted += u64::from(accepted);
        self.counts.held += u64::from(held);
        self.counts.refused += u64::from(refused);
        self.counts.left += u64::from(left);
        self.counts.flushed += u64::from(line.is_some());
    }

    fn compare_state(&mut self) {
        let Pins { flush_status, order_delay, eviction_delay, outstanding_count, full, drained, .. } = self.pins;
        let shown = [flush_status, order_delay, eviction_delay, outstanding_count, full, drained];
        let shown = shown.map(|pin| self.read(pin));
        let [marks, order, eviction] = self.machine.masks().map(u64::from);
        let is_full = u64::from(self.machine.entries().count() == self.shape.sizes.entries);
        let outstanding = u64::from(self.machine.outstanding());
        let wanted = [marks, order, eviction, outstanding, is_full, u64::from(self.machine.is_drained())];
        assert_eq!(shown, wanted, "FSM, ODM, EDM, ACTR, full, drained, cycle {}", self.dut.cycles());
    }
}

/// The machine's name of an ordering operation.
fn kind_of(order: u64) -> Kind {
    match order {
        kind::OFENCE => Kind::OFence,
        kind::ACQUIRE_BLOCK => Kind::AcquireBlock,
        kind::RELEASE_BLOCK => Kind::ReleaseBlock,
        kind::ACQUIRE_DEVICE => Kind::AcquireDevice,
        kind::RELEASE_DEVICE => Kind::ReleaseDevice,
        _ => Kind::DFence,
    }
}

/// Runs `cycles` cycles of random events on a unit of that shape and on the machine, then lets it
/// run empty.
///
/// # Panics
/// When they differ, or the buffer does not run empty once nothing is asked and all is
/// acknowledged.
pub fn side_by_side(dut: &mut dyn Dut, shape: Shape, seed: u64, cycles: u64) -> Counts {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let habits = Habits::new(&mut random, shape);
    dut.set("reset", true);
    dut.set("request_valid", true);
    dut.cycle();
    assert!(!dut.get_bool("request_ready"), "a request is taken in reset");
    dut.reset();
    let pins = Pins::new(dut);
    let machine = PersistBuffer::new(BufferRules::all(), shape.sizes);
    let mut pair = Pair { dut, pins, machine, shape, heads_turn: true, asked: None, counts: Counts::default() };
    for _ in 0..cycles {
        let request = habits.request(&mut random, &pair.machine);
        let (advance, acknowledge) = (random.random_bool(habits.advances), random.random_bool(habits.acknowledges));
        pair.cycle(request, advance, acknowledge);
    }
    // Each entry takes two cycles at the head, and each flush one to be acknowledged.
    let bound = 4 * shape.sizes.entries + 2 * shape.sizes.outstanding as usize + 4;
    let emptied = (0..bound).any(|_| {
        pair.cycle(None, true, true);
        pair.machine.is_drained()
    });
    assert!(emptied, "seed {seed}: not empty {bound} cycles after the last request: {:?}", pair.machine);
    pair.counts
}
