//! What the generated Verilog as a whole keeps to, whatever it does.

use nearpm_hdl::{MemoryPorts, Parameters, generated, generated_bridge};
use std::collections::BTreeMap;

/// The card with two memory ports, which has every unit, and the bridge.
fn designs() -> [(&'static str, String); 2] {
    let card = generated(&Parameters { memory_ports: MemoryPorts::Two, ..Parameters::default() });
    [("card", card.verilog), ("bridge", generated_bridge().verilog)]
}

/// Lines and checksum of what is generated: a change that is to alter the sources alone is one that
/// leaves the file as it is. `NEARPM_BLESS=1` writes it anew.
#[test]
fn the_verilog_is_that_of_before() {
    let one = ("card with one memory port", generated(&Parameters::default()).verilog);
    let [two, bridge] = designs();
    let line = |(design, verilog): (&str, String)| {
        format!("{design}: {} lines, CRC-32C {:08x}\n", verilog.lines().count(), crc32c::crc32c(verilog.as_bytes()))
    };
    let now: String = [one, ("card with two memory ports", two.1), bridge].map(line).concat();
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verilog.txt");
    if std::env::var_os("NEARPM_BLESS").is_some() {
        std::fs::write(&file, &now).expect("the file can be written");
    }
    let before = std::fs::read_to_string(&file).expect("the file can be read");
    assert!(now == before, "it is now:\n{now}If that is meant: NEARPM_BLESS=1, and campaigns of the card again");
}

/// Modules by name, with their text.
fn modules(verilog: &str) -> BTreeMap<&str, &str> {
    let name =
        |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_alphanumeric() || "_$".contains(c)).len();
    verilog.split("\nmodule ").skip(1).map(|text| (&text[..name(text)], text)).collect()
}

/// Words of a text: identifiers of Verilog.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || "_$".contains(c))).filter(|word| !word.is_empty())
}

/// Loop variables that two blocks share are a race, and a synthesiser may refuse them.
#[test]
fn no_integer_is_shared_between_blocks() {
    let mut integers = 0;
    for (design, verilog) in designs() {
        for (name, text) in modules(&verilog) {
            // A block reaches to the next one.
            let heads = ["always ", "initial "].iter().flat_map(|head| text.match_indices(head));
            let mut bounds: Vec<usize> = heads.map(|(at, _)| at).chain([text.len()]).collect();
            bounds.sort_unstable();
            let blocks: Vec<&str> = bounds.windows(2).map(|w| &text[w[0]..w[1]]).collect();
            for integer in
                text.split("integer ").skip(1).flat_map(|rest| words(rest.split(';').next().unwrap_or_default()))
            {
                let code = |block: &&&str| {
                    let code: String =
                        block.lines().filter(|line| !line.contains("integer ")).collect::<Vec<_>>().join("\n");
                    words(&code).any(|word| word == integer)
                };
                let users = blocks.iter().filter(code).count();
                assert!(users <= 1, "{design}: module {name}: {users} blocks use the integer {integer}");
                integers += 1;
            }
        }
    }
    assert!(integers > 20, "{integers} integers");
}

/// Signals that say that a bus, or a part behind it, has failed: where they come in somebody reads
/// them.
const ERRORS: [&str; 9] =
    ["bresp", "rresp", "b_error", "rdata_error", "rsp_error", "memory_error", "lost", "ev_lost", "store_failed"];

/// Error inputs that nobody reads, and why that is right.
const UNREAD: [(&str, &str); 3] = [
    // A posted write of PCI Express has no answer; the card counts what it refuses.
    ("line_access", "host$bresp"),
    ("line_access", "cmd$bresp"),
    ("line_access", "ctrl$bresp"),
];

#[test]
fn every_error_of_a_bus_has_a_reader() {
    let mut read = 0;
    for (design, verilog) in designs() {
        for (name, text) in modules(&verilog) {
            // The wrapper only joins; what it joins is looked at inside.
            let inputs = text.lines().filter_map(|line| {
                let line = line.trim();
                let rest = line.strip_prefix("input wire").or(line.strip_prefix("input "))?;
                words(rest).last().filter(|_| line.ends_with(';'))
            });
            for input in inputs {
                let last = input.rsplit('$').find(|part| !part.chars().all(|c| c.is_ascii_digit())).unwrap_or(input);
                if !ERRORS.contains(&last) {
                    continue;
                }
                // The list of ports, the declaration, and a reader at least.
                let uses = words(text).filter(|word| *word == input).count();
                let unit = name.rsplit('$').next().unwrap_or(name);
                let excused = UNREAD.iter().any(|(who, what)| (unit == *who || unit == "access") && *what == input);
                assert!(uses > 2 || excused, "{design}: nobody reads `{input}` of module {name}");
                read += usize::from(uses > 2);
            }
        }
    }
    assert!(read > 20, "{read} error inputs with a reader");
}
