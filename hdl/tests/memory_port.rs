//! The memory port with six requesters of random will, against a behavioural memory.

use nearpm_hdl::bundles::{REQUESTERS, SYSTEM};
use nearpm_hdl::dut::{Dut, PortId, Value, on_both_back_ends};
use nearpm_hdl::units::memory_port::{DIRECTION_BEATS, MemoryPort};
use nearpm_hdl_bench::memory::{Line, Memory};
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::geometry::{LINE, UNITS};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};

macro_rules! pins {
    ($($name:ident),+ $(,)?) => {
        struct Pins { $($name: PortId),+ }
        impl Pins {
            fn new(dut: &dyn Dut, requester: usize) -> Self {
                Self { $($name: dut.port(&format!("req${requester}${}", stringify!($name)))),+ }
            }
        }
    };
}
pins!(
    rd_valid,
    rd_ready,
    rd_line,
    rd_beats,
    rd_tag,
    rdata_valid,
    rdata,
    rdata_tag,
    rdata_last,
    rdata_error,
    wr_valid,
    wr_ready,
    wr_line,
    wr_beats,
    wr_tag,
    wdata,
    wstrb,
    wdata_ready,
    b_valid,
    b_tag,
    b_error,
);

/// One side of a requester: what it asks for and what it waits for.
struct Requester {
    pins: Pins,
    asks_read: Option<(u64, u64, u64)>,
    asks_write: Option<(u64, u64, u64)>,
    /// Reads under way, by tag: the lines that must come.
    reads: BTreeMap<u64, VecDeque<(u64, bool)>>,
    /// Lines of granted writes whose data is not taken.
    data: VecDeque<(u64, Line, u64)>,
    answers: BTreeMap<u64, u64>,
    read_lines: u64,
    written_lines: u64,
    waited: u64,
}

/// First line of what a requester writes; it reads what nobody writes.
fn home(requester: usize) -> u64 {
    0x10_0000 * (requester as u64 + 1)
}

struct Bench<'a> {
    dut: &'a mut dyn Dut,
    memory: Memory,
    rng: ChaCha8Rng,
    requesters: Vec<Requester>,
    oracle: BTreeMap<u64, Line>,
    /// Bursts in the order in which the memory takes them: (write, beats).
    grants: Vec<(bool, u64)>,
    longest_wait: u64,
    /// The system asks in one of so many cycles.
    system_every: u64,
}

impl<'a> Bench<'a> {
    fn new(dut: &'a mut dyn Dut, seed: u64) -> Self {
        let memory = Memory::new(dut, seed);
        let requesters = (0..REQUESTERS).map(|index| Requester {
            pins: Pins::new(dut, index),
            asks_read: None,
            asks_write: None,
            reads: BTreeMap::new(),
            data: VecDeque::new(),
            answers: BTreeMap::new(),
            read_lines: 0,
            written_lines: 0,
            waited: 0,
        });
        let requesters = requesters.collect();
        dut.reset();
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Self {
            dut,
            memory,
            rng,
            requesters,
            oracle: BTreeMap::new(),
            grants: Vec::new(),
            longest_wait: 0,
            system_every: 1,
        }
    }

    fn high(&mut self, port: PortId) -> bool {
        self.dut.read(port).bit(0)
    }

    /// A burst in the requester's region, inside of 4 KiB.
    fn burst(&mut self, index: usize) -> (u64, u64, u64) {
        let line = home(index) + self.rng.random_range(0..512u64);
        let most = 16.min(64 - line % 64);
        (line, self.rng.random_range(1..=most), self.rng.random_range(0..8u64))
    }

    /// One cycle in which requesters ask with the chances `read` and `write`.
    fn step(&mut self, read: f64, write: f64) {
        let waits =
            |r: &Requester| r.reads.values().any(|lines| !lines.is_empty()) || r.answers.values().any(|&n| n > 0);
        let outstanding = self.requesters.iter().any(waits);
        assert!(!outstanding || !self.dut.get_bool("quiet"), "quiet with a burst outstanding");
        for index in 0..REQUESTERS {
            let may_ask = index != SYSTEM || self.dut.cycles().is_multiple_of(self.system_every);
            if may_ask && self.requesters[index].asks_read.is_none() && self.rng.random_bool(read) {
                let (line, beats, tag) = self.burst(index);
                self.requesters[index].asks_read = Some((line + 0x8_0000, beats, tag));
            }
            // A granted burst's data comes before the next request.
            let free = self.requesters[index].asks_write.is_none() && self.requesters[index].data.is_empty();
            if may_ask && free && self.rng.random_bool(write) {
                self.requesters[index].asks_write = Some(self.burst(index));
            }
            let r = &self.requesters[index];
            let p = &r.pins;
            self.dut.write(p.rd_valid, r.asks_read.is_some().into());
            if let Some((line, beats, tag)) = r.asks_read {
                self.dut.write(p.rd_line, line.into());
                self.dut.write(p.rd_beats, (beats - 1).into());
                self.dut.write(p.rd_tag, tag.into());
            }
            self.dut.write(p.wr_valid, r.asks_write.is_some().into());
            if let Some((line, beats, tag)) = r.asks_write {
                self.dut.write(p.wr_line, line.into());
                self.dut.write(p.wr_beats, (beats - 1).into());
                self.dut.write(p.wr_tag, tag.into());
            }
            if let Some((_, data, strobes)) = r.data.front() {
                self.dut.write(p.wdata, Value::from_bytes(data));
                self.dut.write(p.wstrb, (*strobes).into());
            }
        }
        self.memory.act(self.dut);
        self.note_grant("ar", false);
        self.note_grant("aw", true);
        (0..REQUESTERS).for_each(|index| self.take_data(index));
        (0..REQUESTERS).for_each(|index| self.answers_to(index));
        self.dut.cycle();
    }

