//! A behavioural AXI memory behind the ports `m$*` of a unit, or behind one of two.

use nearpm_hdl::dut::{Dut, PortId, Value};
use nearpm_interface::geometry::{LINE, LINE_U64};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A line of memory.
pub type Line = [u8; LINE];

macro_rules! pins {
    ($($name:ident),+ $(,)?) => {
        struct Pins { $($name: PortId),+ }
        impl Pins {
            fn new(dut: &dyn Dut, bus: &str) -> Self {
                Self { $($name: dut.port(&format!("{bus}${}", stringify!($name)))),+ }
            }
        }
    };
}
pins!(
    awid, awaddr, awlen, awvalid, awready, wdata, wstrb, wlast, wvalid, wready, bid, bresp, bvalid, bready, arid,
    araddr, arlen, arvalid, arready, rid, rdata, rresp, rlast, rvalid, rready,
);

/// A burst under way.
struct Burst {
    id: u64,
    line: u64,
    beats: u64,
    /// Beats that are through.
    at: u64,
    /// Cycle from which it may be answered.
    from: u64,
}

/// Memory with random delays: in order for one identifier, in any order between identifiers.
///
/// A line that was never written holds bytes that are made from its address.
pub struct Memory {
    pins: Pins,
    rng: ChaCha8Rng,
    lines: BTreeMap<u64, Line>,
    reads: VecDeque<Burst>,
    /// Addresses whose data is not complete, in order.
    writing: VecDeque<Burst>,
    /// Writes that wait for their answer.
    answers: VecDeque<Burst>,
    now: u64,
    stall: f64,
    read_cycles: u64,
    write_cycles: u64,
    present_read: Option<usize>,
    /// The present read's next beat is offered and not taken.
    beat_waits: bool,
    present_answer: Option<usize>,
    /// The device line of a line behind this port.
    device_line: Box<dyn Fn(u64) -> u64>,
    /// Lines that cannot be read.
    pub bad_reads: BTreeSet<u64>,
    /// Lines that cannot be written.
    pub bad_writes: BTreeSet<u64>,
    /// What passed, and when: `ar`, `r`, `aw`, `w`, `b`.
    pub log: Vec<(&'static str, u64)>,
    /// A fault to plant: every strobe becomes its whole line.
    pub round_to_lines: bool,
}

impl Memory {
    pub fn new(dut: &dyn Dut, seed: u64) -> Self {
        Self::behind(dut, "m", seed, |line| line)
    }

    /// What lies behind one port, whose lines are these of the device.
    pub fn behind(dut: &dyn Dut, bus: &str, seed: u64, device_line: impl Fn(u64) -> u64 + 'static) -> Self {
        Self {
            pins: Pins::new(dut, bus),
            rng: ChaCha8Rng::seed_from_u64(seed ^ 0x006d_656d),
            lines: BTreeMap::new(),
            reads: VecDeque::new(),
            writing: VecDeque::new(),
            answers: VecDeque::new(),
            now: 0,
            stall: 0.3,
            read_cycles: 20,
            write_cycles: 10,
            present_read: None,
            beat_waits: false,
            present_answer: None,
            device_line: Box::new(device_line),
            bad_reads: BTreeSet::new(),
            bad_writes: BTreeSet::new(),
            log: Vec::new(),
            round_to_lines: false,
        }
    }

    /// No stalls, fixed delays: cycles from the address to the first beat, and from the last beat
    /// to the answer.
    pub fn calm(&mut self, read_cycles: u64, write_cycles: u64) {
        (self.stall, self.read_cycles, self.write_cycles) = (0.0, read_cycles, write_cycles);
    }

    /// What a line holds that was never written.
    pub fn start(&self, line: u64) -> Line {
        let mut word = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        std::array::from_fn(|_| {
            word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (word >> 56) as u8
        })
    }

    pub fn line(&self, line: u64) -> Line {
        self.lines.get(&line).copied().unwrap_or(self.start(line))
    }

    pub fn put(&mut self, line: u64, bytes: Line) {
        self.lines.insert(line, bytes);
    }

    pub fn written(&self) -> &BTreeMap<u64, Line> {
        &self.lines
    }

    pub fn bytes(&self, at: u64, count: u64) -> Vec<u8> {
        (at..at + count).map(|a| self.line(a / LINE_U64)[(a % LINE_U64) as usize]).collect()
    }

    /// Whether a write to one of these lines is not answered.
    pub fn unanswered(&self, first: u64, last: u64) -> bool {
        let touches = |b: &Burst| b.line <= last && b.line + b.beats > first;
        self.writing.iter().chain(&self.answers).any(touches)
    }

    /// Whether a write with this identifier is not answered.
    pub fn owes(&self, id: u64) -> bool {
        self.writing.iter().chain(&self.answers).any(|burst| burst.id == id)
    }

    pub fn idle(&self) -> bool {
        self.reads.is_empty() && self.writing.is_empty() && self.answers.is_empty()
    }

    fn go(&mut self) -> bool {
        self.stall == 0.0 || !self.rng.random_bool(self.stall)
    }

