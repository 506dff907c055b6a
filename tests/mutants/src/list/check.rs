//! Faults of the check and the repair of pools.

use super::library;
use crate::{Mutant, Tests};

const TABLES: &str = "libnearpm/src/check/tables.rs";
const LOG: &str = "libnearpm/src/check/log.rs";

const CLASSES: Tests = library("check", "each_damage_is_found_and_nothing_else");

pub const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "objects of a chunk that is free are not seen",
        file: TABLES,
        find: "Ok(ChunkWord::Free) => self.examine_stray(chunk, found),",
        with: "Ok(ChunkWord::Free) if FAULT => {}\n            Ok(ChunkWord::Free) => self.examine_stray(chunk, found),",
        tests: CLASSES,
    },
    Mutant {
        breaks: "the extent of a ring is not looked at",
        file: LOG,
        find: "if word != 0 && seal::open_word(word).is_none() {",
        with: "if !FAULT && word != 0 && seal::open_word(word).is_none() {",
        tests: CLASSES,
    },
];
