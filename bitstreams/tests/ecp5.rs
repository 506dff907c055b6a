//! The bitstream for the ECP5-85k: the manifest is of today's hardware; in the thorough tier it builds to the byte as the manifest says, and
//! its gates do what the card does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nearpm_bitstreams::ecp5::{self, Built};
use nearpm_bitstreams::manifest;
use nearpm_firmware::standard;
use nearpm_hdl::Sizes;
use nearpm_hdl::dut::Value;
use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode, slot_offset};
use nearpm_interface::completion::{Completion, PageStatus};
use nearpm_interface::geometry::{FIRMWARE_BASE, LINE, POOLS_BASE, SAVE_BASE};
use nearpm_interface::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead, EntryKind, RING_HEAD_BYTES};
use nearpm_interface::registers::{self, firmware_status, state};
use nearpm_interface::status::Status;
use nearpm_verilate::{Instance, Library, Port, Source};

/// The oscillator of the board.
const BOARD_MHZ: f64 = 12.0;
/// Bits of a frame, and where its fields are; see `ecp5/nearpm_ecp5.v`.
const FRAME: usize = 576;
const ADDRESS: usize = 512;
const OPERATION: usize = 552;
const ERROR: usize = 555;

#[derive(Clone, Copy)]
enum Operation {
    Status = 0,
    Load = 2,
    Store = 3,
    LoadPage = 4,
    StorePage = 5,
    ReadRegister = 6,
    WriteRegister = 7,
}

/// The part, as somebody with its wires sees it.
struct Part {
    model: Instance,
    clock: Port,
    reset: Port,
    scan_clock: Port,
    scan_in: Port,
    go: Port,
    power_fail: Port,
    out: Port,
    ready: Port,
    save_done: Port,
}

impl Part {
    fn new(verilog: String) -> Self {
        let source = Source::new(ecp5::TOP, verilog).with_deny_warnings(false);
        let library = Library::build(&source).unwrap_or_else(|error| panic!("{error}"));
        let model = library.instance().unwrap_or_else(|error| panic!("{error}"));
        let port = |name: &str| model.port(name).unwrap_or_else(|error| panic!("{error}"));
        let [clock, reset] = ["clk", "rst_n"].map(port);
        let [scan_clock, scan_in, go, power_fail] = ["scan_clk", "scan_in", "scan_go", "power_fail"].map(port);
        let [out, ready, save_done] = ["scan_out", "ready", "save_done"].map(port);
        let mut part = Self { model, clock, reset, scan_clock, scan_in, go, power_fail, out, ready, save_done };
        part.power_up();
        part
    }

