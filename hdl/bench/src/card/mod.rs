//! A powered card: the generated Verilog on Verilator, with a memory, a host and a register master
//! around it.
//!
//! **Fault model.** The memory keeps what it has answered. A cut drops, completes or tears (in
//! words of 8 bytes) each write that it has not answered; everything else about the card is gone.

pub mod peers;
pub mod scenarios;

use nearpm_hdl::{GeneratedCard, MODULE, Parameters, Sizes, for_simulation, generate_small_card, generated};
use nearpm_interface::command::{Command, slot_offset};
use nearpm_interface::completion::{Completion, PageStatus};
use nearpm_interface::firmware::IMAGE_LINES;
use nearpm_interface::geometry::{FIRMWARE_BASE, LINE, SAVE_BASE};
use nearpm_interface::memory_ports::INTERLEAVE;
use nearpm_interface::peer::PeerMessage;
use nearpm_interface::registers;
use nearpm_interface::save::{ARM_LINE, ArmWord, FIRMWARE_WORD_OFFSET, firmware_word};
use nearpm_verilate::{Instance, Library, Port, Source};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;

pub type Line = [u8; LINE];

/// Bytes of memory.
pub const PM_BYTES: u64 = 64 << 20;
/// Cycles from a read address to its first beat.
pub const READ_LATENCY: u64 = 27;
/// Cycles from the last beat of a write to its answer.
pub const WRITE_LATENCY: u64 = 8;

pub fn card() -> &'static GeneratedCard {
    static CARD: OnceLock<GeneratedCard> = OnceLock::new();
    CARD.get_or_init(|| generated(&Parameters::default()))
}

/// The library of a card's Verilog, with faults in it or without.
pub fn library(verilog: &str) -> Library {
    let source = Source::new(MODULE, for_simulation(verilog)).with_trace(std::env::var_os("NEARPM_TRACE").is_some());
    Library::build(&source).unwrap_or_else(|error| panic!("{error}"))
}

/// Where cards come from: what they are built as, and the fault that each of them has.
pub struct Cards {
    library: Library,
    /// The image in slot 0.
    firmware: Vec<u8>,
    /// Name of the input that selects a fault, and the fault.
    fault: Option<(&'static str, u64)>,
}

impl Cards {
    /// The cards that `nearpm_hdl::generated` gives.
    pub fn sound() -> Self {
        static LIBRARY: OnceLock<Library> = OnceLock::new();
        Self::of(LIBRARY.get_or_init(|| library(&card().verilog)).clone())
    }

    /// Cards of any library with a card's ports.
    pub fn of(library: Library) -> Self {
        Self { library, firmware: nearpm_firmware::standard().bytes().to_vec(), fault: None }
    }

    /// Cards of one unit with small tables.
    pub fn small() -> Self {
        static LIBRARY: OnceLock<Library> = OnceLock::new();
        let make = || {
            // As on a board without energy of its own and without other cards.
            let parameters = Parameters { power_fail_safe: false, peers: false, ..Parameters::default() };
            let small = || generate_small_card(&parameters, Sizes::SMALL);
            let name = format!("card of one unit with the sizes SMALL, {parameters:?}");
            let card = GeneratedCard::kept(&name, small).unwrap_or_else(|error| panic!("{error}"));
            // The requests of units that are not there are constants that rust-hdl writes with 32
            // bits.
            let source = Source::new(MODULE, card.simulated()).with_deny_warnings(false);
            Library::build(&source).unwrap_or_else(|error| panic!("{error}"))
        };
        Self::of(LIBRARY.get_or_init(make).clone())
    }

    /// Cards of another library, which have an input that selects a fault.
    pub fn faulty(library: &Library, input: &'static str, fault: u64) -> Self {
        Self { fault: Some((input, fault)), ..Self::of(library.clone()) }
    }

    /// The same cards with another image of firmware, which nobody checks.
    pub fn with_firmware(mut self, firmware: Vec<u8>) -> Self {
        self.firmware = firmware;
        self
    }

