//! The bitstream for the ECP5-85k: the manifest is of today's hardware; in the thorough tier it
//! builds to the byte as the manifest says, and its gates do what the card does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nearpm_bitstreams::ecp5::{self, Built};
use nearpm_bitstreams::manifest::Manifest;
use nearpm_firmware::standard;
use nearpm_hdl::bundles::Work;
use nearpm_hdl::dut::{PortValue, Value};
use nearpm_interface::command::Opcode;
use nearpm_interface::geometry::FIRMWARE_BASE;
use nearpm_interface::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead, EntryKind};
use nearpm_interface::registers::firmware_status;
use nearpm_interface::status::Status;
use nearpm_verilate::{Instance, Library, Port, Source};

/// Bits of a frame, and where its fields are; see `ecp5/nearpm_ecp5.v`.
const FRAME: usize = 576;
const LINE: usize = 552;
const OPERATION: usize = 564;

#[derive(Clone, Copy)]
enum Operation {
    Status = 0,
    Store = 1,
    Load = 2,
    Issue = 3,
    Firmware = 4,
}

/// The part, as somebody with four wires sees it.
struct Part {
    model: Instance,
    clock: Port,
    scan_clock: Port,
    scan_in: Port,
    go: Port,
    out: Port,
    ready: Port,
}

impl Part {
    fn new(verilog: String) -> Self {
        let source = Source::new(ecp5::TOP, verilog).with_deny_warnings(false);
        let library = Library::build(&source).unwrap_or_else(|error| panic!("{error}"));
        let mut model = library.instance().unwrap_or_else(|error| panic!("{error}"));
        let port = |name: &str| model.port(name).unwrap_or_else(|error| panic!("{error}"));
        let (clock, reset) = (port("clk"), port("rst_n"));
        let [scan_clock, scan_in, go] = ["scan_clk", "scan_in", "scan_go"].map(port);
        let [out, ready] = ["scan_out", "ready"].map(port);
        model.set_u64(reset, 0);
        (0..20).for_each(|_| model.cycle(clock));
        model.set_u64(reset, 1);
        (0..20).for_each(|_| model.cycle(clock));
        Self { model, clock, scan_clock, scan_in, go, out, ready }
    }

    fn run(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.model.cycle(self.clock));
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

    fn execute(&mut self, operation: Operation, payload: Value, line: u64) {
        let frame = payload.with_slice(LINE, 12, line);
        self.shift(frame.with_slice(OPERATION, 3, operation as u64));
        self.model.set_u64(self.go, 1);
        self.run(6);
        self.model.set_u64(self.go, 0);
        for _ in 0..20_000 {
            if self.model.get_u64(self.ready) != 0 {
                self.run(4);
                return;
            }
            self.run(1);
        }
        panic!("the part is never ready");
    }

    fn store(&mut self, address: u64, bytes: &[u8]) {
        for (line, bytes) in (address / 64..).zip(bytes.chunks(64)) {
            self.execute(Operation::Store, Value::from_bytes(bytes), line);
        }
    }

    fn load(&mut self, address: u64, bytes: usize) -> Vec<u8> {
        let mut all = Vec::new();
        for line in (address / 64..).take(bytes.div_ceil(64)) {
            self.execute(Operation::Load, Value::ZERO, line);
            all.extend(self.shift(Value::ZERO).slice(0, 512).to_bytes(64));
        }
        all.truncate(bytes);
        all
    }

    /// Bits of the status: from, how many.
    fn status<const N: usize>(&mut self, fields: [(usize, usize); N]) -> [u64; N] {
        self.execute(Operation::Status, Value::ZERO, 0);
        let status = self.shift(Value::ZERO);
        fields.map(|(low, bits)| status.slice(low, bits).to_u64())
    }
}

