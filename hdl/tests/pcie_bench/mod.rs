//! The bridge between a host that speaks as the PCIe block does (PG213), over a link that may go
//! down, and simple memories with random delays, which answer reads in any order. What AXI asks of
//! a master is checked at every port: what is offered stays, unchanged, until it is taken. What the
//! card needs for its order is checked, too: accesses under way, and offers, are of one port and
//! one direction, and not more than may be.

use nearpm_hdl::dut::{Dut, Value};
use nearpm_hdl::pcie::bridge::OVERLAP;
use nearpm_interface::registers;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// log2 of the bytes of each BAR.
pub const APERTURES: [(u64, u64); 4] = [(0, 12), (1, 12), (2, 14), (4, 28)];
/// Where the host has placed a BAR.
pub const fn base(bar: u64) -> u64 {
    0x38_0000_0000 + (bar << 28)
}

/// A completion as it left the bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    pub tag: u64,
    pub requester: u64,
    pub status: u64,
    pub lower: u64,
    pub bytes: u64,
    /// The Dwords behind the header; of a refusal what the block logs.
    pub dwords: Vec<u32>,
    pub length: u64,
}

/// A packet of the completer request stream.
struct Packet {
    dwords: Vec<u32>,
    /// Byte enables of each Dword.
    enables: Vec<u64>,
    first: u64,
    last: u64,
}

/// A read that a port has taken.
struct Read {
    id: u64,
    address: u64,
    /// What stood there when it was taken.
    bytes: Vec<u8>,
    /// The cycle from which it is answered.
    due: u64,
}

/// What a port has taken and not answered.
#[derive(Default)]
struct Port {
    /// Addresses of writes, and the cycles from which they are answered.
    addresses: VecDeque<(u64, u64)>,
    data: VecDeque<(Vec<u8>, u64)>,
    reads: Vec<Read>,
    /// The read that is being answered.
    shown: Option<usize>,
    /// What is offered on address write, data, and address read, and was not taken yet.
    offered: [Option<Value>; 3],
    /// The most writes, and the most reads, that were under way.
    most: [u64; 2],
}

impl Port {
    /// Writes and reads that are under way.
    fn under_way(&self) -> [u64; 2] {
        [self.addresses.len().max(self.data.len()) as u64, self.reads.len() as u64]
    }
}

pub struct Bench<'a> {
    pub dut: &'a mut dyn Dut,
    rng: ChaCha8Rng,
    ready: f64,
    beats: VecDeque<(Value, Value, bool)>,
    offered: bool,
    packet: Vec<u32>,
    /// What completions and the card's requests offered and was not taken: data, marks, `tkeep`,
    /// `tlast`.
    streams: [Option<(Value, Value, u64, bool)>; 2],
    /// The block takes no completion.
    pub holds_completions: bool,
    /// What the host asks is poisoned (EP).
    pub poisons: bool,
    pub completions: Vec<Completion>,
    /// Bytes of the BARs as the card holds them.
    pub memory: BTreeMap<(u64, u64), u8>,
    /// Lines that the card refuses.
    pub refused: BTreeSet<(u64, u64)>,
    /// Every access at a wide port or a register, in order: BAR, offset, whether it writes.
    pub accesses: Vec<(u64, u64, bool)>,
    ports: [Port; 3],
    /// Memory writes of the card: address, Dwords, first and last enables.
    pub requests: Vec<(u64, Vec<u32>, u64, u64)>,
    pub unsupported: u64,
    /// Cycles that a port takes at most.
    pub slowness: u64,
    /// Cycles that every port takes, in place of the above.
    pub latency: Option<u64>,
    /// Cycles until the link goes down, and how many it stays so.
    outage: Option<(u64, u64)>,
    /// The link is down in this cycle.
    is_down: bool,
    /// Cycle.
    pub now: u64,
    /// The host has asked for a function-level reset that is not done: the cycle.
    resetting: Option<u64>,
    /// Function-level resets that were done, in cycles.
    pub resets: Vec<u64>,
    /// Cycles that the card drains, and the cycle at which it has.
    pub drain: u64,
    drained: u64,
}

/// The ports and their BARs; the wide ones first.
const PORTS: [(&str, u64); 3] = [("m_axi_host", 4), ("m_axi_cmd", 2), ("m_axil_ctrl", 0)];

