//! Microprograms of the NearPM units, their assembler and their image.
//!
//! A mechanism (undo log, checkpoint, shadow copy, ...) is a short straight program over the
//! primitives of the paper's Table 1, and an operand descriptor from which the card knows what to
//! translate, check and compare before a unit runs it. The programs that ship with the card are in
//! `programs/`, one mechanism a file; `docs/firmware.md` teaches how to add one.
//!
//! | module | holds |
//! |---|---|
//! | [`assembler`] | text to image, with the line and column of every mistake |
//! | [`disassembler`] | image to text that assembles to the same image |
//! | [`image`] | the sealed image, and its refusal when it is wrong |
//! | [`check`] | what a program must satisfy before a card may run it |

pub mod assembler;
pub mod check;
pub mod disassembler;
pub mod image;

pub use assembler::{AssemblyError, Source, assemble};
pub use disassembler::disassemble;
pub use image::{Image, ImageError};

/// The sources of the firmware that ships with the card: file name and text.
pub const STANDARD: &[Source<'static>] = &[
    Source { name: "image.npm", text: include_str!("../programs/image.npm") },
    Source { name: "fence.npm", text: include_str!("../programs/fence.npm") },
    Source { name: "undo_log.npm", text: include_str!("../programs/undo_log.npm") },
    Source { name: "apply.npm", text: include_str!("../programs/apply.npm") },
    Source { name: "undo_redo.npm", text: include_str!("../programs/undo_redo.npm") },
    Source { name: "commit.npm", text: include_str!("../programs/commit.npm") },
    Source { name: "checkpoint.npm", text: include_str!("../programs/checkpoint.npm") },
    Source { name: "shadow_copy.npm", text: include_str!("../programs/shadow_copy.npm") },
    Source { name: "switch.npm", text: include_str!("../programs/switch.npm") },
    Source { name: "recover.npm", text: include_str!("../programs/recover.npm") },
    Source { name: "mirror_log.npm", text: include_str!("../programs/mirror_log.npm") },
    Source { name: "map.npm", text: include_str!("../programs/map.npm") },
    Source { name: "unmap.npm", text: include_str!("../programs/unmap.npm") },
];

/// The firmware that ships with the card.
pub fn standard() -> Image {
    assemble(STANDARD).unwrap_or_else(|error| panic!("the programs that ship with the card assemble: {error}"))
}