/// Memory stored and loaded, the status before and after, firmware loaded, two undo logs of 200
/// bytes issued: sealed entries in memory.
fn logs_are_durable(verilog: String) {
    let mut part = Part::new(verilog);
    let [count, in_force] = part.status([(0, 8), (61, 1)]);
    assert_eq!((count, in_force), (0, 0), "after reset");
    part.store(FIRMWARE_BASE, standard().bytes());
    part.execute(Operation::Firmware, Value::ZERO, 0);
    let [status, in_force] = part.status([(21, 8), (61, 1)]);
    assert_eq!((status, in_force), (u64::from(firmware_status::OK), 1));
    let data: Vec<u8> = (0..256u32).map(|n| (n * 7 + 1) as u8).collect();
    part.store(0x3000, &data);
    assert_eq!(part.load(0x3000, data.len()), data);
    let entry = standard().descriptor(Opcode::UndoLog as u8).expect("a program").entry();
    for done in [1, 2] {
        let (source, destination, slot) = (0x3008, 0x8000 + 0x1000 * done, done + 5);
        let head = EntryHead {
            magic: ENTRY_MAGIC,
            kind: EntryKind::Undo as u8,
            version: ENTRY_VERSION,
            thread: 3,
            sequence: 0x1122_3344_5566,
            txid: 77 + done,
            offset: 0x40_0008,
            length: 200,
            pool: 0xabcd,
            participants: 1,
            ..EntryHead::default()
        };
        let work = Work {
            slot: slot.into(),
            pc: u64::from(entry).into(),
            source: source.into(),
            destination: destination.into(),
            source_offset: head.offset.into(),
            length: u64::from(head.length).into(),
            thread: u64::from(head.thread).into(),
            pool: u64::from(head.pool).into(),
            txid: head.txid.into(),
            sequence: head.sequence.into(),
            participants: u64::from(head.participants).into(),
            ..Work::default()
        };
        part.execute(Operation::Issue, work.to_value(), 0);
        part.run(2000);
        let [count, of, status] = part.status([(0, 8), (8, 5), (13, 8)]);
        assert_eq!((count, of, status), (done, slot, Status::Ok as u64));
        let wanted = head.encode(&data[8..208]);
        assert_eq!(part.load(destination, wanted.len()), wanted, "the entry of log {done}");
    }
}

/// The manifest as it stands.
fn manifest() -> Built {
    Manifest::read().expect("the manifest").ecp5
}

/// The same, which must be of today's Verilog, pins and options.
fn of_today() -> Built {
    let built = manifest();
    let source = ecp5::source(&ecp5::design());
    assert_eq!(built.source, source, "the hardware has changed: ./x bitstream makes the manifest anew");
    built
}

#[test]
fn the_manifest_is_of_todays_hardware_and_the_design_makes_logs_durable() {
    let built = of_today();
    for [used, available] in [built.luts, built.flip_flops, built.block_rams] {
        assert!(0 < used && used <= available);
    }
    assert!(built.mhz >= 100.0, "{} MHz: the aim is 100", built.mhz);
    logs_are_durable(ecp5::design());
}

/// The page on bitstreams.
fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/bitstreams.md");
    std::fs::read_to_string(path).expect("the page")
}

#[test]
fn the_page_says_what_the_manifest_says() {
    let (built, page) = (manifest(), page());
    let grouped = |number: u64| match number {
        0..1000 => number.to_string(),
        _ => format!("{} {:03}", number / 1000, number % 1000),
    };
    let of = |[used, available]: [u64; 2]| {
        format!("| {} ({:.0} %) |", grouped(used), 100.0 * used as f64 / available as f64)
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
    nearpm_tier::thorough().then_some(())?;
    let there = ecp5::tools_are_there();
    assert!(there || std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "the tools for ECP5 are missing: ./x test");
    there.then(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
}

#[test]
fn the_gates_make_logs_durable() {
    let Some(folder) = thorough("ecp5-gates") else { return };
    ecp5::synthesise(&ecp5::design(), &folder).expect("yosys runs");
    logs_are_durable(ecp5::gates(&folder).expect("yosys runs"));
}

#[test]
fn the_bitstream_is_the_manifests_to_the_byte() {
    let Some(folder) = thorough("ecp5") else { return };
    let wanted = of_today();
    assert_eq!(ecp5::build(&folder).expect("the tools run"), wanted);
}