/// What stands where nothing was ever written.
pub const fn untouched(bar: u64, at: u64) -> u8 {
    (at.wrapping_mul(31) >> 3 ^ bar) as u8
}

impl<'a> Bench<'a> {
    pub fn new(dut: &'a mut dyn Dut, seed: u64, ready: f64) -> Self {
        dut.set("cfg_function_status", 4u64);
        dut.reset();
        Self {
            dut,
            rng: ChaCha8Rng::seed_from_u64(seed),
            ready,
            beats: VecDeque::new(),
            offered: false,
            packet: Vec::new(),
            streams: [None, None],
            holds_completions: false,
            poisons: false,
            completions: Vec::new(),
            memory: BTreeMap::new(),
            refused: BTreeSet::new(),
            accesses: Vec::new(),
            ports: Default::default(),
            requests: Vec::new(),
            unsupported: 0,
            slowness: 8,
            latency: None,
            outage: None,
            is_down: false,
            now: 0,
            resetting: None,
            resets: Vec::new(),
            drain: 0,
            drained: 0,
        }
    }

    /// The host asks for a function-level reset. The block says so until it is told that it is
    /// done.
    pub fn function_level_reset(&mut self) {
        self.resetting = Some(self.now);
    }

    /// A function-level reset is under way.
    pub fn is_resetting(&self) -> bool {
        self.resetting.is_some()
    }

    /// The card drains.
    pub fn is_draining(&self) -> bool {
        self.now < self.drained
    }

    /// The block's side of a function-level reset: the function may not be bus master and MSI-X is
    /// off until the host sets them anew. It ends with `cfg_flr_done`, or with the link.
    fn reset_function(&mut self) {
        if self.is_down {
            self.resetting = None;
        }
        self.dut.set("cfg_flr_in_process", u64::from(self.resetting.is_some()));
        if self.resetting.is_some() {
            self.dut.set("cfg_function_status", 0u64);
            self.dut.set("cfg_interrupt_msix_enable", 0u64);
        }
        let done = self.dut.get_u64("cfg_flr_done");
        if done != 0 && !self.is_down {
            assert_eq!(done, 1, "functions that are not there");
            let began = self.resetting.take().expect("a reset that is done was asked for");
            assert!(!self.is_draining(), "done while the card still drains");
            assert!(self.is_at_rest(), "done in the middle of an access");
            assert!(!self.dut.get_bool("rq_tvalid"), "done while something of before is offered to the host");
            self.resets.push(self.now - began);
        }
    }

    /// Lets the link go down in some cycles, for some cycles.
    pub fn outage(&mut self, wait: u64, cycles: u64) {
        self.outage = Some((wait, cycles));
    }

    /// The link in this cycle. What the PCIe block holds is lost when it goes down.
    fn link(&mut self) {
        let down = matches!(self.outage, Some((0, _)));
        self.dut.set("link_down", down);
        self.is_down = down;
        if down {
            self.beats.clear();
            self.offered = false;
            self.packet.clear();
            self.streams = [None, None];
        }
        self.outage = match self.outage {
            None | Some((0, 0 | 1)) => None,
            Some((0, cycles)) => Some((0, cycles - 1)),
            Some((wait, cycles)) => Some((wait - 1, cycles)),
        };
    }

    /// No port waits for anything.
    pub fn is_at_rest(&self) -> bool {
        self.ports.iter().all(|port| port.under_way() == [0, 0] && port.offered.iter().all(Option::is_none))
    }

    /// The most writes, and the most reads, that were under way at the port of a BAR since this was
    /// asked last.
    pub fn most_under_way(&mut self, bar: u64) -> [u64; 2] {
        let index = PORTS.iter().position(|(_, of)| *of == bar).expect("a BAR with a port");
        std::mem::take(&mut self.ports[index].most)
    }

    pub fn random(&mut self, below: u64) -> u64 {
        self.rng.random_range(0..below)
    }

    /// The descriptor of a request (PG213, completer request descriptor formats).
    fn descriptor(bar: u64, offset: u64, dwords: u64, kind: u64, tag: u64) -> Vec<u32> {
        let aperture = APERTURES.iter().find(|(b, _)| *b == bar).map_or(12, |(_, bits)| *bits);
        let address = base(bar) + offset;
        let low = dwords | kind << 11 | 0xabcd << 16;
        let high = tag | bar << 16 | aperture << 19 | 3 << 25 | 1 << 28;
        vec![(address & !3) as u32, (address >> 32) as u32, low as u32, high as u32]
    }

