//! The whole card against models that are not this project's, in the thorough tier: its AXI ports
//! between cocotbext-axi's masters and memories, with random stalls, and a memory that answers out
//! of order; and the card behind its bridge, on cocotbext-pcie's root complex and UltraScale+
//! block.

mod cocotb_bench;

use std::path::Path;
use std::process;

use cocotb_bench::{Bench, python};
use nearpm_hdl::{BRIDGE_MODULE, GeneratedCard, MODULE, Parameters};
use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode, slot_offset};
use nearpm_interface::completion::PageStatus;
use nearpm_interface::geometry::{FIRMWARE_BASE, LINE, POOLS_BASE, SAVE_BASE};
use nearpm_interface::media::{RING_HEAD_BYTES, entry_data};
use nearpm_interface::registers;
use nearpm_interface::save::{ARM_LINE, ArmWord, FIRMWARE_WORD_OFFSET, firmware_word};
use serde_json::{Value, json};

/// Bytes of memory.
const PM_BYTES: u64 = 4 << 20;
const POOL: u32 = 5;
const THREAD: u16 = 2;
/// Offset of the log ring in the pool.
const RING: u64 = 0x8_0000;
/// Tag of the logs.
const TAG: u32 = 0x1234;
/// Bytes that are logged; each log begins at a line of its own.
const LENGTHS: [u32; 4] = [64, 200, 1, 1000];

/// A command in slot `slot` of a page, with what else the tests are told of it.
fn command(page: usize, slot: usize, command: &Command, rest: Value) -> Value {
    let hex: String = command.encode().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut all = json!({ "at": slot_offset(page, slot), "data": hex });
    all.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
    all
}

/// The memory of a card with firmware after a clean shutdown, as pieces.
fn image() -> Value {
    let firmware = nearpm_firmware::standard();
    let crc = u32::from_le_bytes(firmware.bytes()[LINE - 4..LINE].try_into().expect("four bytes"));
    let piece = |at: u64, bytes: &[u8]| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({ "at": at, "data": hex })
    };
    json!([
        piece(FIRMWARE_BASE, firmware.bytes()),
        piece(SAVE_BASE + (ARM_LINE * LINE) as u64, &ArmWord::Clean(1).encode().to_le_bytes()),
        piece(SAVE_BASE + FIRMWARE_WORD_OFFSET, &firmware_word(0, crc).to_le_bytes()),
    ])
}

/// What the tests in Python are told.
fn case() -> String {
    let map = Command {
        opcode: Opcode::Map as u8,
        thread: THREAD,
        pool: POOL,
        source: POOLS_BASE,
        destination: 1 << 20,
        auxiliary: RING,
        length: 0x2_0000,
        ..Command::default()
    };
    let mut commands = json!({ "map": command(0, 0, &map, json!({})) });
    let mut logs = Vec::new();
    for (index, length) in LENGTHS.into_iter().enumerate() {
        let (source, destination) = (0x2000 * (index as u64 + 1), RING + RING_HEAD_BYTES + 0x1000 * index as u64);
        let log = Command {
            opcode: Opcode::UndoLog as u8,
            thread: THREAD,
            pool: POOL,
            txid: 9,
            source,
            destination,
            sequence: index as u64 + 1,
            length,
            tag: TAG,
            flags: FLAG_COMPLETE,
            ..Command::default()
        };
        let entry = POOLS_BASE + destination + entry_data(source);
        let rest = json!({ "source": POOLS_BASE + source, "length": length, "entry": entry });
        let name = format!("log {index}");
        commands[&name] = command(1, index, &log, rest);
        logs.push(name);
    }
    let at = |status: PageStatus| status.to_bytes().iter().position(|byte| *byte == 1);
    json!({
        "bytes": PM_BYTES,
        "pools": POOLS_BASE,
        "image": image(),
        "open": registers::state::OPEN,
        "registers": {
            "STATE": registers::STATE,
            "RING": registers::completion_ring(1),
            "RING_SIZE": registers::COMPLETION1_SIZE,
        },
        "status": {
            "accepted": at(PageStatus { accepted: 1, ..PageStatus::default() }),
            "retired": at(PageStatus { retired: 1, ..PageStatus::default() }),
            "refused": at(PageStatus { refused: 1, ..PageStatus::default() }),
            "failed": at(PageStatus { failed: 1, ..PageStatus::default() }),
        },
        "commands": commands,
        "logs": logs,
        "tag": TAG,
    })
    .to_string()
}

/// Breaks of the protocol: name, a place in the generated Verilog, what stands there instead, a
/// test that must fail.
const FAULTS: [(&str, &str, &str, &str); 3] = [
    (
        "last-beat",
        "m$wlast = state$q[(64'h4)+:(1)];",
        "m$wlast = 1'b1;",
        "logs_hold_what_was_there_when_they_were_accepted",
    ),
    (
        "identifier",
        ".s_axi_host$arid(s_axi_host_arid)",
        ".s_axi_host$arid({s_axi_host_arid[5:1], 1'b0})",
        "stores_and_loads_against_an_array",
    ),
    (
        "strobes",
        ".s_axi_host$wstrb(s_axi_host_wstrb)",
        ".s_axi_host$wstrb(s_axi_host_wstrb | {s_axi_host_wstrb[62:0], 1'b0})",
        "stores_and_loads_against_an_array",
    ),
];

#[test]
fn the_cards_ports_satisfy_other_peoples_models_and_breaks_of_the_protocol_do_not() {
    let Some(python) = python() else { return };
    let verilog = nearpm_hdl::generated(&Parameters::default()).verilog;
    let bench = Bench { python: &python, top: MODULE, tests: "card_ports", case: case() };
    let (said, passed) = bench.run(&verilog, "sound", None);
    assert!(passed && said.contains("cocotb: 2 tests, 0 failed"), "{said}");
    bench.faults_are_seen(&verilog, &FAULTS);
}

