//! The memory behind the card: every line that 40 bits name.

use std::collections::{HashMap, VecDeque};

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::memory_ports::INTERLEAVE;
use nearpm_sim::bench::line_pattern;
use nearpm_sim::core::Medium;
use nearpm_verilate::{Instance, Port};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{line, port, set_line};

const BUS: &str = "m_axi_mem0";
/// Of the bus: AR, AW, W, R, B.
pub const CHANNELS: usize = 5;
/// Bursts and beats that it takes before it stops the card.
const ROOM: usize = 600;
/// RRESP and BRESP (AXI4 A3.4.4).
const OKAY: u64 = 0;
const SLVERR: u64 = 2;
const DECERR: u64 = 3;

/// What outlives the power.
pub struct Contents {
    /// Bytes of the memory.
    pub bytes: u64,
    lines: HashMap<u64, [u8; 64]>,
    /// Lines that fail.
    pub bad: Vec<u64>,
    /// Firmware that no checker has seen may copy what lies beyond the end, which fails.
    pub any_firmware: bool,
}

impl Contents {
    /// A memory of so many bytes, whose first are those of a medium; every other line names its
    /// address.
    pub fn new(bytes: u64, start: &Medium) -> Self {
        let lines = start.bytes.chunks_exact(64).zip((0..).step_by(64));
        let lines = lines.map(|(data, address)| (address, data.try_into().expect("a line"))).collect();
        Contents { bytes, lines, bad: Vec::new(), any_firmware: false }
    }

    /// A line.
    pub fn line(&self, address: u64) -> [u8; 64] {
        self.lines.get(&address).copied().unwrap_or_else(|| line_pattern(address))
    }

    /// RRESP or BRESP of an access to a line: lines that fail do so in either way.
    fn response(&self, address: u64) -> u64 {
        match () {
            () if address >= self.bytes => DECERR,
            () if self.bad.contains(&address) => {
                if (address / LINE_U64).is_multiple_of(2) {
                    SLVERR
                } else {
                    DECERR
                }
            }
            () => OKAY,
        }
    }

    /// Writes part of a line.
    pub fn write(&mut self, address: u64, data: &[u8; 64], strobes: u64) {
        let mut line = self.line(address);
        (0..64).filter(|byte| strobes >> byte & 1 == 1).for_each(|byte| line[byte] = data[byte]);
        self.lines.insert(address, line);
    }
}

struct Burst {
    id: u64,
    address: u64,
    beats: u64,
    /// Cycles until it may be served.
    wait: u32,
    data: Vec<([u8; 64], u64)>,
}

/// An address channel of the port.
struct Address([Port; 5], Port, bool);

impl Address {
    fn new(model: &Instance, bus: &str, channel: &str) -> Self {
        let of = |signal: &str| port(model, bus, &format!("{channel}{signal}"));
        Address(["id", "addr", "len", "size", "burst"].map(of), of("ready"), false)
    }

    fn taken(&self, model: &Instance, valid: Port, contents: &Contents) -> Option<Burst> {
        if !self.2 || model.get_u64(valid) == 0 {
            return None;
        }
        let [id, address, len, size, burst] = self.0.map(|port| model.get_u64(port));
        assert_eq!((size, burst, address % LINE_U64), (6, 1, 0), "bursts are incrementing lines");
        let end = address + (len + 1) * LINE_U64;
        assert!(
            address / INTERLEAVE == (end - 1) / INTERLEAVE,
            "a burst of {} lines at {address:#x} leaves its piece of the memory (identifier {id:#x})",
            len + 1
        );
        assert!(contents.any_firmware || end <= contents.bytes, "a burst at {address:#x} leaves the memory");
        Some(Burst { id, address, beats: len + 1, wait: 0, data: Vec::new() })
    }
}

/// The other ports of the memory port.
struct Ports {
    arvalid: Port,
    awvalid: Port,
    wdata: Port,
    wstrb: Port,
    wlast: Port,
    wvalid: Port,
    wready: Port,
    rid: Port,
    rdata: Port,
    rresp: Port,
    rlast: Port,
    rvalid: Port,
    rready: Port,
    bid: Port,
    bresp: Port,
    bvalid: Port,
    bready: Port,
}

impl Ports {
    fn new(model: &Instance) -> Self {
        let of = |signal: &str| port(model, BUS, signal);
        Ports {
            arvalid: of("arvalid"),
            awvalid: of("awvalid"),
            wdata: of("wdata"),
            wstrb: of("wstrb"),
            wlast: of("wlast"),
            wvalid: of("wvalid"),
            wready: of("wready"),
            rid: of("rid"),
            rdata: of("rdata"),
            rresp: of("rresp"),
            rlast: of("rlast"),
            rvalid: of("rvalid"),
            rready: of("rready"),
            bid: of("bid"),
            bresp: of("bresp"),
            bvalid: of("bvalid"),
            bready: of("bready"),
        }
    }
}

/// The memory port.
pub struct Memory {
    /// What it holds.
    pub contents: Contents,
    ar: Address,
    aw: Address,
    ports: Ports,
    wready: bool,
    reads: Vec<Burst>,
    writes: VecDeque<Burst>,
    /// Written whole, not answered.
    answers: Vec<Burst>,
    beats: VecDeque<([u8; 64], u64, bool)>,
    /// Beat of the first read that is shown, if one is.
    shown: Option<u64>,
    /// Whether the answer to the first write is shown.
    answering: bool,
    latency: u32,
}

