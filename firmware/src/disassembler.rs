//! Image to text that assembles to the same programs.

use std::fmt::Write;

use nearpm_interface::command::{OPCODES, Opcode};
use nearpm_interface::firmware::{Descriptor, Instruction, Operand, Use, descriptor};

use crate::assembler::{FLAGS, KINDS, STATUSES};
use crate::check::{OPERANDS, operand_name};
use crate::image::Image;

/// The text of all programs of an image.
///
/// Assembled again it gives an image with the same name, descriptors and programs; of an image that
/// [`crate::assemble`] made, the same bytes. Names of programs are not in an image: those of known
/// opcodes are given, others are called by their number.
pub fn disassemble(image: &Image) -> String {
    let mut out = format!("image {} revision {}\n", image.name(), image.revision());
    for opcode in 0..OPCODES as u8 {
        if let (Some(head), Some(code)) = (image.descriptor(opcode), image.program(opcode)) {
            let _ = writeln!(out, "\nprogram {} = {opcode:#04x}", program_name(opcode));
            declarations(&mut out, head, &code);
            out.push_str("begin\n");
            for instruction in code {
                let _ = writeln!(out, "    {}", instruction_text(head, instruction));
            }
        }
    }
    out
}

/// `undo_log` for opcode 0x01, `program_1f` for one that the card's own firmware does not have.
pub fn program_name(opcode: u8) -> String {
    let Some(known) = Opcode::from_code(opcode) else { return format!("program_{opcode:02x}") };
    let mut name = String::new();
    for c in format!("{known:?}").chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

fn declarations(out: &mut String, head: Descriptor, code: &[Instruction]) {
    for operand in OPERANDS {
        let name = operand_name(operand);
        let ring = if head.in_ring(operand) { " in ring" } else { "" };
        let _ = match head.operand_use(operand) {
            Use::None => Ok(()),
            Use::Bytes if operand == Operand::Source => writeln!(out, "    read {name}{ring}"),
            Use::Bytes => writeln!(out, "    write {name}{ring}"),
            Use::Entry => writeln!(out, "    alloc {name}"),
            Use::Word => writeln!(out, "    word {name}{ring}"),
        };
    }
    if code.iter().any(|i| matches!(i, Instruction::Store { .. })) {
        out.push_str("    value auxiliary\n");
    }
    if head.flag(descriptor::LOGS) {
        let _ = writeln!(out, "    logs {}", operand_name(head.logged()));
    }
    for (name, _) in FLAGS.iter().filter(|&&(_, bit)| head.flag(bit)) {
        let _ = writeln!(out, "    {name}");
    }
}

/// One instruction of a checked program with this descriptor.
pub fn instruction_text(head: Descriptor, instruction: Instruction) -> String {
    match instruction {
        Instruction::End { status: 0 } => "end".to_string(),
        Instruction::End { status } => {
            let name = STATUSES.iter().find(|(_, s)| s.code() == status).map(|(name, _)| name);
            format!("end {}", name.expect("a checked program ends with a status that has a name"))
        }
        Instruction::Copy { from, to, to_lines, lines, .. } => {
            let how = if lines { "lines" } else { "bytes" };
            let shift = match to_lines {
                0 => String::new(),
                1 => " + 1 line".to_string(),
                more => format!(" + {more} lines"),
            };
            format!("copy {how} {} -> {}{shift}", operand_name(from), operand_name(to))
        }
        Instruction::Generate { at, object, kind } => {
            let kind = KINDS.iter().find(|(_, k)| *k as u8 == kind).map(|(name, _)| name);
            let kind = kind.expect("a checked program generates entries of a known kind");
            format!("gen {} {kind} {}", operand_name(at), operand_name(object))
        }
        Instruction::Store { at } if head.flag(descriptor::COMMITS) => format!("delete {}", operand_name(at)),
        Instruction::Store { at } => format!("switch {}", operand_name(at)),
        Instruction::Wait => "wait".to_string(),
    }
}