    /// One of the bursts that may be answered: the oldest of a random identifier.
    fn pick(&mut self, reads: bool) -> Option<usize> {
        let queue = if reads { &self.reads } else { &self.answers };
        let mut ids = BTreeSet::new();
        let ready: Vec<_> = queue
            .iter()
            .enumerate()
            .filter(|(_, b)| ids.insert(b.id) && b.from <= self.now)
            .map(|(index, _)| index)
            .collect();
        let index = if self.stall == 0.0 { 0 } else { self.rng.random_range(0..ready.len().max(1)) };
        ready.get(index).copied()
    }

    /// One cycle of the unit.
    pub fn step(&mut self, dut: &mut dyn Dut) {
        self.act(dut);
        dut.cycle();
    }

    /// What the memory does in a cycle, up to its end: all inputs of the unit that belong to it are
    /// set.
    pub fn act(&mut self, dut: &mut dyn Dut) {
        let high = |dut: &mut dyn Dut, pin| dut.read(pin).bit(0);
        // Answers. What is offered stays until it is taken.
        if !self.beat_waits && self.present_read.is_none_or(|i| self.reads[i].at == 0) {
            self.present_read = if self.go() { self.pick(true) } else { None };
        }
        let offer = self.present_read.is_some()
            && (self.beat_waits || self.reads[self.present_read.unwrap()].at == 0 || self.go());
        dut.write(self.pins.rvalid, offer.into());
        if offer {
            let burst = &self.reads[self.present_read.unwrap()];
            let line = burst.line + burst.at;
            dut.write(self.pins.rid, burst.id.into());
            dut.write(self.pins.rdata, Value::from_bytes(&self.line(line)));
            dut.write(self.pins.rresp, (if self.bad_reads.contains(&line) { 2u64 } else { 0 }).into());
            dut.write(self.pins.rlast, (burst.at + 1 == burst.beats).into());
        }
        if self.present_answer.is_none() && self.go() {
            self.present_answer = self.pick(false);
        }
        let answer = self.present_answer;
        dut.write(self.pins.bvalid, answer.is_some().into());
        if let Some(index) = answer {
            let burst = &self.answers[index];
            let bad = self.bad_writes.range(burst.line..burst.line + burst.beats).next().is_some();
            dut.write(self.pins.bid, burst.id.into());
            dut.write(self.pins.bresp, (if bad { 2u64 } else { 0 }).into());
        }
        // Requests.
        let (ar, aw) = (self.go(), self.go());
        dut.write(self.pins.arready, ar.into());
        dut.write(self.pins.awready, aw.into());
        let device_line = &self.device_line;
        let burst = |dut: &mut dyn Dut, id, addr, len, from| {
            let address = dut.read(addr).to_u64();
            assert_eq!(address % LINE_U64, 0);
            let burst = Burst {
                id: dut.read(id).to_u64(),
                line: device_line(address / LINE_U64),
                beats: dut.read(len).to_u64() + 1,
                at: 0,
                from,
            };
            assert_eq!(burst.line / 64, (burst.line + burst.beats - 1) / 64, "a burst crosses 4 KiB");
            let last = device_line(address / LINE_U64 + burst.beats - 1);
            assert_eq!(last, burst.line + burst.beats - 1, "a burst leaves its piece of the memory");
            burst
        };
        if ar && high(dut, self.pins.arvalid) {
            let from = self.now + self.read_cycles;
            self.reads.push_back(burst(dut, self.pins.arid, self.pins.araddr, self.pins.arlen, from));
            self.log.push(("ar", dut.cycles()));
        }
        if aw && high(dut, self.pins.awvalid) {
            self.writing.push_back(burst(dut, self.pins.awid, self.pins.awaddr, self.pins.awlen, 0));
            self.log.push(("aw", dut.cycles()));
        }
        // Data may be offered before its address is taken; it has to wait.
        let w = self.go() && !self.writing.is_empty();
        dut.write(self.pins.wready, w.into());
        if w && high(dut, self.pins.wvalid) {
            let data = dut.read(self.pins.wdata).to_bytes(LINE);
            let mut strobes = dut.read(self.pins.wstrb).to_u64();
            if self.round_to_lines && strobes != 0 {
                strobes = u64::MAX;
            }
            let burst = self.writing.front_mut().expect("data behind its address");
            let line = burst.line + burst.at;
            burst.at += 1;
            assert_eq!(dut.read(self.pins.wlast).bit(0), burst.at == burst.beats, "wlast");
            let last = burst.at == burst.beats;
            if strobes != 0 && !self.bad_writes.contains(&line) {
                let mut held = self.line(line);
                for lane in (0..LINE).filter(|lane| strobes >> lane & 1 == 1) {
                    held[lane] = data[lane];
                }
                self.lines.insert(line, held);
            }
            self.log.push(("w", dut.cycles()));
            if last {
                let mut burst = self.writing.pop_front().expect("it is there");
                burst.from = self.now + self.write_cycles;
                self.answers.push_back(burst);
            }
        }
        if let Some(index) = answer
            && high(dut, self.pins.bready)
        {
            self.answers.remove(index);
            self.present_answer = None;
            self.log.push(("b", dut.cycles()));
        }
        self.beat_waits = offer && !high(dut, self.pins.rready);
        if offer && !self.beat_waits {
            let index = self.present_read.unwrap();
            self.reads[index].at += 1;
            self.log.push(("r", dut.cycles()));
            if self.reads[index].at == self.reads[index].beats {
                self.reads.remove(index);
                self.present_read = None;
            }
        }
        self.now += 1;
    }
}