    fn run(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.model.cycle(self.clock));
    }

    /// The reset button, with power there. Memory keeps what it holds.
    fn power_up(&mut self) {
        self.model.set_u64(self.power_fail, 0);
        self.model.set_u64(self.reset, 0);
        self.run(20);
        self.model.set_u64(self.reset, 1);
        self.run(20);
    }

    /// Shifts a frame in, and gives the one that was there.
    fn shift(&mut self, frame: Value) -> Value {
        let mut before = Value::ZERO;
        for bit in 0..FRAME {
            before.set_bit(bit, self.model.get_u64(self.out) != 0);
            self.model.set_u64(self.scan_in, u64::from(frame.bit(bit)));
            self.model.set_u64(self.scan_clock, 1);
            self.run(2);
            self.model.set_u64(self.scan_clock, 0);
            self.run(4);
        }
        before
    }

    /// Executes a frame, with power failing this many cycles after it began, if it does; gives the frame that is there then.
    fn execute_until(&mut self, operation: Operation, address: u64, data: &[u8], fails_after: Option<u64>) -> Value {
        let frame = Value::from_bytes(data).with_slice(ADDRESS, 40, address);
        self.shift(frame.with_slice(OPERATION, 3, operation as u64));
        self.model.set_u64(self.go, 1);
        if let Some(cycles) = fails_after {
            self.run(cycles);
            self.model.set_u64(self.power_fail, 1);
            for _ in 0..20_000 {
                if self.model.get_u64(self.save_done) != 0 {
                    self.model.set_u64(self.go, 0);
                    return Value::ZERO;
                }
                self.run(1);
            }
            panic!("the save is never done");
        }
        self.run(6);
        self.model.set_u64(self.go, 0);
        for _ in 0..20_000 {
            if self.model.get_u64(self.ready) != 0 {
                self.run(4);
                return self.shift(Value::ZERO);
            }
            self.run(1);
        }
        panic!("the part is never ready");
    }

    /// Executes a frame; gives its line and whether the card answered with an error.
    fn execute(&mut self, operation: Operation, address: u64, data: &[u8]) -> (Vec<u8>, bool) {
        let frame = self.execute_until(operation, address, data, None);
        (frame.slice(0, 512).to_bytes(LINE), frame.bit(ERROR))
    }

    fn store(&mut self, address: u64, bytes: &[u8]) {
        for (address, bytes) in (address..).step_by(LINE).zip(bytes.chunks(LINE)) {
            let (_, error) = self.execute(Operation::Store, address, bytes);
            assert!(!error, "a store to {address:#x}");
        }
    }

    fn load(&mut self, address: u64, bytes: usize) -> Vec<u8> {
        let mut all = Vec::new();
        for address in (address..).step_by(LINE).take(bytes.div_ceil(LINE)) {
            let (line, error) = self.execute(Operation::Load, address, &[]);
            assert!(!error, "a load from {address:#x}");
            all.extend(line);
        }
        all.truncate(bytes);
        all
    }

    fn register(&mut self, offset: u32) -> u32 {
        let (line, error) = self.execute(Operation::ReadRegister, offset.into(), &[]);
        assert!(!error, "register {offset:#x}");
        u32::from_le_bytes(line[..4].try_into().expect("four bytes"))
    }

    fn write_register(&mut self, offset: u32, value: u32) {
        let (_, error) = self.execute(Operation::WriteRegister, offset.into(), &value.to_le_bytes());
        assert!(!error, "register {offset:#x}");
    }

    fn wait_for_state(&mut self, wanted: u32) {
        let came = (0..20).any(|_| self.register(registers::STATE) == wanted);
        assert!(came, "the card is in state {} and not in {wanted}", self.register(registers::STATE));
    }

    fn page_status(&mut self) -> PageStatus {
        let (line, error) = self.execute(Operation::LoadPage, slot_offset(0, 0), &[]);
        assert!(!error, "the status of the page");
        PageStatus::from_bytes(&line.try_into().expect("a line"))
    }

    /// Posts a command in page 0, and waits until it has retired.
    fn command(&mut self, command: &Command) {
        let before = self.page_status();
        self.execute(Operation::StorePage, slot_offset(0, 0), &command.encode());
        let retired = (0..20).any(|_| self.page_status().retired == before.retired + 1);
        assert!(retired, "{command:?} does not retire: {:?}", self.page_status());
    }

    /// The last completion record, and how many there were since reset.
    fn completion(&mut self) -> (Completion, u8) {
        let (status, _) = self.execute(Operation::Status, 0, &[]);
        (Completion::from_bytes(&status[..Completion::SIZE].try_into().expect("a record")), status[16])
    }
}

const POOL: u32 = 0xabcd;
const THREAD: u16 = 3;
/// Where the pool lies, its log ring in it, and what is logged of it.
const POOL_BYTES: u64 = 0x1_0000;
const RING: u64 = 0x8000;
const RING_BYTES: u32 = 0x4000;
const ENTRY: u64 = RING + RING_HEAD_BYTES;
const LOGGED: u64 = 0x1008;
const LENGTH: u32 = 200;

