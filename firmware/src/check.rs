//! What every program must keep, whoever wrote it.

use nearpm_interface::command::OPCODES;
use nearpm_interface::firmware::{Descriptor, Instruction, Operand, PROGRAM_WORDS, Use, descriptor};
use nearpm_interface::media::EntryKind;
use nearpm_interface::status::Status;

use crate::image::Image;

/// A rule that an image breaks, and where.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("opcode {opcode:#04x}, instruction {pc}: {what}")]
pub struct CheckError {
    /// Opcode of the program.
    pub opcode: u8,
    /// Word of the control store.
    pub pc: usize,
    /// The rule that is broken.
    pub what: &'static str,
}

/// Checks the whole image.
pub(crate) fn image(image: &Image) -> Result<(), CheckError> {
    let fail = |opcode, pc, what| Err(CheckError { opcode, pc, what });
    if image.words().len() > PROGRAM_WORDS {
        return fail(0, PROGRAM_WORDS, "the programs are longer than the control store");
    }
    let fault = Instruction::End { status: Status::FirmwareFault.code() };
    if image.words().first().copied() != Some(fault.encode()) {
        return fail(0, 0, "word 0 must end with a firmware fault");
    }
    for opcode in 0..OPCODES as u8 {
        let descriptor = image.descriptor(opcode).expect("below the number of opcodes");
        if descriptor.flag(descriptor::VALID) {
            operands(opcode, descriptor)?;
            program(image, opcode, descriptor)?;
        } else if descriptor != Descriptor::default() {
            return fail(opcode, 0, "an invalid descriptor must be zero");
        }
    }
    Ok(())
}

fn operands(opcode: u8, d: Descriptor) -> Result<(), CheckError> {
    let fail = |what| Err(CheckError { opcode, pc: d.entry() as usize, what });
    if matches!(d.operand_use(Operand::Source), Use::Entry | Use::Word) {
        return fail("the source can only be read");
    }
    for operand in [Operand::Destination, Operand::Auxiliary] {
        if d.operand_use(operand) == Use::Entry && !d.in_ring(operand) {
            return fail("a log slot must lie in the log ring");
        }
    }
    let entries = [Operand::Destination, Operand::Auxiliary].iter().any(|&o| d.operand_use(o) == Use::Entry);
    if entries != d.flag(descriptor::LOGS) {
        return fail("a program logs if and only if it allocates a log slot");
    }
    if d.flag(descriptor::LOGS) && d.operand_use(d.logged()) != Use::Bytes {
        return fail("the logged operand must be bytes");
    }
    if d.flag(descriptor::CONGRUENT)
        && (d.operand_use(Operand::Source) != Use::Bytes || d.operand_use(Operand::Destination) != Use::Bytes)
    {
        return fail("only bytes to bytes can be congruent");
    }
    Ok(())
}

fn program(image: &Image, opcode: u8, d: Descriptor) -> Result<(), CheckError> {
    let mut copied = None;
    for pc in d.entry() as usize.. {
        let fail = |what| Err(CheckError { opcode, pc, what });
        let Some(&word) = image.words().get(pc).filter(|_| pc > 0) else {
            return fail("the program starts at 0 or has no end");
        };
        let Some(instruction) = Instruction::decode(word) else {
            return fail("no such instruction");
        };
        match instruction {
            Instruction::End { status } => {
                return match Status::from_code(status) {
                    Some(_) => Ok(()),
                    None => fail("no such status"),
                };
            }
            Instruction::Copy { from, from_lines, to, to_lines, lines } => {
                if d.operand_use(from) != Use::Bytes || from_lines != 0 {
                    return fail("a copy reads an operand of bytes, from its start");
                }
                match (d.operand_use(to), to_lines, lines) {
                    (Use::Entry, 1, true) if from == d.logged() => copied = Some(to),
                    (Use::Entry, ..) => {
                        return fail("a copy into a log slot is of the logged operand, whole lines, behind the head");
                    }
                    (Use::Bytes, 0, false) if d.flag(descriptor::CONGRUENT) && to != Operand::Source => {}
                    (Use::Bytes, ..) => return fail("a copy to bytes is exact, congruent and not to the source"),
                    _ => return fail("a copy writes bytes or a log slot"),
                }
            }
            Instruction::Generate { at, object, kind } => {
                if copied != Some(at) {
                    return fail("a head is generated for the slot of the last copy");
                }
                if object != d.logged() {
                    return fail("a head names the logged operand");
                }
                if EntryKind::from_code(kind).is_none() {
                    return fail("no such kind of log entry");
                }
            }
            Instruction::Store { at } => {
                if d.operand_use(at) != Use::Word {
                    return fail("a word is stored where the operand is a word");
                }
            }
            Instruction::Wait | Instruction::Synchronise => {}
        }
    }
    unreachable!("the loop ends by returning")
}
