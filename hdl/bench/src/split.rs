//! The memory split with a master of random will in front of it and a behavioural memory behind
//! each port.

use crate::memory::{Line, Memory};
use nearpm_hdl::dut::{Dut, PortId, Value};
use nearpm_interface::geometry::{LINE, LINE_U64};
use nearpm_interface::memory_ports::{INTERLEAVE, on_device, on_port};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

macro_rules! pins {
    ($($name:ident),+ $(,)?) => {
        struct Pins { $($name: PortId),+ }
        impl Pins {
            fn new(dut: &dyn Dut) -> Self {
                Self { $($name: dut.port(concat!("s$", stringify!($name)))),+ }
            }
        }
    };
}
pins!(
    awid, awaddr, awlen, awvalid, awready, wdata, wstrb, wlast, wvalid, wready, bid, bresp, bvalid, bready, arid,
    araddr, arlen, arvalid, arready, rid, rdata, rresp, rlast, rvalid, rready,
);

/// Lines of a piece that lies behind one port.
const PIECE: u64 = INTERLEAVE / LINE_U64;
/// Where bursts lie, in lines: at the ends of the memory and somewhere between. Reads go to the
/// first half of each.
const REGIONS: [u64; 3] = [0, 0x1_2345_6780, (1 << 34) - REGION_LINES];
const REGION_LINES: u64 = 64 * PIECE;

/// A burst: identifier, first device line, beats.
#[derive(Clone, Copy, PartialEq)]
struct Burst {
    id: u64,
    line: u64,
    beats: u64,
}

/// How likely the master does something in a cycle.
#[derive(Clone, Copy)]
pub struct Will {
    reads: f64,
    writes: f64,
    data: f64,
    takes: f64,
}

impl Will {
    /// Nothing holds the master up.
    const EAGER: Self = Self { reads: 1.0, writes: 1.0, data: 1.0, takes: 1.0 };
    /// Asks for nothing new and takes what comes.
    const IDLE: Self = Self { reads: 0.0, writes: 0.0, data: 1.0, takes: 1.0 };
}

/// An output channel whose offers must stay until they are taken.
struct Watched {
    name: &'static str,
    valid: PortId,
    ready: PortId,
    payload: Vec<PortId>,
    offered: Option<Vec<Value>>,
}

impl Watched {
    fn new(dut: &dyn Dut, bus: &'static str, channel: &'static str, payload: &[&str]) -> Self {
        let port = |end: &str| dut.port(&format!("{bus}${channel}{end}"));
        let payload = payload.iter().map(|end| port(end)).collect();
        Self { name: bus, valid: port("valid"), ready: port("ready"), payload, offered: None }
    }

    fn all(dut: &dyn Dut) -> Vec<Self> {
        let address: &[&str] = &["id", "addr", "len", "size", "burst"];
        let mut all = vec![Self::new(dut, "s", "r", &["id", "data", "resp", "last"])];
        all.push(Self::new(dut, "s", "b", &["id", "resp"]));
        for bus in ["m$0", "m$1"] {
            all.push(Self::new(dut, bus, "ar", address));
            all.push(Self::new(dut, bus, "aw", address));
            all.push(Self::new(dut, bus, "w", &["data", "strb", "last"]));
        }
        all
    }

    fn look(&mut self, dut: &mut dyn Dut) {
        let offer: Option<Vec<_>> =
            dut.read(self.valid).bit(0).then(|| self.payload.iter().map(|port| dut.read(*port)).collect());
        if let Some(before) = &self.offered {
            assert!(offer.as_ref() == Some(before), "an offer on {} is withdrawn or changes", self.name);
        }
        self.offered = offer.filter(|_| !dut.read(self.ready).bit(0));
    }
}

/// The unit, its master and its memories.
pub struct Bench<'a> {
    dut: &'a mut dyn Dut,
    pins: Pins,
    memories: [Memory; 2],
    watched: Vec<Watched>,
    /// `rready` of the ports.
    takes_reads: [PortId; 2],
    rng: ChaCha8Rng,
    /// What the address channels offer.
    ar: Option<Burst>,
    aw: Option<Burst>,
    /// Lines that reads that were taken must bring, in order: identifier, line, last of its burst.
    reads: VecDeque<(u64, u64, bool)>,
    /// Data that is not taken: line, data, strobes, last.
    data: VecDeque<(u64, Line, u64, bool)>,
    offers_data: bool,
    /// Writes without an answer, by identifier.
    unanswered: BTreeMap<u64, Burst>,
    oracle: BTreeMap<u64, Line>,
    bad_reads: BTreeSet<u64>,
    bad_writes: BTreeSet<u64>,
    read_lines: u64,
    written_lines: u64,
}

