//! The bridge between a host that speaks as the PCIe block does (PG213), over a link that may go down, and simple memories with random
//! delays. What AXI asks of a master is checked at every port: what is offered stays, unchanged, until it is taken.

use nearpm_hdl::dut::{Dut, Value};
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

/// What a wide port has taken.
#[derive(Default)]
struct Port {
    address: Option<u64>,
    data: Option<(Vec<u8>, u64)>,
    read: Option<u64>,
    delay: u64,
    /// What is offered on address write, data, and address read, and was not taken yet.
    offered: [Option<Value>; 3],
}

pub struct Bench<'a> {
    pub dut: &'a mut dyn Dut,
    rng: ChaCha8Rng,
    ready: f64,
    beats: VecDeque<(Value, Value, bool)>,
    offered: bool,
    packet: Vec<u32>,
    pub completions: Vec<Completion>,
    /// Bytes of the BARs as the card holds them.
    pub memory: BTreeMap<(u64, u64), u8>,
    /// Lines that the card refuses to read.
    pub refused: BTreeSet<(u64, u64)>,
    /// Every access at a wide port or a register, in order: BAR, offset, whether it writes.
    pub accesses: Vec<(u64, u64, bool)>,
    ports: [Port; 3],
    /// Memory writes of the card: address, Dwords, first and last enables.
    pub requests: Vec<(u64, Vec<u32>, u64, u64)>,
    pub unsupported: u64,
    /// Cycles that a port takes at most.
    pub slowness: u64,
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

const WIDE: [(&str, u64); 2] = [("m_axi_host", 4), ("m_axi_cmd", 2)];

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
            completions: Vec::new(),
            memory: BTreeMap::new(),
            refused: BTreeSet::new(),
            accesses: Vec::new(),
            ports: Default::default(),
            requests: Vec::new(),
            unsupported: 0,
            slowness: 8,
            outage: None,
            is_down: false,
            now: 0,
            resetting: None,
            resets: Vec::new(),
            drain: 0,
            drained: 0,
        }
    }

    /// The host asks for a function-level reset. The block says so until it is told that it is done.
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

    /// The block's side of a function-level reset: the function may not be bus master and MSI-X is off until the host sets them anew. It ends with
    /// `cfg_flr_done`, or with the link.
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
        }
        self.outage = match self.outage {
            None | Some((0, 0 | 1)) => None,
            Some((0, cycles)) => Some((0, cycles - 1)),
            Some((wait, cycles)) => Some((wait - 1, cycles)),
        };
    }

    /// No port waits for anything.
    pub fn is_at_rest(&self) -> bool {
        self.ports.iter().all(|port| {
            port.address.is_none()
                && port.data.is_none()
                && port.read.is_none()
                && port.offered.iter().all(Option::is_none)
        })
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

    fn send(&mut self, packet: Packet) {
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

    /// A memory write of these bytes; what is before and behind them in their Dwords is not enabled.
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
            let value = self.chance();
            self.dut.set(ready, value);
        }
        for (index, (name, _)) in WIDE.iter().enumerate() {
            self.drive(index, name);
        }
        self.drive(2, "m_axil_ctrl");
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
        self.take_completion();
        self.take_request();
        for (index, (name, bar)) in WIDE.iter().enumerate() {
            self.sample(index, name, *bar, 64);
        }
        self.sample(2, "m_axil_ctrl", 0, 4);
        self.dut.cycle();
    }

    fn drive(&mut self, index: usize, name: &str) {
        for ready in ["awready", "wready", "arready"] {
            let value = self.chance();
            self.dut.set(&format!("{name}${ready}"), value);
        }
        let width = if index == 2 { 4 } else { 64 };
        let bar = [4, 2, 0][index];
        let port = &mut self.ports[index];
        port.delay = port.delay.saturating_sub(1);
        let answers = port.delay == 0;
        let written = answers && port.address.is_some() && port.data.is_some();
        let read = port.read.filter(|_| answers);
        self.dut.set(&format!("{name}$bvalid"), written);
        self.dut.set(&format!("{name}$rvalid"), read.is_some());
        if let Some(address) = read {
            let bytes: Vec<u8> = (address..address + width).map(|at| self.byte(bar, at)).collect();
            self.dut.set(&format!("{name}$rdata"), Value::from_bytes(&bytes));
            let refused = self.refused.contains(&(bar, address / 64));
            self.dut.set(&format!("{name}$rresp"), if refused { 2u64 } else { 0 });
        }
    }

    /// A byte of a BAR; what was never written has a value of its own. `STATE` is the card's.
    pub fn byte(&self, bar: u64, at: u64) -> u8 {
        let state = registers::STATE as u64;
        if bar == 0 && (state..state + 4).contains(&at) {
            let value = if self.is_draining() { registers::state::BOOTING } else { registers::state::OPEN };
            return value.to_le_bytes()[(at - state) as usize];
        }
        self.memory.get(&(bar, at)).copied().unwrap_or((at.wrapping_mul(31) >> 3 ^ bar) as u8)
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

    fn sample(&mut self, index: usize, name: &str, bar: u64, width: u64) {
        self.stays_offered(index, name);
        if self.fires(name, "b") {
            let address = self.ports[index].address.take().expect("a write is answered");
            let (data, strobes) = self.ports[index].data.take().expect("a write is answered");
            for lane in (0..width).filter(|lane| strobes >> lane & 1 == 1) {
                self.memory.insert((bar, address + lane), data[lane as usize]);
            }
            let reset = u64::from(registers::control::FUNCTION_RESET);
            if (bar, address) == (0, registers::CONTROL as u64) && u64::from(data[0]) & reset != 0 {
                self.drained = self.now + self.drain;
            }
        }
        if self.fires(name, "r") {
            self.ports[index].read = None;
        }
        let address = |bench: &mut Self, channel: &str| {
            let others = bench.ports.iter().enumerate().filter(|(i, _)| *i != index);
            for (_, port) in others {
                assert!(port.address.is_none() && port.data.is_none() && port.read.is_none(), "two accesses at a time");
            }
            let at = bench.dut.get_u64(&format!("{name}${channel}addr"));
            assert_eq!(at % width, 0);
            bench.accesses.push((bar, at, channel == "aw"));
            at
        };
        if self.fires(name, "aw") {
            let at = address(self, "aw");
            assert!(self.ports[index].address.replace(at).is_none(), "two writes at a time");
            self.ports[index].delay = self.random(self.slowness);
        }
        if self.fires(name, "w") {
            let data = self.dut.get(&format!("{name}$wdata")).to_bytes(width as usize);
            let strobes = self.dut.get_u64(&format!("{name}$wstrb"));
            assert!(self.ports[index].data.replace((data, strobes)).is_none(), "two writes at a time");
        }
        if self.fires(name, "ar") {
            let at = address(self, "ar");
            assert!(self.ports[index].read.replace(at).is_none(), "two reads at a time");
            self.ports[index].delay = self.random(self.slowness);
        }
    }

    /// The Dwords of a beat; which are there must be the same by `tkeep` and by the marks in `tuser`.
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