/// A module that holds card and bridge.
const JOINED: &str = "card_behind_bridge";

/// A port: name, whether it is an input, bits.
type Port = (String, bool, u64);

fn ports(generated: &GeneratedCard) -> Vec<Port> {
    let description: Value = serde_json::from_str(&generated.ports_json).expect("a description of ports");
    let port = |port: &Value| {
        let name = port["name"].as_str().expect("a name").to_owned();
        (name, port["direction"] == "input", port["bits"].as_u64().expect("a width"))
    };
    description["ports"].as_array().expect("ports").iter().map(port).collect()
}

/// Card and bridge in one module: masters of one at the slaves of the same name at the other, as
/// the VCU118's design has them (which puts crossings between clocks between them). Other ports are
/// the module's own; outputs that only one side has of a bundle are left open.
fn joined(bridge: &GeneratedCard, card: &GeneratedCard) -> String {
    let bundle = |name: &str| name.starts_with("m_axi") || name.starts_with("s_axi");
    let partner = |name: &str| match name.split_at(1) {
        ("m", rest) => format!("s{rest}"),
        (_, rest) => format!("m{rest}"),
    };
    let sides = [(BRIDGE_MODULE, ports(bridge), ports(card)), (MODULE, ports(card), ports(bridge))];
    let (mut header, mut body, mut joined) = (Vec::new(), String::new(), 0);
    for (module, own, other) in &sides {
        let mut pins = Vec::new();
        for (name, input, bits) in own {
            let found = other.iter().find(|(of, ..)| bundle(name) && *of == partner(name));
            let net = match found {
                Some((_, of_other, of_bits)) => {
                    assert!(input != of_other && bits == of_bits, "{name} does not fit its partner");
                    joined += 1;
                    name[1..].to_owned()
                }
                // Of a bundle that is joined: lock, cache and the like, which only masters have.
                None if bundle(name) && !name.starts_with("m_axi_mem") => {
                    assert!(!input, "{name} has no partner");
                    continue;
                }
                None => {
                    let direction = if *input { "input" } else { "output" };
                    header.push(format!("{direction} wire [{}:0] {name}", bits - 1));
                    name.clone()
                }
            };
            if found.is_some() && !input {
                body += &format!("wire [{}:0] {net};\n", bits - 1);
            }
            pins.push(format!(".{name}({net})"));
        }
        body += &format!("{module} {module}_here ({});\n", pins.join(", "));
    }
    assert!(joined > 0 && joined % 2 == 0, "{joined} ends of nets");
    // Clock and reset are both sides'.
    header.sort();
    header.dedup();
    format!(
        "{}\n{}\n`default_nettype wire\nmodule {JOINED} ({});\n{body}endmodule\n",
        bridge.verilog,
        card.verilog,
        header.join(", ")
    )
}

/// Breaks in the bridge, in the card, and between them.
const JOINED_FAULTS: [(&str, &str, &str, &str); 4] = [
    (
        "bridge",
        "bytes = {dwords, 2'd0} - {11'd0, offset} - {11'd0, spare};",
        "bytes = {dwords, 2'd0};",
        "stores_and_loads_against_an_array",
    ),
    ("card", "m$wlast = state$q[(64'h4)+:(1)];", "m$wlast = 1'b1;", "logs_are_whole_when_their_interrupts_come"),
    (
        "between",
        ".m_axi_cpl_awaddr(_axi_cpl_awaddr)",
        ".m_axi_cpl_awaddr()",
        "logs_are_whole_when_their_interrupts_come",
    ),
    (
        "reset",
        "drained = (ctrl$rdata != booting) & (ctrl$rdata != replaying);",
        "drained = 1'b1;",
        "a_function_level_reset_drains_logs",
    ),
];

#[test]
fn a_host_works_with_the_card_behind_its_bridge_and_breaks_are_seen() {
    let Some(python) = python() else { return };
    let verilog = joined(&nearpm_hdl::generate_bridge(), &nearpm_hdl::generated(&Parameters::default()));
    let bench = Bench { python: &python, top: JOINED, tests: "card_behind_bridge", case: case() };
    let (said, passed) = bench.run(&verilog, "sound", None);
    assert!(passed && said.contains("cocotb: 3 tests, 0 failed"), "{said}");
    bench.faults_are_seen(&verilog, &JOINED_FAULTS);
}

#[test]
fn the_first_waveform_shows_what_the_tutorial_says() {
    if python().is_none() {
        return;
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tutorials");
    let page = std::fs::read_to_string(docs.join("first-waveform.md")).expect("the page can be read");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first-waveform");
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let card = folder.join("nearpm_card.v");
    std::fs::write(&card, nearpm_hdl::generated(&Parameters::default()).verilog).expect("the card can be written");
    let run = |program: &mut process::Command| {
        let output = program.current_dir(&folder).output().expect("Icarus starts");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        said.into_owned()
    };
    let bench = std::fs::canonicalize(docs.join("bench.v")).expect("the bench is there");
    run(process::Command::new("iverilog").args(["-g2012", "-o", "bench.vvp", "-s", "bench"]).arg(bench).arg(card));
    let said = run(process::Command::new("vvp").arg("bench.vvp"));
    let registers: Vec<&str> = said.lines().filter(|line| line.contains(": register ")).collect();
    let [id, booting, .., open] = registers[..] else { panic!("{said}") };
    for line in [id, booting, open] {
        assert!(page.lines().any(|shown| shown == line), "the page does not show {line:?}");
    }
}
