//! Image to text that assembles to the same image.

use std::fmt::Write;

use nearpm_interface::command::{OPCODES, Opcode};
use nearpm_interface::firmware::{Descriptor, Instruction, Operand, Use, descriptor};
use nearpm_interface::media::EntryKind;

use crate::image::Image;

fn name(operand: Operand) -> &'static str {
    match operand {
        Operand::Source => "source",
        Operand::Destination => "destination",
        Operand::Auxiliary => "auxiliary",
    }
}

/// `CamelCase` as `snake_case`.
fn snake(camel: &str) -> String {
    camel.chars().enumerate().fold(String::new(), |mut out, (i, c)| {
        if c.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        out
    })
}

/// The programs of an image by rising entry, so that assembling them gives the same words.
pub fn disassemble(image: &Image) -> String {
    let mut out = format!("; {}, revision {}, checksum {:#010x}\n", image.name(), image.revision(), image.crc());
    let mut opcodes: Vec<u8> = (0..OPCODES as u8).filter(|&o| of(image, o).flag(descriptor::VALID)).collect();
    opcodes.sort_by_key(|&o| of(image, o).entry());
    for opcode in opcodes {
        program(image, opcode, &mut out);
    }
    out
}

fn of(image: &Image, opcode: u8) -> Descriptor {
    image.descriptor(opcode).expect("below the number of opcodes")
}

fn program(image: &Image, opcode: u8, out: &mut String) {
    let d = of(image, opcode);
    let title = Opcode::from_code(opcode).map_or(format!("program_{opcode:02x}"), |o| snake(&format!("{o:?}")));
    let _ = writeln!(out, "\nprogram {title} = {opcode:#04x}");
    for operand in [Operand::Source, Operand::Destination, Operand::Auxiliary] {
        let verb = match d.operand_use(operand) {
            Use::None => continue,
            Use::Bytes if operand == Operand::Source => "reads ",
            Use::Bytes => "writes",
            Use::Entry => "allocs",
            Use::Word => "word  ",
        };
        let ring = if d.in_ring(operand) && d.operand_use(operand) != Use::Entry { " in ring" } else { "" };
        let _ = writeln!(out, "    {verb}  {}{ring}", name(operand));
    }
    if d.flag(descriptor::LOGS) {
        let _ = writeln!(out, "    logs    {}", name(d.logged()));
    }
    for (bit, word) in [
        (descriptor::CONGRUENT, "congruent"),
        (descriptor::ORDERED, "ordered"),
        (descriptor::COMMITS, "commits"),
        (descriptor::PRIVILEGED, "privileged"),
        (descriptor::MAPS, "maps"),
        (descriptor::UNMAPS, "unmaps"),
    ] {
        if d.flag(bit) {
            let _ = writeln!(out, "    {word}");
        }
    }
    out.push_str("begin\n");
    for pc in d.entry().. {
        let instruction = image.instruction(pc);
        let _ = writeln!(out, "    {}", text(instruction, d));
        if matches!(instruction, Instruction::End { .. }) {
            break;
        }
    }
}

fn text(instruction: Instruction, d: Descriptor) -> String {
    match instruction {
        Instruction::End { .. } => "end".into(),
        Instruction::Copy { from, to, to_lines, lines, .. } => {
            let plus = if to_lines > 0 { format!(" + {to_lines}") } else { String::new() };
            let whole = if lines { " whole" } else { "" };
            format!("copy    {} -> {}{plus}{whole}", name(from), name(to))
        }
        Instruction::Generate { at, object, kind } => {
            let kind = EntryKind::from_code(kind).map_or("?".into(), |k| snake(&format!("{k:?}")));
            format!("gen     {} {kind} of {}", name(at), name(object))
        }
        Instruction::Store { at } if d.flag(descriptor::COMMITS) => format!("delete  {}", name(at)),
        Instruction::Store { at } => format!("switch  {}", name(at)),
        Instruction::Wait => "wait".into(),
        Instruction::Synchronise => "synchronise".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disassembly_assembles_to_the_same_image() {
        let image = crate::standard();
        let text = disassemble(&image);
        let again = crate::assemble(image.name(), image.revision(), &[("all.npm", &text)]).expect("it assembles");
        assert_eq!(again, image, "{text}");
    }

    #[test]
    fn every_opcode_of_the_interface_has_a_program() {
        let image = crate::standard();
        for &(opcode, _) in Opcode::ALL {
            assert!(of(&image, opcode as u8).flag(descriptor::VALID), "{opcode:?}");
        }
    }
}