impl<'a> Bench<'a> {
    pub fn new(dut: &'a mut dyn Dut, seed: u64) -> Self {
        let memory = |port: usize| {
            let device_line = move |line: u64| on_device(port, line * LINE_U64) / LINE_U64;
            Memory::behind(dut, ["m$0", "m$1"][port], seed + port as u64, device_line)
        };
        let (pins, memories, watched) = (Pins::new(dut), [memory(0), memory(1)], Watched::all(dut));
        let takes_reads = ["m$0$rready", "m$1$rready"].map(|name| dut.port(name));
        dut.reset();
        Self {
            dut,
            pins,
            memories,
            watched,
            takes_reads,
            rng: ChaCha8Rng::seed_from_u64(seed),
            ar: None,
            aw: None,
            reads: VecDeque::new(),
            data: VecDeque::new(),
            offers_data: false,
            unanswered: BTreeMap::new(),
            oracle: BTreeMap::new(),
            bad_reads: BTreeSet::new(),
            bad_writes: BTreeSet::new(),
            read_lines: 0,
            written_lines: 0,
        }
    }

    fn memory(&mut self, line: u64) -> &mut Memory {
        &mut self.memories[on_port(line * LINE_U64).0]
    }

    /// A burst inside of one piece; reads and writes keep apart.
    fn burst(&mut self, writes: bool) -> Burst {
        let half = REGION_LINES / 2;
        let line = REGIONS[self.rng.random_range(0..REGIONS.len())] + self.rng.random_range(0..half);
        let line = line + if writes { half } else { 0 };
        let beats = self.rng.random_range(1..=PIECE - line % PIECE);
        Burst { id: self.rng.random_range(0..64u64), line, beats }
    }

    /// Offers what was not taken, and by the master's will something new.
    fn offer(&mut self, will: Will) {
        if self.ar.is_none() && self.rng.random_bool(will.reads) {
            self.ar = Some(self.burst(false));
        }
        if self.aw.is_none() && self.rng.random_bool(will.writes) {
            let burst = self.burst(true);
            // Data may come before the address.
            if self.data.len() < 64 && !self.unanswered.contains_key(&burst.id) {
                self.aw = Some(burst);
                self.unanswered.insert(burst.id, burst);
                for beat in 0..burst.beats {
                    let data = std::array::from_fn(|_| self.rng.random());
                    let strobes = if self.rng.random_bool(0.5) { u64::MAX } else { self.rng.random() };
                    self.data.push_back((burst.line + beat, data, strobes, beat + 1 == burst.beats));
                }
            }
        }
        self.offers_data = !self.data.is_empty() && (self.offers_data || self.rng.random_bool(will.data));
        let (dut, p) = (&mut *self.dut, &self.pins);
        dut.write(p.arvalid, self.ar.is_some().into());
        if let Some(Burst { id, line, beats }) = self.ar {
            dut.write(p.arid, id.into());
            dut.write(p.araddr, (line * LINE_U64).into());
            dut.write(p.arlen, (beats - 1).into());
        }
        dut.write(p.awvalid, self.aw.is_some().into());
        if let Some(Burst { id, line, beats }) = self.aw {
            dut.write(p.awid, id.into());
            dut.write(p.awaddr, (line * LINE_U64).into());
            dut.write(p.awlen, (beats - 1).into());
        }
        dut.write(p.wvalid, self.offers_data.into());
        if let Some((_, data, strobes, last)) = self.data.front() {
            dut.write(p.wdata, Value::from_bytes(data));
            dut.write(p.wstrb, (*strobes).into());
            dut.write(p.wlast, (*last).into());
        }
        dut.write(p.rready, self.rng.random_bool(will.takes).into());
        dut.write(p.bready, self.rng.random_bool(will.takes).into());
    }

