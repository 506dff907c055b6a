//! Faults of direct pools whose commits a mechanism brings home.

use super::{library, unit};
use crate::Mutant;

const BY_MECHANISM: &str = "libnearpm/src/direct/by_mechanism.rs";
const MECHANISM: &str = "libnearpm/src/mechanism/mod.rs";
const TOGETHER: &str = "libnearpm/src/direct/together.rs";
const TRANSACTION: &str = "libnearpm/src/direct/transaction.rs";

pub const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "a commit is acknowledged before anything was read back",
        file: TOGETHER,
        find: "if *acknowledged >= number {",
        with: "if FAULT || *acknowledged >= number {",
        tests: library("direct_card", "threads_that_wait_together"),
    },
    Mutant {
        breaks: "the end of an epoch is not waited for",
        file: BY_MECHANISM,
        find: "if self.mechanism.has_epochs() && durability",
        with: "if !FAULT && self.mechanism.has_epochs() && durability",
        tests: unit("a_working_copy_by_checkpoints"),
    },
    Mutant {
        breaks: "what a processor has applied is left to the fences of the next",
        file: BY_MECHANISM,
        find: "if self.mechanism == Mechanism::Redo && inner.stores_by_this_processor() {",
        with: "if !FAULT && self.mechanism == Mechanism::Redo && inner.stores_by_this_processor() {",
        tests: unit("a_working_copy_by_redo_logs"),
    },
    Mutant {
        breaks: "a freed object stays one",
        file: MECHANISM,
        find: "let (set, clear) = if matches!(change, Change::Set(..)) { (mask, 0) } else { (0, mask) };",
        with: "let (set, clear) = if FAULT || matches!(change, Change::Set(..)) { (mask, 0) } else { (0, mask) };",
        tests: unit("a_working_copy_by_undo_logs"),
    },
    Mutant {
        breaks: "new objects of 512 bytes and more do not go home",
        file: TRANSACTION,
        find: "state.home.iter().cloned().chain(state.known.iter()).try_for_each(",
        with: "state.home.iter().filter(|_| !FAULT).cloned().chain(state.known.iter()).try_for_each(",
        tests: unit("a_working_copy_by_undo_logs"),
    },
    Mutant {
        breaks: "what the ring had no room for stays in the next commit",
        file: BY_MECHANISM,
        find: "inner.protocol.abort(&mut inner.cx).map_err(|error| pool.poison(error))?;",
        with: "if !FAULT { inner.protocol.abort(&mut inner.cx).map_err(|error| pool.poison(error))?; }",
        tests: library("direct_card", "what_the_ring_has_no_room_for"),
    },
];
