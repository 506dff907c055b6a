//! Microprograms of the NearPM units, their assembler and their image.
//!
//! A mechanism is a microprogram over the primitives of the paper's Table 1: *allocate* (an operand that is a log slot),
//! *generate metadata* (`gen`), *copy*, *delete* (`delete`), *switch page* (`switch`), *wait* and *synchronise*.
//! `docs/firmware.md` teaches how to add one.
//!
//! | module | holds |
//! |---|---|
//! | [`assembler`] | text to [`Image`] |
//! | [`disassembler`] | [`Image`] to text that assembles to the same image |
//! | [`image`] | the sealed bytes, and their refusal when they are wrong |
//! | [`check`] | what a program must keep, checked by both |

pub mod assembler;
pub mod check;
pub mod disassembler;
pub mod image;

pub use assembler::{AssembleError, assemble};
pub use disassembler::disassemble;
pub use image::{Image, ImageError};

/// Sources of the standard firmware: (file name, text).
pub const STANDARD: &[(&str, &str)] = &[
    ("fence.npm", include_str!("../programs/fence.npm")),
    ("undo_log.npm", include_str!("../programs/undo_log.npm")),
    ("apply.npm", include_str!("../programs/apply.npm")),
    ("undo_redo.npm", include_str!("../programs/undo_redo.npm")),
    ("commit.npm", include_str!("../programs/commit.npm")),
    ("checkpoint.npm", include_str!("../programs/checkpoint.npm")),
    ("shadow_copy.npm", include_str!("../programs/shadow_copy.npm")),
    ("switch.npm", include_str!("../programs/switch.npm")),
    ("recover.npm", include_str!("../programs/recover.npm")),
    ("mirror_log.npm", include_str!("../programs/mirror_log.npm")),
    ("map.npm", include_str!("../programs/map.npm")),
    ("unmap.npm", include_str!("../programs/unmap.npm")),
];

/// Revision of the standard firmware.
pub const STANDARD_REVISION: u32 = 1;

/// The firmware that ships with the card.
pub fn standard() -> Image {
    assemble("nearpm standard", STANDARD_REVISION, STANDARD).expect("the standard programs assemble; a test holds this")
}