impl Memory {
    /// Resolves the ports; bursts are answered after up to `latency` cycles.
    pub fn new(model: &Instance, contents: Contents, latency: u32) -> Self {
        Memory {
            contents,
            ar: Address::new(model, BUS, "ar"),
            aw: Address::new(model, BUS, "aw"),
            ports: Ports::new(model),
            wready: false,
            reads: Vec::new(),
            writes: VecDeque::new(),
            answers: Vec::new(),
            beats: VecDeque::new(),
            shown: None,
            answering: false,
            latency,
        }
    }

    /// Before the cycle: shows what it takes and what it answers. One in so many cycles is a pause
    /// of each channel.
    pub fn drive(&mut self, model: &mut Instance, rng: &mut ChaCha8Rng, [ar, aw, w, r, b]: [u32; CHANNELS]) {
        let mut takes = |ready: Port, room: bool, patience: u32| {
            let takes = room && rng.random_range(0..patience) != 0;
            model.set_u64(ready, takes.into());
            takes
        };
        self.ar.2 = takes(self.ar.1, self.reads.len() < ROOM, ar);
        self.aw.2 = takes(self.aw.1, self.writes.len() < ROOM, aw);
        self.wready = takes(self.ports.wready, self.beats.len() < ROOM, w);
        if self.shown.is_none() && bring_forward(&mut self.reads, rng, r) {
            self.shown = Some(0);
        }
        if let Some(beat) = self.shown {
            let burst = &self.reads[0];
            let address = burst.address + beat * LINE_U64;
            model.set_u64(self.ports.rid, burst.id);
            set_line(model, self.ports.rdata, &self.contents.line(address));
            // What others have left fails now and then.
            let fails = !self.contents.any_firmware || rng.random();
            model.set_u64(self.ports.rresp, if fails { self.contents.response(address) } else { OKAY });
            model.set_u64(self.ports.rlast, u64::from(beat + 1 == burst.beats));
        }
        model.set_u64(self.ports.rvalid, self.shown.is_some().into());
        if !self.answering && bring_forward(&mut self.answers, rng, b) {
            self.answering = true;
            let burst = &self.answers[0];
            let answers = (0..burst.beats).map(|beat| self.contents.response(burst.address + beat * LINE_U64));
            model.set_u64(self.ports.bid, burst.id);
            model.set_u64(self.ports.bresp, answers.max().unwrap_or(OKAY));
        }
        model.set_u64(self.ports.bvalid, self.answering.into());
    }

    /// Before the edge: takes what is handed over.
    ///
    /// # Panics
    /// If a burst is none that the memory takes, or its last beat is not marked.
    pub fn sample(&mut self, model: &Instance, rng: &mut ChaCha8Rng) {
        let wait = rng.random_range(0..=self.latency);
        let contents = &self.contents;
        let taken =
            |address: &Address, valid| address.taken(model, valid, contents).map(|burst| Burst { wait, ..burst });
        self.reads.extend(taken(&self.ar, self.ports.arvalid));
        self.writes.extend(taken(&self.aw, self.ports.awvalid));
        let is_high = |port: Port| model.get_u64(port) == 1;
        if self.wready && is_high(self.ports.wvalid) {
            let data = line(model, self.ports.wdata);
            self.beats.push_back((data, model.get_u64(self.ports.wstrb), is_high(self.ports.wlast)));
        }
        if let Some(beat) = self.shown
            && is_high(self.ports.rready)
        {
            self.shown = (beat + 1 < self.reads[0].beats).then_some(beat + 1);
            if self.shown.is_none() {
                self.reads.remove(0);
            }
        }
        if self.answering && is_high(self.ports.bready) {
            self.answering = false;
            let burst = self.answers.remove(0);
            self.put(&burst, |_| true);
        }
        self.join();
    }

    /// Joins beats to their bursts.
    fn join(&mut self) {
        while let Some(burst) = self.writes.front_mut()
            && let Some((data, strobes, last)) = self.beats.pop_front()
        {
            burst.data.push((data, strobes));
            assert_eq!(last, burst.data.len() as u64 == burst.beats, "WLAST marks the last beat of its burst");
            if last {
                self.answers.extend(self.writes.pop_front());
            }
        }
    }

    fn put(&mut self, burst: &Burst, mut kept: impl FnMut(usize) -> bool) {
        for (beat, (data, strobes)) in burst.data.iter().enumerate() {
            let address = burst.address + beat as u64 * LINE_U64;
            if kept(beat) && self.contents.response(address) == OKAY {
                self.contents.write(address, data, *strobes);
            }
        }
    }

    /// Cuts the power: what was not answered is kept or dropped, line by line.
    pub fn power_fail(mut self, rng: &mut ChaCha8Rng) -> Contents {
        for burst in std::mem::take(&mut self.answers).into_iter().chain(std::mem::take(&mut self.writes)) {
            self.put(&burst, |_| rng.random());
        }
        self.contents
    }
}

/// Puts a burst in front that may be served now, if there is one: the oldest of its identifier.
fn bring_forward(bursts: &mut Vec<Burst>, rng: &mut ChaCha8Rng, patience: u32) -> bool {
    bursts.iter_mut().for_each(|burst| burst.wait = burst.wait.saturating_sub(1));
    if rng.random_range(0..patience) == 0 {
        return false;
    }
    let is_first = |at: usize| !bursts[..at].iter().any(|before| before.id == bursts[at].id);
    let ready: Vec<usize> = (0..bursts.len()).filter(|at| bursts[*at].wait == 0 && is_first(*at)).collect();
    if !ready.is_empty() {
        let next = bursts.remove(ready[rng.random_range(0..ready.len())]);
        bursts.insert(0, next);
    }
    !ready.is_empty()
}