    fn fires(&mut self, valid: fn(&Pins) -> PortId, ready: fn(&Pins) -> PortId) -> bool {
        self.dut.read(valid(&self.pins)).bit(0) && self.dut.read(ready(&self.pins)).bit(0)
    }

    /// One cycle.
    pub fn step(&mut self, will: Will) {
        self.offer(will);
        self.memories.iter_mut().for_each(|memory| memory.act(self.dut));
        self.watched.iter_mut().for_each(|channel| channel.look(self.dut));
        for port in self.takes_reads {
            assert!(self.dut.read(port).bit(0), "a port is not rid of its read data");
        }
        if self.fires(|p| p.arvalid, |p| p.arready) {
            let Burst { id, line, beats } = self.ar.take().expect("a read is offered");
            self.reads.extend((0..beats).map(|beat| (id, line + beat, beat + 1 == beats)));
        }
        if self.fires(|p| p.awvalid, |p| p.awready) {
            self.aw = None;
        }
        if self.fires(|p| p.wvalid, |p| p.wready) {
            let (line, data, strobes, _) = self.data.pop_front().expect("data is offered");
            if !self.bad_writes.contains(&line) {
                let start = self.memories[0].start(line);
                let held = self.oracle.entry(line).or_insert(start);
                (0..LINE).filter(|b| strobes >> b & 1 == 1).for_each(|b| held[b] = data[b]);
            }
            self.offers_data = false;
            self.written_lines += 1;
        }
        if self.fires(|p| p.rvalid, |p| p.rready) {
            self.take_line();
        }
        if self.fires(|p| p.bvalid, |p| p.bready) {
            let id = self.dut.read(self.pins.bid).to_u64();
            let burst = self.unanswered.remove(&id).expect("a write of that identifier is unanswered");
            assert!(!self.memory(burst.line).owes(id), "an answer that the memory did not give");
            let bad = self.bad_writes.range(burst.line..burst.line + burst.beats).next().is_some();
            assert_eq!(self.dut.read(self.pins.bresp).to_u64(), if bad { 2 } else { 0 }, "the answer to a write");
        }
        self.dut.cycle();
    }

    fn take_line(&mut self) {
        let (id, line, last) = self.reads.pop_front().expect("a line was asked for");
        let wanted = Value::from_bytes(&self.memory(line).line(line));
        assert_eq!(self.dut.read(self.pins.rid).to_u64(), id, "data of another read");
        assert!(self.dut.read(self.pins.rdata) == wanted, "line {line:#x} comes with wrong data");
        assert_eq!(self.dut.read(self.pins.rlast).bit(0), last);
        let bad = self.bad_reads.contains(&line);
        assert_eq!(self.dut.read(self.pins.rresp).to_u64(), if bad { 2 } else { 0 }, "the answer to a read");
        self.read_lines += 1;
    }

    /// Lets everything end, and compares the memories.
    fn drain(&mut self) {
        let mut limit = 20_000;
        while self.ar.is_some() || !self.reads.is_empty() || !self.unanswered.is_empty() {
            self.step(Will::IDLE);
            limit -= 1;
            assert!(limit > 0, "the split does not come to rest");
        }
        assert!(self.aw.is_none() && self.data.is_empty() && self.memories.iter().all(Memory::idle));
        for (port, memory) in self.memories.iter().enumerate() {
            assert!(memory.written().keys().all(|line| on_port(line * LINE_U64).0 == port));
        }
        let written = self.memories.iter().flat_map(|m| m.written().clone()).collect::<BTreeMap<_, _>>();
        assert!(written == self.oracle, "the memory holds something else than what was written");
    }

    /// A long run on Verilator, a short one on rust-hdl's simulator.
    fn cycles(&self, long: u64) -> u64 {
        if self.dut.back_end() == "rust-hdl" { long / 40 } else { long }
    }
}