    fn send(&mut self, mut packet: Packet) {
        packet.dwords[2] |= u32::from(self.poisons) << 15;
        let beats = packet.dwords.len().div_ceil(16);
        for beat in 0..beats {
            let (mut data, mut user) = (Value::ZERO, Value::ZERO);
            for lane in 0..16 {
                // What nobody enables is rubbish.
                let at = beat * 16 + lane;
                let dword = packet.dwords.get(at).copied().unwrap_or_else(|| self.rng.random());
                data = data.with_slice(lane * 32, 32, u64::from(dword));
                user = user.with_slice(16 + lane * 4, 4, packet.enables.get(at).copied().unwrap_or(0));
            }
            if beat == 0 {
                user = user.with_slice(0, 4, packet.first).with_slice(8, 4, packet.last).with_slice(80, 1, 1u64);
            }
            self.beats.push_back((data, user, beat + 1 == beats));
        }
    }

    /// A memory write of these bytes; what is before and behind them in their Dwords is not
    /// enabled.
    pub fn write(&mut self, bar: u64, offset: u64, bytes: &[u8]) {
        let (first, end) = (offset / 4, (offset + bytes.len() as u64).div_ceil(4));
        let byte = |at: u64| at.checked_sub(offset).and_then(|i| bytes.get(i as usize)).copied();
        let mut dwords = Self::descriptor(bar, offset, end - first, 1, 0);
        let mut enables = vec![0; 4];
        for dword in first..end {
            let lanes = || (0..4).map(|lane| byte(dword * 4 + lane));
            dwords.push(lanes().enumerate().map(|(lane, b)| u32::from(b.unwrap_or(0xee)) << (8 * lane)).sum());
            enables.push(lanes().enumerate().map(|(lane, b)| u64::from(b.is_some()) << lane).sum());
        }
        let last = if end - first > 1 { *enables.last().expect("a Dword") } else { 0 };
        self.send(Packet { first: enables[4], last, dwords, enables });
    }

    /// A request without data; `first` and `last` are its byte enables.
    pub fn request(&mut self, kind: u64, bar: u64, offset: u64, dwords: u64, enables: (u64, u64), tag: u64) {
        let descriptor = Self::descriptor(bar, offset, dwords, kind, tag);
        self.send(Packet { dwords: descriptor, enables: vec![0; 4], first: enables.0, last: enables.1 });
    }

    /// A read of these bytes.
    pub fn read(&mut self, bar: u64, offset: u64, bytes: u64, tag: u64) {
        let (first, end) = (offset / 4, (offset + bytes).div_ceil(4));
        let low = 0xf << (offset % 4) & 0xf;
        let high = 0xf >> ((4 - (offset + bytes) % 4) % 4);
        let enables = if end - first == 1 { (low & high, 0) } else { (low, high) };
        self.request(0, bar, offset, end - first, enables, tag);
    }

    /// An atomic operation or IO write with one Dword of data.
    pub fn with_data(&mut self, kind: u64, bar: u64, tag: u64) {
        let mut dwords = Self::descriptor(bar, 8, 1, kind, tag);
        dwords.push(0x1234_5678);
        self.send(Packet { dwords, enables: vec![0, 0, 0, 0, 15], first: 15, last: 0 });
    }

