//! Faults of the library's use of a card.

use super::library;
use crate::Mutant;

const CARD: &str = "libnearpm/src/executor/card.rs";
const READ_BACK: &str = "libnearpm/src/executor/read_back.rs";

pub const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "a command reads a line that is dirty in the cache (C9)",
        file: CARD,
        find: "if dirty {\n            for entry in entries {",
        with: "if dirty && !FAULT {\n            for entry in entries {",
        tests: library("card", "a_log_captures_what_the_program_has_stored_and_not_flushed"),
    },
    Mutant {
        breaks: "lines that commands wrote are read from the cache (C9)",
        file: CARD,
        find: "for range in self.behind_the_cache.iter() {",
        with: "for range in self.behind_the_cache.iter().filter(|_| !FAULT) {",
        tests: library("card", ""),
    },
    Mutant {
        breaks: "a commit is acknowledged without a read-back (C4)",
        file: CARD,
        find: "self.asynchronous = None;\n                self.read_back(medium, ticket)",
        with: "self.asynchronous = None;\n                if FAULT { Ok(()) } else { self.read_back(medium, ticket) }",
        tests: library("card", "survive"),
    },
    Mutant {
        breaks: "what is acknowledged may depend on a failed log (C5)",
        file: READ_BACK,
        find: "self.card.verify_logs(self.pool, latched).map_err(|error| self.failed(error))?;",
        with: "if !FAULT { self.card.verify_logs(self.pool, latched).map_err(|error| self.failed(error))?; }",
        tests: library("card", "failed_log"),
    },
    Mutant {
        breaks: "a card that does not order host accesses is not waited for",
        file: CARD,
        find: "let ordered = card.capabilities().contains(Capabilities::HOST_ORDERED);",
        with: "let ordered = FAULT || card.capabilities().contains(Capabilities::HOST_ORDERED);",
        tests: library("card", "a_card_that_does_not_order_host_accesses_is_waited_for"),
    },
    Mutant {
        breaks: "an asynchronous commit is acknowledged without a read-back",
        file: CARD,
        find: "Some(ticket) => self.read_back(medium, ticket),",
        with: "Some(ticket) => if FAULT { Ok(()) } else { self.read_back(medium, ticket) },",
        tests: library("card_order", "what_is_acknowledged"),
    },
    Mutant {
        breaks: "a store overtakes a command that waits to be posted and writes the same line",
        file: CARD,
        find: "if self.waiting.iter().any(conflicts) {",
        with: "if !FAULT && self.waiting.iter().any(conflicts) {",
        tests: library("card_order", "a_store_to_what_was_freed"),
    },
    Mutant {
        breaks: "a full mapping table is an error instead of a fallback",
        file: CARD,
        find: "CommandError::MapFull, .. })) => return Ok(None),",
        with: "CommandError::MapFull, .. })) if !FAULT => return Ok(None),",
        tests: library("card", "a_full_mapping_table"),
    },
];