    /// A card that was just powered up on this memory.
    pub fn power_up(&self, memory: Vec<u8>, seed: u64) -> Card {
        let mut card = Card::dark(self.library.instance().expect("an instance"), memory, seed);
        if let Some((input, fault)) = self.fault {
            card.set(input, fault);
        }
        card.power_up();
        card
    }

    /// A memory whose firmware slot 0 holds the image, after a clean shutdown.
    fn formatted(&self) -> Vec<u8> {
        let mut memory = vec![0; PM_BYTES as usize];
        let image = &self.firmware;
        assert_eq!(image.len(), IMAGE_LINES * LINE);
        memory[FIRMWARE_BASE as usize..][..image.len()].copy_from_slice(image);
        let arm = SAVE_BASE as usize + ARM_LINE * LINE;
        memory[arm..arm + 8].copy_from_slice(&ArmWord::Clean(1).encode().to_le_bytes());
        let crc = u32::from_le_bytes(image[LINE - 4..LINE].try_into().unwrap());
        let word = firmware_word(0, crc).to_le_bytes();
        memory[(SAVE_BASE + FIRMWARE_WORD_OFFSET) as usize..][..8].copy_from_slice(&word);
        memory
    }

    /// A formatted card that has opened.
    pub fn opened(&self, seed: u64) -> Card {
        let mut card = self.power_up(self.formatted(), seed);
        card.wait_for_state(registers::state::OPEN);
        card
    }
}

fn words(bytes: &Line) -> [u32; 16] {
    std::array::from_fn(|i| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap()))
}

fn bytes(words: &[u32; 16]) -> Line {
    let mut out = [0; LINE];
    for (chunk, word) in out.chunks_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    out
}

struct ReadBurst {
    id: u64,
    line: u64,
    left: u64,
    from: u64,
}

struct WriteBurst {
    id: u64,
    line: u64,
    beats: Vec<(Line, u64)>,
    length: u64,
    answer_at: Option<u64>,
}

/// A host access to one of the two slave ports.
struct Write {
    address: u64,
    data: Line,
    strobes: u64,
    address_done: bool,
    data_done: bool,
}

/// One AXI slave port of the card, as its master.
struct Master {
    ports: BTreeMap<&'static str, Port>,
    writes: VecDeque<Write>,
    reads: VecDeque<(u64, u64)>,
    unanswered_writes: usize,
    answers: BTreeMap<u64, (Line, bool)>,
    write_errors: usize,
    last_answer: u64,
}

const CHANNELS: [&str; 26] = [
    "awid", "awaddr", "awlen", "awsize", "awburst", "awvalid", "awready", "wdata", "wstrb", "wlast", "wvalid",
    "wready", "bid", "bresp", "bvalid", "bready", "arid", "araddr", "arlen", "arsize", "arburst", "arvalid", "arready",
    "rid", "rdata", "rresp",
];

pub struct Card {
    pub model: Instance,
    clock: Port,
    pins: BTreeMap<String, Port>,
    pub memory: Vec<u8>,
    reads: VecDeque<ReadBurst>,
    write_addresses: VecDeque<WriteBurst>,
    written: VecDeque<WriteBurst>,
    /// Host memory, by byte.
    pub host: BTreeMap<u64, u8>,
    completions: VecDeque<u64>,
    completion_data: VecDeque<(Line, u64)>,
    completion_answers: usize,
    host_port: Master,
    command_port: Master,
    next_id: u64,
    pub now: u64,
    /// Cycle of the last answer of the memory to a write, by line.
    pub durable_at: BTreeMap<u64, u64>,
    /// Cycle of the last read request, by line.
    pub read_at: BTreeMap<u64, u64>,
    /// Cycle of the last write request, by line.
    pub written_at: BTreeMap<u64, u64>,
    /// What the card has told other devices, and asked them.
    pub peer_messages: Vec<PeerMessage>,
    /// Cycles from the last beat of a write to its answer.
    pub write_latency: u64,
    pub rng: ChaCha8Rng,
    /// Probability that the memory takes an offer at once.
    pub ready: f64,
    trace: bool,
}

