//! The other languages: Verilog parameters, C header, documentation page.

use std::fmt::Write;

use crate::command::{Command, FLAG_COMPLETE, Opcode};
use crate::completion::{Completion, PageStatus};
use crate::firmware::ImageHead;
use crate::media::{self, DirectoryEntry, DirectoryHead, EntryHead, PoolHead};
use crate::peer::PeerMessage;
use crate::registers::{self, Access};
use crate::save::{self, SaveHead, SavedItem, SavedMapping};
use crate::status::Status;
use crate::{INTERFACE_VERSION, Layout, geometry};

const LAYOUTS: &[Layout] = &[
    Command::LAYOUT,
    Completion::LAYOUT,
    PageStatus::LAYOUT,
    PeerMessage::LAYOUT,
    ImageHead::LAYOUT,
    SaveHead::LAYOUT,
    SavedMapping::LAYOUT,
    SavedItem::LAYOUT,
    EntryHead::LAYOUT,
    PoolHead::LAYOUT,
    DirectoryHead::LAYOUT,
    DirectoryEntry::LAYOUT,
];

/// Named sizes, as (name, value).
fn sizes() -> Vec<(&'static str, u64)> {
    vec![
        ("INTERFACE_VERSION", INTERFACE_VERSION as u64),
        ("LINE", geometry::LINE_U64),
        ("ADDRESS_BITS", geometry::ADDRESS_BITS as u64),
        ("REQUEST_SLOTS", geometry::REQUEST_SLOTS as u64),
        ("HOST_QUEUE_LINES", geometry::HOST_QUEUE_LINES as u64),
        ("HELD_STORES", geometry::HELD_STORES as u64),
        ("UNITS", geometry::UNITS as u64),
        ("CONTEXTS_PER_UNIT", geometry::CONTEXTS_PER_UNIT as u64),
        ("MAP_ENTRIES", geometry::MAP_ENTRIES as u64),
        ("PARKED_COMMANDS", geometry::PARKED_COMMANDS as u64),
        ("MAX_DEVICES", geometry::MAX_DEVICES as u64),
        ("MAX_COMMAND_BYTES", geometry::MAX_COMMAND_BYTES as u64),
        ("COMMAND_PAGES", geometry::COMMAND_PAGES as u64),
        ("COMMAND_PAGE_BYTES", geometry::COMMAND_PAGE_BYTES as u64),
        ("SLOTS_PER_PAGE", geometry::SLOTS_PER_PAGE as u64),
        ("SAVE_BASE", geometry::SAVE_BASE),
        ("SAVE_BYTES", geometry::SAVE_BYTES),
        ("FIRMWARE_BASE", geometry::FIRMWARE_BASE),
        ("FIRMWARE_SLOT_BYTES", geometry::FIRMWARE_SLOT_BYTES),
        ("POOLS_BASE", geometry::POOLS_BASE),
        ("FLAG_COMPLETE", FLAG_COMPLETE as u64),
        ("PAGE_BYTES", media::PAGE_BYTES),
        ("RING_HEAD_BYTES", media::RING_HEAD_BYTES),
        ("POOL_VERSION", media::POOL_VERSION as u64),
    ]
}

/// `CamelCase` as `UPPER_SNAKE`.
fn upper(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}

/// Numbers of one kind: title, prefix of the names, and (name, value, meaning) of each.
type Group = (&'static str, &'static str, Vec<(String, u64, String)>);

/// Numbers that all languages share, in groups: (title, prefix, [(name, value, meaning)]).
fn groups() -> Vec<Group> {
    let mut groups =
        vec![("Sizes", "", sizes().into_iter().map(|(n, v)| (n.to_string(), v, String::new())).collect::<Vec<_>>())];
    let opcodes = Opcode::ALL.iter().map(|&(o, d)| (upper(&format!("{o:?}")), o as u64, d.trim().into()));
    groups.push(("Opcodes", "OP_", opcodes.collect()));
    let statuses = Status::ALL.iter().map(|&(s, d)| (upper(&format!("{s:?}")), s.code() as u64, d.trim().into()));
    groups.push(("Status codes", "STATUS_", statuses.collect()));
    let registers = registers::ALL.iter().map(|r| (r.name.to_string(), r.offset as u64, r.doc.trim().into()));
    groups.push(("Registers", "REG_", registers.collect()));
    groups
}