    /// Notes a burst that an address channel hands to the memory.
    fn note_grant(&mut self, channel: &str, write: bool) {
        let [valid, ready] = ["valid", "ready"].map(|end| self.dut.get_bool(&format!("m${channel}{end}")));
        if valid && ready {
            self.grants.push((write, self.dut.get_u64(&format!("m${channel}len")) + 1));
        }
    }

    /// The port takes a line of a requester.
    fn take_data(&mut self, index: usize) {
        if !self.high(self.requesters[index].pins.wdata_ready) {
            return;
        }
        let (line, data, strobes) = self.requesters[index].data.pop_front().expect("data was granted");
        let start = self.memory.start(line);
        let held = self.oracle.entry(line).or_insert(start);
        (0..LINE).filter(|b| strobes >> b & 1 == 1).for_each(|b| held[b] = data[b]);
        self.requesters[index].written_lines += 1;
    }

    /// Takes what the port gives a requester.
    fn answers_to(&mut self, index: usize) {
        let pin = |bench: &Self, pin: fn(&Pins) -> PortId| pin(&bench.requesters[index].pins);
        let mut taken = false;
        let [rd_ready, wr_ready] = [pin(self, |p| p.rd_ready), pin(self, |p| p.wr_ready)].map(|port| self.high(port));
        if rd_ready && let Some((line, beats, tag)) = self.requesters[index].asks_read.take() {
            let lines = self.requesters[index].reads.entry(tag).or_default();
            lines.extend((0..beats).map(|beat| (line + beat, beat + 1 == beats)));
            taken = true;
        }
        if wr_ready && let Some((line, beats, tag)) = self.requesters[index].asks_write.take() {
            for beat in 0..beats {
                let data = std::array::from_fn(|_| self.rng.random());
                let strobes = if self.rng.random_bool(0.5) { u64::MAX } else { self.rng.random() };
                self.requesters[index].data.push_back((line + beat, data, strobes));
            }
            *self.requesters[index].answers.entry(tag).or_default() += 1;
            taken = true;
        }
        let r = &mut self.requesters[index];
        r.waited = if !taken && (r.asks_read.is_some() || r.asks_write.is_some()) { r.waited + 1 } else { 0 };
        self.longest_wait = self.longest_wait.max(r.waited);
        if self.high(pin(self, |p| p.rdata_valid)) {
            let tag = self.dut.read(pin(self, |p| p.rdata_tag)).to_u64();
            let queue = self.requesters[index].reads.get_mut(&tag).expect("a read of that tag");
            let (line, last) = queue.pop_front().expect("a line was asked for");
            assert_eq!(self.dut.read(pin(self, |p| p.rdata)), Value::from_bytes(&self.memory.line(line)));
            assert_eq!(self.high(pin(self, |p| p.rdata_last)), last);
            let bad = self.memory.bad_reads.contains(&line);
            assert_eq!(self.high(pin(self, |p| p.rdata_error)), bad);
            self.requesters[index].read_lines += 1;
        }
        if self.high(pin(self, |p| p.b_valid)) {
            let tag = self.dut.read(pin(self, |p| p.b_tag)).to_u64();
            let count = self.requesters[index].answers.get_mut(&tag).expect("a write of that tag");
            *count = count.checked_sub(1).expect("a write of that tag is unanswered");
            assert!(!self.high(pin(self, |p| p.b_error)));
        }
    }

    fn drain(&mut self) {
        let asks = |r: &Requester| r.asks_read.is_some() || r.asks_write.is_some();
        let mut limit = 100_000;
        while self.requesters.iter().any(asks) || !self.dut.get_bool("quiet") {
            self.step(0.0, 0.0);
            limit -= 1;
            assert!(limit > 0, "the port does not come to rest");
        }
        self.step(0.0, 0.0);
        for r in &self.requesters {
            assert!(r.asks_read.is_none() && r.asks_write.is_none() && r.data.is_empty());
            assert!(r.reads.values().all(VecDeque::is_empty) && r.answers.values().all(|c| *c == 0));
        }
        assert!(self.memory.idle() && self.dut.get_bool("quiet"));
        assert_eq!(self.memory.written(), &self.oracle);
    }
}