fn undo_log(sequence: u64) -> Command {
    Command {
        opcode: Opcode::UndoLog as u8,
        flags: FLAG_COMPLETE,
        thread: THREAD,
        pool: POOL,
        txid: 76 + sequence,
        source: LOGGED,
        destination: ENTRY,
        sequence,
        length: LENGTH,
        tag: 0x1000 + sequence as u32,
        ..Command::default()
    }
}

/// What that log makes of this data.
fn entry(sequence: u64, data: &[u8]) -> Vec<u8> {
    let head = EntryHead {
        magic: ENTRY_MAGIC,
        kind: EntryKind::Undo as u8,
        version: ENTRY_VERSION,
        thread: THREAD,
        sequence,
        txid: 76 + sequence,
        offset: LOGGED,
        length: LENGTH,
        pool: POOL,
        ..EntryHead::default()
    };
    head.encode(data)
}

/// A blank card takes firmware, opens, and maps a pool.
fn open(part: &mut Part) {
    part.wait_for_state(state::NO_FIRMWARE);
    assert_eq!(part.register(registers::GEOMETRY), Sizes::SMALL.geometry(ecp5::UNITS));
    part.store(FIRMWARE_BASE, standard().bytes());
    part.write_register(registers::FIRMWARE_LOAD, 0);
    part.wait_for_state(state::OPEN);
    assert_eq!(part.register(registers::FIRMWARE_STATUS), firmware_status::OK);
    assert_eq!(part.register(registers::FIRMWARE_CRC), standard().crc());
    let (_, refused) = part.execute(Operation::Store, SAVE_BASE, &[1; LINE]);
    assert!(refused, "the save area is not the host's");
    part.write_register(registers::COMPLETION0_SIZE, 4);
    part.command(&Command {
        opcode: Opcode::Map as u8,
        thread: THREAD,
        pool: POOL,
        source: POOLS_BASE,
        destination: POOL_BYTES,
        auxiliary: RING,
        length: RING_BYTES,
        ..Command::default()
    });
    assert_eq!(part.register(registers::MAPPED), 1);
}

/// Firmware, a pool, an undo log by the command page with its completion record, and cuts of power in the middle of logs, which are replayed.
fn the_card_works(verilog: String) {
    let mut part = Part::new(verilog);
    open(&mut part);
    let data: Vec<u8> = (0..256u32).map(|n| (n * 7 + 1) as u8).collect();
    let logged = &data[8..8 + LENGTH as usize];
    part.store(POOLS_BASE + LOGGED - 8, &data);
    assert_eq!(part.load(POOLS_BASE + LOGGED - 8, data.len()), data);
    part.command(&undo_log(1));
    let (record, count) = part.completion();
    assert_eq!((record.tag, record.status, count), (0x1001, Status::Ok as u8, 1));
    let wanted = entry(1, logged);
    assert_eq!(part.load(POOLS_BASE + ENTRY, wanted.len()), wanted);

    // Power fails at moments after a log was posted: before it is accepted, while it waits, while a unit writes it.
    let mut replayed = 0;
    for (sequence, moment) in (2..).zip([8, 16, 24, 40, 60]) {
        let (posted, generation) = (undo_log(sequence), part.register(registers::GENERATION));
        part.execute_until(Operation::StorePage, slot_offset(0, 0), &posted.encode(), Some(moment));
        part.power_up();
        part.wait_for_state(state::OPEN);
        assert_eq!(part.register(registers::GENERATION), generation + 1);
        assert_eq!(part.register(registers::MAPPED), 1, "the mapping survives");
        replayed += part.register(registers::REPLAYED);
        let wanted = [sequence - 1, sequence].map(|sequence| entry(sequence, logged));
        let found = part.load(POOLS_BASE + ENTRY, wanted[0].len());
        assert!(wanted.contains(&found), "neither log is there when power fails after {moment} cycles");
        // What was lost had not been accepted, and is posted again.
        if found != wanted[1] {
            part.command(&posted);
            assert_eq!(part.load(POOLS_BASE + ENTRY, wanted[1].len()), wanted[1]);
        }
        assert_eq!(part.load(POOLS_BASE + LOGGED - 8, data.len()), data);
    }
    assert!(replayed > 0, "no cut met a command that was under way");
}