/// Verilog: one `localparam` a number, and the bit range of every field.
pub fn verilog() -> String {
    let mut out = String::from("// Generated from the interface crate. Do not edit.\n");
    for (title, prefix, entries) in groups() {
        let _ = writeln!(out, "\n// {title}");
        for (name, value, _) in entries {
            let _ = writeln!(out, "localparam [63:0] NPM_{prefix}{name} = 64'h{value:x};");
        }
    }
    for layout in LAYOUTS {
        let _ = writeln!(out, "\n// {}: lowest bit and width of each field", layout.name);
        for field in layout.fields {
            let name = format!("NPM_{}_{}", upper(layout.name), field.name.to_uppercase());
            let _ = writeln!(out, "localparam {name}_LSB = {}, {name}_BITS = {};", field.offset * 8, field.size * 8);
        }
    }
    out
}

/// C11 header.
pub fn c_header() -> String {
    let mut out = String::from(
        "/* Generated from the interface crate. Do not edit. */\n\
         #ifndef NEARPM_INTERFACE_H\n#define NEARPM_INTERFACE_H\n#include <stddef.h>\n#include <stdint.h>\n",
    );
    for (title, prefix, entries) in groups() {
        let _ = writeln!(out, "\n/* {title} */");
        for (name, value, doc) in entries {
            let comment = if doc.is_empty() { String::new() } else { format!(" /* {doc} */") };
            let _ = writeln!(out, "#define NEARPM_{prefix}{name} 0x{value:x}u{comment}");
        }
    }
    for layout in LAYOUTS {
        let snake = upper(layout.name).to_lowercase();
        let _ = writeln!(out, "\n/* {} */\nstruct nearpm_{snake} {{", layout.doc.trim());
        for field in layout.fields {
            let declaration = match field.size {
                1 | 2 | 4 | 8 if !field.name.starts_with("reserved") => {
                    format!("uint{}_t {}", field.size * 8, field.name)
                }
                size => format!("uint8_t {}[{size}]", field.name),
            };
            let _ = writeln!(out, "    {declaration}; /* {}: {} */", field.offset, field.doc.trim());
        }
        let _ = writeln!(out, "}};\n_Static_assert(sizeof(struct nearpm_{snake}) == {}, \"{snake}\");", layout.size);
    }
    out.push_str("\n#endif\n");
    out
}

/// Documentation page, Markdown.
pub fn page() -> String {
    let mut out = String::from(
        "# Interface\n\nGenerated from the `interface` crate, where each number is defined once. \
         Offsets and sizes are in bytes; everything is little-endian.\n",
    );
    for layout in LAYOUTS {
        let _ = writeln!(
            out,
            "\n## {} ({} bytes)\n\n{}\n\n| offset | size | field | meaning |\n|---|---|---|---|",
            layout.name,
            layout.size,
            layout.doc.trim()
        );
        for f in layout.fields {
            let _ = writeln!(out, "| {} | {} | `{}` | {} |", f.offset, f.size, f.name, f.doc.trim());
        }
    }
    let _ = writeln!(out, "\n## Registers\n\n| offset | name | access | meaning |\n|---|---|---|---|");
    for r in registers::ALL {
        let access = match r.access {
            Access::ReadOnly => "read",
            Access::ReadWrite => "read, write",
            Access::WriteOnly => "write",
        };
        let _ = writeln!(out, "| {:#05x} | `{}` | {access} | {} |", r.offset, r.name, r.doc.trim());
    }
    for (title, _, entries) in groups().into_iter().filter(|(t, ..)| *t != "Registers") {
        let _ = writeln!(out, "\n## {title}\n\n| name | value | meaning |\n|---|---|---|");
        for (name, value, doc) in entries {
            let _ = writeln!(out, "| `{name}` | {value:#x} | {doc} |");
        }
    }
    let _ = writeln!(
        out,
        "\n## Persistence domain: {} bytes\n\n| structure | entries | bits each |\n|---|---|---|",
        save::persistence_domain_bytes()
    );
    for (name, entries, bits) in save::PERSISTENCE_DOMAIN {
        let _ = writeln!(out, "| {name} | {entries} | {bits} |");
    }
    out
}

/// The generated files: path from the workspace root, and text.
pub fn files() -> Vec<(&'static str, String)> {
    vec![
        ("interface/generated/nearpm_params.vh", verilog()),
        ("libnearpm/c/include/nearpm_interface.h", c_header()),
        ("docs/interface.md", page()),
    ]
}