fn lines_reach_who_asked(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 1);
    for line in 0..40 {
        bench.memory.bad_reads.insert(home(2) + 0x8_0000 + 13 * line);
    }
    let cycles = if bench.dut.back_end() == "rust-hdl" { 400 } else { 20_000 };
    for (read, write) in [(0.5, 0.5), (0.02, 0.02), (1.0, 1.0), (1.0, 0.05), (0.05, 1.0), (0.0, 0.5), (0.5, 0.0)] {
        for _ in 0..cycles {
            bench.step(read, write);
        }
    }
    bench.drain();
    assert!(bench.requesters.iter().all(|r| r.read_lines > 0 && r.written_lines > 0));
}

#[test]
fn every_line_reaches_who_asked() {
    on_both_back_ends::<MemoryPort>(lines_reach_who_asked);
}

fn directions_take_turns(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 2);
    bench.memory.calm(20, 8);
    let cycles = if bench.dut.back_end() == "rust-hdl" { 1500 } else { 20_000 };
    // The system, which has priority, asks now and then.
    bench.system_every = 50;
    for _ in 0..cycles {
        bench.step(1.0, 1.0);
    }
    let (mut runs, mut run) = (Vec::new(), (false, 0));
    for (write, beats) in &bench.grants {
        if *write != run.0 {
            runs.push(run.1);
            run = (*write, 0);
        }
        run.1 += beats;
    }
    runs.push(run.1);
    let longest = runs.iter().max().copied().unwrap_or(0);
    let mean = runs.iter().sum::<u64>() as f64 / runs.len() as f64;
    println!("beats a direction: mean {mean:.1}, at most {longest}; longest wait {} cycles", bench.longest_wait);
    // The burst that passes the budget, and one more.
    assert!(longest < DIRECTION_BEATS + 2 * 16);
    // A turn that is cut short costs the memory a change of direction.
    assert!(mean > 0.75 * DIRECTION_BEATS as f64, "{mean:.1} beats a direction on average");
    assert!(bench.longest_wait <= 16 * 2 * REQUESTERS as u64 * 2, "{} cycles", bench.longest_wait);
    let shares: Vec<_> = (0..UNITS).map(|u| bench.requesters[u].read_lines).collect();
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(*most < 2 * *least, "{shares:?}");
}

#[test]
fn a_direction_keeps_the_port_for_2_kib_and_nobody_starves() {
    on_both_back_ends::<MemoryPort>(directions_take_turns);
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "the data of a write is taken from another requester",
        edits: &[Edit::Text("w_source$d = Source$Unit2;", "w_source$d = FAULT ? Source$Unit1 : Source$Unit2;", 1)],
        scenario: lines_reach_who_asked,
        seen: "data was granted",
    },
    UnitFault {
        module: "",
        what: "a write's answer goes to the requester beside",
        edits: &[Edit::Text(
            "b_for$3$d = m$bvalid & (b_index == 3);",
            "b_for$3$d = m$bvalid & (b_index == (FAULT ? 2 : 3));",
            1,
        )],
        scenario: lines_reach_who_asked,
        seen: "a write of that tag",
    },
    UnitFault {
        module: "",
        what: "an error of a read is not passed on",
        edits: &[Edit::Last("req$2$rdata_error", "1'b0")],
        scenario: lines_reach_who_asked,
        seen: "left: ",
    },
    UnitFault {
        module: "",
        what: "a burst is granted while data of the one before is left",
        edits: &[Edit::Text("& (~state$q[(64'h5)+:(1)] | (w_take", "& (~state$q[(64'h5)+:(1)] | FAULT | (w_take", 1)],
        scenario: lines_reach_who_asked,
        seen: "wlast",
    },
    UnitFault {
        module: "",
        what: "the port is quiet while writes are unanswered",
        edits: &[Edit::Last("quiet", "~|reads$q")],
        scenario: lines_reach_who_asked,
        seen: "quiet with a burst outstanding",
    },
    UnitFault {
        module: "",
        what: "a direction keeps the port as long as it asks",
        edits: &[Edit::Each("spent", "1'b0", 1)],
        scenario: directions_take_turns,
        seen: "longest",
    },
    UnitFault {
        module: "",
        what: "the count of a direction does not begin anew with its turn",
        edits: &[Edit::Text("if (turned$q) begin", "if (turned$q & ~FAULT) begin", 1)],
        scenario: directions_take_turns,
        seen: "beats a direction on average",
    },
];

#[test]
fn planted_faults_are_seen_by_the_unit_s_own_tests() {
    each_is_seen::<MemoryPort>("MemoryPort", FAULTS);
}