impl Card {
    /// A card without power, on this memory.
    fn dark(mut model: Instance, memory: Vec<u8>, seed: u64) -> Self {
        let trace = std::env::var_os("NEARPM_TRACE");
        if let Some(folder) = &trace {
            let test = std::thread::current().name().unwrap_or("main").replace("::", "-");
            let path = std::path::PathBuf::from(folder).join(test).with_extension("vcd");
            model.open_trace(&path).expect("the trace opens");
        }
        let names: Vec<_> = model.ports().iter().map(|p| p.name.clone()).collect();
        let pins: BTreeMap<_, _> = names.iter().map(|n| (n.clone(), model.port(n).expect("a port"))).collect();
        let master = |prefix: &'static str| Master {
            ports: CHANNELS
                .iter()
                .chain(&["rlast", "rvalid", "rready"])
                .filter_map(|c| pins.get(&format!("{prefix}_{c}")).map(|p| (*c, *p)))
                .collect(),
            writes: VecDeque::new(),
            reads: VecDeque::new(),
            unanswered_writes: 0,
            answers: BTreeMap::new(),
            write_errors: 0,
            last_answer: 0,
        };
        let (host_port, command_port) = (master("s_axi_host"), master("s_axi_cmd"));
        let clock = pins["clk"];
        Self {
            model,
            clock,
            pins,
            memory,
            reads: VecDeque::new(),
            write_addresses: VecDeque::new(),
            written: VecDeque::new(),
            host: BTreeMap::new(),
            completions: VecDeque::new(),
            completion_data: VecDeque::new(),
            completion_answers: 0,
            host_port,
            command_port,
            next_id: 0,
            now: 0,
            durable_at: BTreeMap::new(),
            read_at: BTreeMap::new(),
            written_at: BTreeMap::new(),
            peer_messages: Vec::new(),
            write_latency: WRITE_LATENCY,
            rng: ChaCha8Rng::seed_from_u64(seed),
            ready: 1.0,
            trace: trace.is_some(),
        }
    }

    fn power_up(&mut self) {
        self.set("pm_bytes", PM_BYTES);
        self.set("peer_out_ready", 1);
        self.set("rst_n", 0);
        (0..8).for_each(|_| self.step());
        // A request that is taken in reset is never answered.
        for bus in ["s_axi_host", "s_axi_cmd", "s_axil_ctrl"] {
            for channel in ["aw", "w", "ar"] {
                assert_eq!(self.get(&format!("{bus}_{channel}ready")), 0, "{bus} takes a request in reset");
            }
        }
        for taker in ["m_axi_mem0_rready", "m_axi_mem0_bready", "m_axi_cpl_bready", "peer_in_ready"] {
            assert_eq!(self.get(taker), 0, "{taker} in reset");
        }
        self.set("rst_n", 1);
        // A read that stands at the port when the reset ends is taken when it is over, and
        // answered.
        self.set("s_axil_ctrl_araddr", registers::ID.into());
        self.set("s_axil_ctrl_arvalid", 1);
        let mut waited = 0;
        while self.get("s_axil_ctrl_arready") == 0 {
            self.step();
            waited += 1;
            assert!(waited < 20, "a read of a register behind a reset is not taken");
        }
        self.step();
        self.set("s_axil_ctrl_arvalid", 0);
        self.set("s_axil_ctrl_rready", 1);
        while self.get("s_axil_ctrl_rvalid") == 0 {
            self.step();
            waited += 1;
            assert!(waited < 20, "a read of a register behind a reset is not answered");
        }
        assert_eq!(self.get("s_axil_ctrl_rdata"), u64::from(registers::ID_VALUE));
        self.step();
        self.set("s_axil_ctrl_rready", 0);
    }

    pub fn set(&mut self, name: &str, value: u64) {
        self.model.set_u64(self.pins[name], value);
    }
    pub fn get(&mut self, name: &str) -> u64 {
        self.model.eval();
        self.model.get_u64(self.pins[name])
    }

    /// One clock cycle of card, memory and host.
    pub fn step(&mut self) {
        self.now += 1;
        self.drive_memory();
        self.drive_completions();
        drive(&mut self.host_port, &mut self.model);
        drive(&mut self.command_port, &mut self.model);
        self.model.eval();
        self.sample_memory();
        self.sample_completions();
        sample(&mut self.host_port, &self.model, self.now);
        sample(&mut self.command_port, &self.model, self.now);
        self.sample_peers();
        if self.trace {
            self.model.dump(2 * self.now);
        }
        self.model.cycle(self.clock);
        if self.trace {
            self.model.dump(2 * self.now + 1);
        }
    }

    fn sample_peers(&mut self) {
        if self.high("peer_out_valid") {
            let mut words = [0; PeerMessage::SIZE / 4];
            self.model.get_words(self.pin("peer_out_data"), &mut words);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.peer_messages.push(PeerMessage::from_bytes(&bytes.try_into().expect("16 bytes")));
        }
    }

    /// Another device says something.
    pub fn hear(&mut self, message: PeerMessage) {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let words: Vec<u32> = message.to_bytes().chunks(4).map(word).collect();
        self.model.set_words(self.pin("peer_in_data"), &words);
        self.set("peer_in_valid", 1);
        assert_eq!(self.get("peer_in_ready"), 1, "the port makes nobody wait");
        self.step();
        self.set("peer_in_valid", 0);
    }

    /// Cycles a second of the model alone, without this bench.
    pub fn simulation_rate(&mut self) -> f64 {
        const CYCLES: u32 = 300_000;
        let time = std::time::Instant::now();
        (0..CYCLES).for_each(|_| self.model.cycle(self.clock));
        f64::from(CYCLES) / time.elapsed().as_secs_f64()
    }

    fn pin(&self, name: &str) -> Port {
        self.pins[name]
    }

    fn drive_memory(&mut self) {
        for name in ["m_axi_mem0_arready", "m_axi_mem0_awready", "m_axi_mem0_wready"] {
            let ready = self.ready >= 1.0 || self.rng.random_bool(self.ready);
            self.model.set_u64(self.pin(name), u64::from(ready));
        }
        let beat = self.reads.front().filter(|r| r.from <= self.now);
        self.model.set_u64(self.pin("m_axi_mem0_rvalid"), u64::from(beat.is_some()));
        if let Some(burst) = beat {
            let at = (burst.line * 64) as usize;
            let data: Line = self.memory[at..at + LINE].try_into().unwrap();
            let (id, last) = (burst.id, burst.left == 1);
            self.model.set_words(self.pin("m_axi_mem0_rdata"), &words(&data));
            self.model.set_u64(self.pin("m_axi_mem0_rid"), id);
            self.model.set_u64(self.pin("m_axi_mem0_rlast"), u64::from(last));
        }
        let answer = self.written.front().filter(|w| w.answer_at.unwrap() <= self.now);
        self.model.set_u64(self.pin("m_axi_mem0_bvalid"), u64::from(answer.is_some()));
        if let Some(id) = answer.map(|w| w.id) {
            self.model.set_u64(self.pin("m_axi_mem0_bid"), id);
        }
    }

    fn high(&self, name: &str) -> bool {
        self.model.get_u64(self.pins[name]) != 0
    }
    fn value(&self, name: &str) -> u64 {
        self.model.get_u64(self.pins[name])
    }
    fn fires(&self, channel: &str) -> bool {
        self.high(&format!("{channel}valid")) && self.high(&format!("{channel}ready"))
    }
    fn line_of(&self, name: &str) -> Line {
        let mut out = [0; 16];
        self.model.get_words(self.pins[name], &mut out);
        bytes(&out)
    }

    fn sample_memory(&mut self) {
        if self.fires("m_axi_mem0_r") {
            let burst = self.reads.front_mut().expect("a burst is answered");
            (burst.line, burst.left) = (burst.line + 1, burst.left - 1);
            if burst.left == 0 {
                self.reads.pop_front();
            }
        }
        if self.fires("m_axi_mem0_b") {
            let burst = self.written.pop_front().expect("a burst is answered");
            for (beat, (data, strobes)) in burst.beats.iter().enumerate() {
                let line = burst.line + beat as u64;
                self.durable_at.insert(line, self.now);
                apply(&mut self.memory, line, data, *strobes, 0xff);
            }
        }
        if self.fires("m_axi_mem0_ar") {
            let (line, left) = self.burst("ar");
            let from = self.now + READ_LATENCY;
            self.read_at.extend((line..line + left).map(|line| (line, self.now)));
            self.reads.push_back(ReadBurst { id: self.value("m_axi_mem0_arid"), line, left, from });
        }
        if self.fires("m_axi_mem0_aw") {
            let (line, length) = self.burst("aw");
            let id = self.value("m_axi_mem0_awid");
            self.written_at.extend((line..line + length).map(|line| (line, self.now)));
            let burst = WriteBurst { id, line, beats: Vec::new(), length, answer_at: None };
            self.write_addresses.push_back(burst);
        }
        if self.fires("m_axi_mem0_w") {
            let beat = (self.line_of("m_axi_mem0_wdata"), self.value("m_axi_mem0_wstrb"));
            let last = self.high("m_axi_mem0_wlast");
            let burst = self.write_addresses.front_mut().expect("no data before its address");
            burst.beats.push(beat);
            assert_eq!(last, burst.beats.len() as u64 == burst.length, "wlast");
            if last {
                let mut burst = self.write_addresses.pop_front().unwrap();
                burst.answer_at = Some(self.now + self.write_latency);
                self.written.push_back(burst);
            }
        }
    }

    /// First line and number of beats of the burst at an address channel, checked.
    fn burst(&self, channel: &str) -> (u64, u64) {
        let value = |what: &str| self.value(&format!("m_axi_mem0_{channel}{what}"));
        assert_eq!((value("size"), value("burst"), value("addr") % 64), (6, 1, 0));
        let (line, beats) = (value("addr") / 64, value("len") + 1);
        let piece = INTERLEAVE / LINE as u64;
        assert!(line % piece + beats <= piece, "a burst leaves what lies behind one memory port");
        assert!((line + beats) * 64 <= PM_BYTES, "a burst leaves the memory");
        (line, beats)
    }

    fn drive_completions(&mut self) {
        for name in ["m_axi_cpl_awready", "m_axi_cpl_wready"] {
            self.model.set_u64(self.pin(name), 1);
        }
        self.model.set_u64(self.pin("m_axi_cpl_bvalid"), u64::from(self.completion_answers > 0));
    }

    fn sample_completions(&mut self) {
        if self.fires("m_axi_cpl_b") {
            self.completion_answers -= 1;
        }
        if self.fires("m_axi_cpl_aw") {
            self.completions.push_back(self.value("m_axi_cpl_awaddr"));
        }
        if self.fires("m_axi_cpl_w") {
            let beat = (self.line_of("m_axi_cpl_wdata"), self.value("m_axi_cpl_wstrb"));
            self.completion_data.push_back(beat);
        }
        while !self.completions.is_empty() && !self.completion_data.is_empty() {
            let address = self.completions.pop_front().unwrap();
            let (data, strobes) = self.completion_data.pop_front().unwrap();
            for byte in (0..LINE).filter(|b| strobes >> b & 1 == 1) {
                self.host.insert(address + byte as u64, data[byte]);
            }
            self.completion_answers += 1;
        }
    }

    /// The completion record at a place of a ring.
    pub fn completion(&self, ring: u64, index: u64) -> Option<Completion> {
        let at = ring + index * Completion::SIZE as u64;
        let bytes: Option<Vec<u8>> = (at..at + Completion::SIZE as u64).map(|a| self.host.get(&a).copied()).collect();
        Some(Completion::from_bytes(&bytes?.try_into().unwrap()))
    }

    // ---- registers

    pub fn write_register(&mut self, offset: u32, value: u32) {
        self.set("s_axil_ctrl_awaddr", u64::from(offset));
        self.set("s_axil_ctrl_wdata", u64::from(value));
        self.set("s_axil_ctrl_wstrb", 15);
        self.set("s_axil_ctrl_awvalid", 1);
        self.set("s_axil_ctrl_wvalid", 1);
        self.set("s_axil_ctrl_bready", 1);
        let (mut address, mut data) = (false, false);
        for _ in 0..50 {
            self.model.eval();
            address |= self.fires("s_axil_ctrl_aw");
            data |= self.fires("s_axil_ctrl_w");
            let done = self.fires("s_axil_ctrl_b");
            self.step();
            self.set("s_axil_ctrl_awvalid", u64::from(!address));
            self.set("s_axil_ctrl_wvalid", u64::from(!data));
            if done {
                return;
            }
        }
        panic!("register {offset:#x} does not take a write");
    }

    pub fn read_register(&mut self, offset: u32) -> u32 {
        self.set("s_axil_ctrl_araddr", u64::from(offset));
        self.set("s_axil_ctrl_arvalid", 1);
        self.set("s_axil_ctrl_rready", 1);
        let mut address = false;
        for _ in 0..50 {
            self.model.eval();
            address |= self.fires("s_axil_ctrl_ar");
            let done = self.fires("s_axil_ctrl_r");
            let value = self.value("s_axil_ctrl_rdata") as u32;
            self.step();
            self.set("s_axil_ctrl_arvalid", u64::from(!address));
            if done {
                return value;
            }
        }
        panic!("register {offset:#x} does not answer");
    }

    pub fn wait_for_state(&mut self, wanted: u32) {
        for _ in 0..20_000 {
            if self.read_register(registers::STATE) == wanted {
                return;
            }
        }
        let state = self.read_register(registers::STATE);
        panic!("the card stays in state {state} and does not come to {wanted}");
    }

    // ---- host accesses

    fn port(&mut self, command: bool) -> &mut Master {
        if command { &mut self.command_port } else { &mut self.host_port }
    }

    /// Queues a write; it is delivered as soon as the port takes it.
    pub fn post(&mut self, command: bool, address: u64, data: Line, strobes: u64) {
        let write = Write { address, data, strobes, address_done: false, data_done: false };
        let port = self.port(command);
        port.unanswered_writes += 1;
        port.writes.push_back(write);
    }

    /// Stores bytes inside one line and does not wait.
    pub fn store(&mut self, address: u64, what: &[u8]) {
        let at = (address % 64) as usize;
        assert!(at + what.len() <= LINE, "a store stays in its line");
        let mut data = [0; LINE];
        data[at..at + what.len()].copy_from_slice(what);
        let strobes = (u64::MAX >> (64 - what.len())) << at;
        self.post(false, address & !63, data, strobes);
    }

    /// Waits until every write of the port is answered.
    pub fn drain(&mut self, command: bool) {
        for _ in 0..100_000 {
            if self.port(command).unanswered_writes == 0 {
                return;
            }
            self.step();
        }
        panic!("writes are not answered");
    }

    pub fn host_write_errors(&self) -> usize {
        self.host_port.write_errors
    }

    /// The cycle in which the last write to the command port was answered.
    pub fn last_command_answer(&self) -> u64 {
        self.command_port.last_answer
    }

    /// Asks for a line; the answer comes under the number that this gives.
    pub fn ask(&mut self, command: bool, address: u64) -> u64 {
        let id = self.next_id % 16;
        self.next_id += 1;
        let port = self.port(command);
        port.answers.remove(&id);
        port.reads.push_back((id, address));
        id
    }

    pub fn answer(&mut self, command: bool, id: u64) -> Option<(Line, bool)> {
        self.port(command).answers.remove(&id)
    }

    /// Loads a line; the flag says that the card answered with an error.
    pub fn load(&mut self, command: bool, address: u64) -> (Line, bool) {
        let id = self.ask(command, address);
        for _ in 0..100_000 {
            if let Some(answer) = self.answer(command, id) {
                return answer;
            }
            self.step();
        }
        panic!("a load of {address:#x} is not answered");
    }

    /// Posts a command as one store and waits until it is accepted or refused.
    pub fn command(&mut self, page: usize, slot: usize, command: &Command) {
        self.post(true, slot_offset(page, slot), command.encode(), u64::MAX);
        self.drain(true);
    }

    pub fn page_status(&mut self, page: usize) -> PageStatus {
        let (line, error) = self.load(true, slot_offset(page, 0));
        assert!(!error);
        PageStatus::from_bytes(&line)
    }

    /// Waits until every accepted command of the page has retired.
    pub fn wait_retired(&mut self, page: usize) -> PageStatus {
        for _ in 0..20_000 {
            let status = self.page_status(page);
            if status.accepted == status.retired + status.failed {
                return status;
            }
        }
        panic!("commands do not retire: {:?}", self.page_status(page));
    }

    // ---- power

    /// Power fails, and there is energy for `cycles`; gives the memory that remains and whether the
    /// save was done.
    pub fn power_fail(mut self, cycles: u64) -> (Vec<u8>, bool) {
        self.set("power_fail", 1);
        for _ in 0..cycles {
            if self.get("save_done") != 0 {
                break;
            }
            self.step();
        }
        let done = self.get("save_done") != 0;
        let writes: Vec<_> = self.written.drain(..).chain(self.write_addresses.drain(..)).collect();
        assert!(!done || writes.is_empty(), "save_done before the last answer");
        for write in writes {
            for (beat, (data, strobes)) in write.beats.iter().enumerate() {
                let words = match self.rng.random_range(0..3) {
                    0 => 0,
                    1 => 0xff,
                    _ => self.rng.random::<u8>(),
                };
                apply(&mut self.memory, write.line + beat as u64, data, *strobes, words);
            }
        }
        (self.memory, done)
    }
}