/// The manifest as it stands, which must be of today's Verilog, pins and options.
fn of_today() -> Built {
    let text = std::fs::read_to_string(manifest::path()).expect("the manifest");
    let built = manifest::read(&text).expect("the manifest is whole");
    let source = ecp5::source(&ecp5::design());
    assert_eq!(built.source, source, "the hardware has changed: ./x bitstream makes the manifest anew");
    built
}

#[test]
fn the_design_is_a_card_that_works() {
    the_card_works(ecp5::design());
}

#[test]
fn the_manifest_is_of_todays_hardware() {
    let built = of_today();
    for [used, available] in [built.luts, built.flip_flops, built.block_rams] {
        assert!(0 < used && used <= available);
    }
    assert!(built.mhz >= BOARD_MHZ, "{} MHz: the board's clock is {BOARD_MHZ} MHz", built.mhz);
}

/// The page on bitstreams.
fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/bitstreams.md");
    std::fs::read_to_string(path).expect("the page")
}

#[test]
fn the_page_says_what_the_manifest_says() {
    let (built, page) = (of_today(), page());
    let grouped = |number: u64| format!("{} {:03}", number / 1000, number % 1000);
    let of = |[used, available]: [u64; 2]| {
        let used_text = if used < 1000 { used.to_string() } else { grouped(used) };
        format!("| {used_text} ({:.0} %) |", 100.0 * used as f64 / available as f64)
    };
    let texts = [of(built.luts), of(built.flip_flops), of(built.block_rams), format!("**{:.2} MHz**", built.mhz)];
    for text in texts {
        assert!(page.contains(&text), "{text:?} is not on the page");
    }
}

#[test]
fn the_pages_pads_are_those_of_the_constraints() {
    let constraints = include_str!("../ecp5/board.lpf");
    let located = |line: &str| -> Option<(String, String)> {
        let (port, pad) = line.strip_prefix("LOCATE COMP \"")?.strip_suffix("\";")?.split_once("\" SITE \"")?;
        Some((port.to_owned(), pad.to_owned()))
    };
    let wanted: BTreeMap<String, String> = constraints.lines().filter_map(located).collect();
    let page = page();
    let table = page.lines().skip_while(|line| !line.starts_with("| port | pad |")).skip(2);
    let rows = table.take_while(|line| line.starts_with('|')).map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let names =
            |cell: &str| -> Vec<String> { cell.split(", ").map(|name| name.trim_matches('`').to_owned()).collect() };
        (names(cells[0]), names(cells[1]))
    });
    let told: BTreeMap<String, String> = rows.flat_map(|(ports, pads)| ports.into_iter().zip(pads)).collect();
    assert_eq!(told, wanted);
}

/// A folder to build in, if this is the thorough tier.
///
/// # Panics
/// When the tools should be there and are not.
fn thorough(name: &str) -> Option<PathBuf> {
    std::env::var_os("NEARPM_THOROUGH")?;
    let there = ecp5::tools_are_there();
    assert!(there || std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "the tools for ECP5 are missing: ./x test");
    there.then(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
}

#[test]
fn the_gates_are_a_card_that_works() {
    let Some(folder) = thorough("ecp5-gates") else { return };
    ecp5::synthesise(&ecp5::design(), &folder).expect("yosys runs");
    the_card_works(ecp5::gates(&folder).expect("yosys runs"));
}

#[test]
fn the_bitstream_is_the_manifests_to_the_byte() {
    let Some(folder) = thorough("ecp5") else { return };
    let wanted = of_today();
    assert_eq!(ecp5::build(&folder).expect("the tools run"), wanted);
}