/// Every line reaches its port, every read is answered in order, every error reaches who asked,
/// every offer stays.
pub fn random_bursts_reach_their_port_and_come_back_in_order(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 1);
    for line in REGIONS.iter().flat_map(|region| (*region..region + REGION_LINES / 2).step_by(13)) {
        bench.bad_reads.insert(line);
        bench.memory(line).bad_reads.insert(line);
    }
    for line in REGIONS.iter().flat_map(|region| (*region + REGION_LINES / 2..region + REGION_LINES).step_by(29)) {
        bench.bad_writes.insert(line);
        bench.memory(line).bad_writes.insert(line);
    }
    let wills = [
        Will { reads: 0.5, writes: 0.5, data: 0.5, takes: 0.5 },
        Will { reads: 0.02, writes: 0.02, data: 1.0, takes: 1.0 },
        Will { takes: 0.1, ..Will::EAGER },
        Will { data: 0.1, ..Will::EAGER },
        Will::EAGER,
    ];
    for will in wills {
        for _ in 0..bench.cycles(10_000) {
            bench.step(will);
        }
        bench.drain();
    }
    let (read, written) = (bench.read_lines, bench.written_lines);
    println!("{}: {read} lines read, {written} written", bench.dut.back_end());
    assert!(read.min(written) > bench.cycles(20_000) / 2);
}

/// Two memories that give and take a line a cycle each: the master gets and gives one a cycle, from
/// and to both.
pub fn a_line_a_cycle_each_way_and_no_port_starves(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 2);
    bench.memories.iter_mut().for_each(|memory| memory.calm(20, 8));
    let cycles = bench.cycles(40_000);
    let mut longest = 0;
    for _ in 0..cycles {
        bench.step(Will::EAGER);
    }
    for memory in &bench.memories {
        for channel in ["r", "b"] {
            let times: Vec<_> = memory.log.iter().filter(|(name, _)| *name == channel).map(|(_, at)| *at).collect();
            longest = times.windows(2).map(|pair| pair[1] - pair[0]).fold(longest, u64::max);
        }
    }
    let share = |lines: u64| lines as f64 / cycles as f64;
    let (read, written) = (share(bench.read_lines), share(bench.written_lines));
    println!("{read:.3} lines read and {written:.3} written a cycle; a port waits at most {longest} cycles");
    // On the short run the latency of the first lines counts.
    let least = 1.0 - 40.0 / cycles as f64 - 0.02;
    assert!(read > least && written > least, "{read:.3} read, {written:.3} written");
    // A port is asked for at most 128 lines before the other one's turn comes, and random bursts
    // are half as long as they may be.
    assert!(longest < 4 * 128, "a port waits for {longest} cycles");
    bench.drain();
}

/// What the split costs an idle memory: a cycle for addresses and data, none for what comes back.
pub fn what_finds_nobody_waiting_passes_at_once(dut: &mut dyn Dut) {
    dut.reset();
    for port in 0..2u64 {
        let m = |pin: &str| format!("m${port}${pin}");
        let address = 5 * INTERLEAVE * 2 + port * INTERLEAVE + 3 * LINE_U64;
        for ready in ["s$rready", "s$bready", &m("arready"), &m("awready"), &m("wready")] {
            dut.set(ready, true);
        }
        for (channel, valid) in [("ar", "arvalid"), ("aw", "awvalid")] {
            dut.set(&format!("s${channel}addr"), address);
            dut.set(&format!("s${valid}"), true);
            assert!(dut.get_bool(&format!("s${channel}ready")) && !dut.get_bool(&m(valid)));
        }
        dut.cycle();
        for channel in ["ar", "aw"] {
            assert!(dut.get_bool(&m(&format!("{channel}valid"))));
            assert_eq!(dut.get_u64(&m(&format!("{channel}addr"))), 5 * INTERLEAVE + 3 * LINE_U64);
            assert!(!dut.get_bool(&format!("m${}${channel}valid", 1 - port)));
            dut.set(&format!("s${channel}valid"), false);
        }
        dut.set("s$wvalid", true);
        dut.set("s$wlast", true);
        assert!(dut.get_bool("s$wready"));
        dut.cycle();
        dut.set("s$wvalid", false);
        assert!(dut.get_bool(&m("wvalid")) && dut.get_bool(&m("wlast")));
        for (valid, shown) in [("rvalid", "s$rvalid"), ("bvalid", "s$bvalid")] {
            assert!(!dut.get_bool(shown));
            dut.set(&m("rlast"), true);
            dut.set(&m(valid), true);
            assert!(dut.get_bool(shown), "{shown}: what comes back is not passed on at once");
            dut.cycle();
            dut.set(&m(valid), false);
            assert!(!dut.get_bool(shown));
        }
    }
}