/// Writes the strobed bytes of those 8-byte words of a line.
fn apply(memory: &mut [u8], line: u64, data: &Line, strobes: u64, words: u8) {
    for byte in 0..LINE {
        if strobes >> byte & 1 == 1 && words >> (byte / 8) & 1 == 1 {
            memory[line as usize * LINE + byte] = data[byte];
        }
    }
}

fn drive(master: &mut Master, model: &mut Instance) {
    let ports = &master.ports;
    let mut set = |name: &str, value: u64| {
        if let Some(port) = ports.get(name) {
            model.set_u64(*port, value);
        }
    };
    for ready in ["bready", "rready"] {
        set(ready, 1);
    }
    let first = master.writes.front();
    set("awvalid", u64::from(first.is_some_and(|w| !w.address_done)));
    set("wvalid", u64::from(first.is_some_and(|w| !w.data_done)));
    if let Some(write) = first {
        for (name, value) in [
            ("awaddr", write.address),
            ("awlen", 0),
            ("awsize", 6),
            ("awburst", 1),
            ("awid", 0),
            ("wstrb", write.strobes),
            ("wlast", 1),
        ] {
            set(name, value);
        }
    }
    let read = master.reads.front();
    set("arvalid", u64::from(read.is_some()));
    if let Some((id, address)) = read {
        for (name, value) in [("araddr", *address), ("arlen", 0), ("arsize", 6), ("arburst", 1), ("arid", *id)] {
            set(name, value);
        }
    }
    if let Some(write) = first {
        model.set_words(ports["wdata"], &words(&write.data));
    }
}

fn sample(master: &mut Master, model: &Instance, now: u64) {
    let value = |name: &str| model.get_u64(master.ports[name]);
    let fires = |channel: &str| value(&format!("{channel}valid")) != 0 && value(&format!("{channel}ready")) != 0;
    if fires("b") {
        master.unanswered_writes -= 1;
        master.last_answer = now;
        master.write_errors += usize::from(value("bresp") != 0);
    }
    if fires("r") {
        let mut out = [0; 16];
        model.get_words(master.ports["rdata"], &mut out);
        master.answers.insert(value("rid"), (bytes(&out), value("rresp") != 0));
    }
    let (address, data, read) = (fires("aw"), fires("w"), fires("ar"));
    if let Some(write) = master.writes.front_mut() {
        write.address_done |= address;
        write.data_done |= data;
        if write.address_done && write.data_done {
            master.writes.pop_front();
        }
    }
    if read {
        master.reads.pop_front();
    }
}