    /// Runs until everything was taken and nothing has moved for a while.
    pub fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..400_000 {
            let before = (self.beats.len(), self.accesses.len(), self.completions.len(), self.requests.len());
            self.step();
            let now = (self.beats.len(), self.accesses.len(), self.completions.len(), self.requests.len());
            quiet = if before == now && self.beats.is_empty() { quiet + 1 } else { 0 };
            if quiet > 120 {
                return;
            }
        }
        panic!("the bridge does not come to rest");
    }

    fn chance(&mut self) -> bool {
        self.ready >= 1.0 || self.rng.random_bool(self.ready)
    }

    pub fn step(&mut self) {
        // Inputs.
        self.link();
        self.now += 1;
        if !self.offered && !self.beats.is_empty() {
            self.offered = self.chance();
        }
        self.dut.set("cq_tvalid", self.offered);
        if let (true, Some((data, user, last))) = (self.offered, self.beats.front().cloned()) {
            self.dut.set("cq_tdata", data);
            self.dut.set("cq_tuser", user);
            self.dut.set("cq_tlast", last);
        }
        for ready in ["cc_tready", "rq_tready"] {
            let value = self.chance() && !(self.holds_completions && ready == "cc_tready");
            self.dut.set(ready, value);
        }
        (0..PORTS.len()).for_each(|index| self.drive(index));
        self.reset_function();
        if self.is_down {
            let talks = ["cc_tvalid", "rq_tvalid", "cq_tready"].into_iter().find(|name| self.dut.get_bool(name));
            assert_eq!(talks, None, "the link is down");
        }
        // What happens at the edge.
        if self.offered && self.dut.get_bool("cq_tready") {
            self.beats.pop_front();
            self.offered = false;
        }
        self.unsupported += u64::from(self.dut.get_bool("unsupported"));
        self.stays_on_its_stream(0, "cc");
        self.stays_on_its_stream(1, "rq");
        self.take_completion();
        self.take_request();
        self.is_of_one_kind();
        (0..PORTS.len()).for_each(|index| self.sample(index));
        self.dut.cycle();
    }

    /// Bytes of a beat of a port.
    const fn width(index: usize) -> u64 {
        if index == 2 { 4 } else { 64 }
    }

    /// The cycle from which a port answers what it takes now.
    fn due(&mut self) -> u64 {
        let slowness = self.slowness;
        self.now + self.latency.unwrap_or_else(|| self.random(slowness))
    }

    fn drive(&mut self, index: usize) {
        let (name, bar) = PORTS[index];
        for ready in ["awready", "wready", "arready"] {
            let value = self.chance();
            self.dut.set(&format!("{name}${ready}"), value);
        }
        // Writes are answered in order; reads in any, since each has an identifier of its own.
        let now = self.now;
        let port = &mut self.ports[index];
        let written = port.addresses.front().filter(|(_, due)| *due <= now && !port.data.is_empty()).copied();
        if port.shown.is_none() {
            let answered: Vec<_> = (0..port.reads.len()).filter(|read| port.reads[*read].due <= now).collect();
            if !answered.is_empty() {
                port.shown = Some(answered[self.rng.random_range(0..answered.len())]);
            }
        }
        let shown = port.shown.map(|read| &port.reads[read]);
        let shown = shown.map(|read| (read.id, read.address, read.bytes.clone()));
        let response = |address: u64, refused: &BTreeSet<(u64, u64)>| {
            if refused.contains(&(bar, address / 64)) { 2u64 } else { 0 }
        };
        self.dut.set(&format!("{name}$bvalid"), written.is_some());
        if let Some((address, _)) = written {
            self.dut.set(&format!("{name}$bresp"), response(address, &self.refused));
        }
        self.dut.set(&format!("{name}$rvalid"), shown.is_some());
        if let Some((id, address, bytes)) = shown {
            self.dut.set(&format!("{name}$rdata"), Value::from_bytes(&bytes));
            self.dut.set(&format!("{name}$rresp"), response(address, &self.refused));
            if index < 2 {
                self.dut.set(&format!("{name}$rid"), id);
            }
        }
    }

    /// A byte of a BAR; what was never written has a value of its own. `STATE` is the card's.
    pub fn byte(&self, bar: u64, at: u64) -> u8 {
        let state = registers::STATE as u64;
        if bar == 0 && (state..state + 4).contains(&at) {
            let value = if self.is_draining() { registers::state::BOOTING } else { registers::state::OPEN };
            return value.to_le_bytes()[(at - state) as usize];
        }
        self.memory.get(&(bar, at)).copied().unwrap_or(untouched(bar, at))
    }

    fn fires(&mut self, name: &str, channel: &str) -> bool {
        self.dut.get_bool(&format!("{name}${channel}valid")) && self.dut.get_bool(&format!("{name}${channel}ready"))
    }

    /// What a master offers stays as it is until it is taken.
    fn stays_offered(&mut self, index: usize, name: &str) {
        for (slot, (channel, payload)) in [("aw", "awaddr"), ("w", "wdata"), ("ar", "araddr")].into_iter().enumerate() {
            let valid = self.dut.get_bool(&format!("{name}${channel}valid"));
            let payload = valid.then(|| self.dut.get(&format!("{name}${payload}")));
            if let Some(before) = self.ports[index].offered[slot].take() {
                assert_eq!(payload, Some(before), "{name}: {channel} is withdrawn");
            }
            let taken = self.dut.get_bool(&format!("{name}${channel}ready"));
            self.ports[index].offered[slot] = payload.filter(|_| !taken);
        }
    }

    /// A beat stays as it is until it is taken, or the link goes down.
    fn stays_on_its_stream(&mut self, index: usize, name: &str) {
        let offered = self.dut.get_bool(&format!("{name}_tvalid")).then(|| {
            let [data, user] = ["tdata", "tuser"].map(|signal| self.dut.get(&format!("{name}_{signal}")));
            let keep = self.dut.get_u64(&format!("{name}_tkeep"));
            (data, user, keep, self.dut.get_bool(&format!("{name}_tlast")))
        });
        if let Some(before) = self.streams[index].take() {
            assert_eq!(offered, Some(before), "{name}: a beat is withdrawn");
        }
        let taken = self.dut.get_bool(&format!("{name}_tready"));
        self.streams[index] = offered.filter(|_| !taken);
    }

    /// What is under way, and what is offered, is of one port and one direction.
    fn is_of_one_kind(&mut self) {
        let mut kinds = Vec::new();
        for (index, (name, _)) in PORTS.into_iter().enumerate() {
            let [writes, reads] = self.ports[index].under_way();
            let mut offers = |channel: &str| self.dut.get_bool(&format!("{name}${channel}valid"));
            if writes > 0 || offers("aw") || offers("w") {
                kinds.push(format!("writes at {name}"));
            }
            if reads > 0 || offers("ar") {
                kinds.push(format!("reads at {name}"));
            }
        }
        assert!(kinds.len() < 2, "accesses of two kinds at a time: {kinds:?}");
    }

    fn sample(&mut self, index: usize) {
        let ((name, bar), width) = (PORTS[index], Self::width(index));
        self.stays_offered(index, name);
        if self.fires(name, "b") {
            let (address, _) = self.ports[index].addresses.pop_front().expect("a write is answered");
            let (data, strobes) = self.ports[index].data.pop_front().expect("a write is answered");
            if !self.refused.contains(&(bar, address / 64)) {
                for lane in (0..width).filter(|lane| strobes >> lane & 1 == 1) {
                    self.memory.insert((bar, address + lane), data[lane as usize]);
                }
            }
            let reset = u64::from(registers::control::FUNCTION_RESET);
            if (bar, address) == (0, registers::CONTROL as u64) && u64::from(data[0]) & reset != 0 {
                self.drained = self.now + self.drain;
            }
        }
        if self.fires(name, "r") {
            let shown = self.ports[index].shown.take().expect("a read is answered");
            let read = self.ports[index].reads.remove(shown);
            let bytes = self.bytes(bar, read.address, width);
            assert!(index == 2 || bytes == read.bytes, "a write beside a read of {:#x}", read.address);
        }
        if self.fires(name, "aw") {
            let at = self.address(name, "aw", width);
            self.accesses.push((bar, at, true));
            assert!(index == 2 || self.dut.get_u64(&format!("{name}$awid")) == 0, "writes of two identifiers");
            let due = self.due();
            self.ports[index].addresses.push_back((at, due));
        }
        if self.fires(name, "w") {
            let data = self.dut.get(&format!("{name}$wdata")).to_bytes(width as usize);
            let strobes = self.dut.get_u64(&format!("{name}$wstrb"));
            self.ports[index].data.push_back((data, strobes));
        }
        if self.fires(name, "ar") {
            let address = self.address(name, "ar", width);
            self.accesses.push((bar, address, false));
            let id = if index == 2 { 0 } else { self.dut.get_u64(&format!("{name}$arid")) };
            assert!(self.ports[index].reads.iter().all(|read| read.id != id), "two reads of identifier {id}");
            let (bytes, due) = (self.bytes(bar, address, width), self.due());
            self.ports[index].reads.push(Read { id, address, bytes, due });
        }
        let port = &mut self.ports[index];
        let under_way = port.under_way();
        port.most = [0, 1].map(|kind| port.most[kind].max(under_way[kind]));
        let bound = if index == 2 { 1 } else { OVERLAP };
        assert!(under_way.into_iter().all(|count| count <= bound), "{under_way:?} accesses at a time at {name}");
    }

    /// The address that is offered.
    fn address(&mut self, name: &str, channel: &str, width: u64) -> u64 {
        let at = self.dut.get_u64(&format!("{name}${channel}addr"));
        assert_eq!(at % width, 0);
        at
    }

    /// Bytes of a BAR.
    fn bytes(&self, bar: u64, at: u64, count: u64) -> Vec<u8> {
        (at..at + count).map(|at| self.byte(bar, at)).collect()
    }

    /// The Dwords of a beat; which are there must be the same by `tkeep` and by the marks in
    /// `tuser`.
    fn beat(&mut self, stream: &str, first: bool, marks: (usize, usize, usize)) -> (Vec<u32>, bool) {
        let data = self.dut.get(&format!("{stream}_tdata"));
        let keep = self.dut.get_u64(&format!("{stream}_tkeep"));
        let user = self.dut.get(&format!("{stream}_tuser"));
        let last = self.dut.get_bool(&format!("{stream}_tlast"));
        let (begins, ends, end) = marks;
        assert_eq!(user.bit(begins), first, "{stream}: is_sop");
        assert_eq!(user.bit(ends), last, "{stream}: is_eop");
        let count = keep.count_ones() as usize;
        assert_eq!(keep, (1u64 << count) - 1, "{stream}: tkeep has a hole");
        assert!(last || count == 16, "{stream}: a beat in the middle is not full");
        if last {
            assert_eq!(user.slice(end, 4).to_u64() as usize, count - 1, "{stream}: is_eop0_ptr");
        }
        ((0..count).map(|lane| data.slice(lane * 32, 32).to_u64() as u32).collect(), last)
    }

    fn take_completion(&mut self) {
        if !(self.dut.get_bool("cc_tvalid") && self.dut.get_bool("cc_tready")) {
            assert!(self.packet.is_empty() || self.dut.get_bool("cc_tvalid"), "tvalid falls inside a packet");
            return;
        }
        let (dwords, last) = self.beat("cc", self.packet.is_empty(), (0, 6, 8));
        self.packet.extend(dwords);
        if last {
            let packet = std::mem::take(&mut self.packet);
            let field = |dword: usize, low: u32, bits: u32| u64::from(packet[dword] >> low) & ((1 << bits) - 1);
            assert_eq!((field(2, 25, 3), field(2, 28, 3)), (3, 1), "traffic class and attributes of the request");
            self.completions.push(Completion {
                tag: field(2, 0, 8),
                requester: field(1, 16, 16),
                status: field(1, 11, 3),
                lower: field(0, 0, 7),
                bytes: field(0, 16, 13),
                length: field(1, 0, 11),
                dwords: packet[3..].to_vec(),
            });
        }
    }

    fn take_request(&mut self) {
        if !(self.dut.get_bool("rq_tvalid") && self.dut.get_bool("rq_tready")) {
            return;
        }
        let (packet, last) = self.beat("rq", true, (20, 26, 28));
        assert!(last, "a request is one beat");
        let user = self.dut.get("rq_tuser");
        assert_eq!(packet[2] >> 11 & 15, 1, "a memory write");
        assert_eq!(packet[2] as usize & 0x7ff, packet.len() - 4, "its length");
        let address = u64::from(packet[0]) | u64::from(packet[1]) << 32;
        self.requests.push((address, packet[4..].to_vec(), user.slice(0, 4).to_u64(), user.slice(8, 4).to_u64()));
    }

    /// The completions of a tag, checked against PCIe's rules, and their bytes.
    pub fn answered(&self, tag: u64, offset: u64, bytes: u64) -> Vec<u8> {
        let mut data = Vec::new();
        let (mut at, mut left) = (offset, bytes);
        for completion in self.completions.iter().filter(|c| c.tag == tag) {
            assert_eq!((completion.status, completion.requester), (0, 0xabcd));
            assert_eq!((completion.lower, completion.bytes), (at & 0x7f, left), "{completion:?}");
            assert_eq!(completion.length as usize, completion.dwords.len());
            let all: Vec<u8> = completion.dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect();
            let here = left.min(all.len() as u64 - at % 4);
            data.extend(&all[(at % 4) as usize..(at % 4 + here) as usize]);
            (at, left) = (at + here, left - here);
            assert!(left == 0 || at % 128 == 0, "a completion ends at {at:#x}, inside of 128 bytes");
        }
        assert_eq!(left, 0, "bytes of tag {tag} are missing");
        data
    }
}
