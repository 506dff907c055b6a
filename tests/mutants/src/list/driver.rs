//! Faults of the driver.

use crate::{Mutant, Tests};

const PAGE: &str = "driver/src/page.rs";
const SHARED_READ: &str = "driver/src/page/shared_read.rs";
const CARD: &str = "driver/src/card.rs";

const fn tests(filter: &'static str) -> Tests {
    Tests { package: "nearpm-driver", target: "card", filter }
}

const fn completions(filter: &'static str) -> Tests {
    Tests { package: "nearpm-driver", target: "completions", filter }
}

const fn page(filter: &'static str) -> Tests {
    Tests { package: "nearpm-driver", target: "lib", filter }
}

pub const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "who waits is answered by a read that began before it asked",
        file: SHARED_READ,
        find: "let next = state.begun + 1;",
        with: "let next = state.begun + if FAULT { 0 } else { 1 };",
        tests: page("in_every_order_a_shared_read"),
    },
    Mutant {
        breaks: "who finds a read under way makes one beside it",
        file: SHARED_READ,
        find: "if state.under_way < self.at_once {",
        with: "if FAULT || state.under_way < self.at_once {",
        tests: page("in_every_order_a_shared_read"),
    },
    Mutant {
        breaks: "the end of a shared read wakes nobody",
        file: SHARED_READ,
        find: "self.of.ended.notify_all();",
        with: "if !FAULT { self.of.ended.notify_all(); }",
        tests: page("in_every_order_a_shared_read"),
    },
    Mutant {
        breaks: "a read that fails stays under way",
        file: SHARED_READ,
        find: "state.under_way -= 1;",
        with: "if !FAULT || self.answer.is_some() { state.under_way -= 1; }",
        tests: page("in_every_order_a_read_that_fails"),
    },
    Mutant {
        breaks: "a command stays in the processor's buffers behind its posting (C3)",
        file: PAGE,
        find: "let ticket = self.enqueue(function, command, notify)?;\n        self.window.fence();",
        with: "let ticket = self.enqueue(function, command, notify)?;\n        if !FAULT { self.window.fence(); }",
        tests: tests("every_posting_mode_delivers_the_command_before_a_later_store"),
    },
    Mutant {
        breaks: "commands that share a fence have none (C3)",
        file: PAGE,
        find: "let ticket = self.post_unfenced(function, commands, notify)?;\n        self.window.fence();",
        with: "let ticket = self.post_unfenced(function, commands, notify)?;\n        if !FAULT { self.window.fence(); }",
        tests: tests("commands_that_share_a_fence_all_arrive_before_a_later_store"),
    },
    Mutant {
        breaks: "a command is written into a slot whose command has not left it",
        file: PAGE,
        find: "if self.posted - self.taken < CREDITS {\n            return Ok(());\n        }\n        // What lies",
        with: "if FAULT || self.posted - self.taken < CREDITS {\n            return Ok(());\n        }\n        // What lies",
        tests: completions("no_slot_is_written_before"),
    },
    Mutant {
        breaks: "more commands than the history remembers",
        file: PAGE,
        find: "if self.posted - self.drained >= HISTORY {",
        with: "if !FAULT && self.posted - self.drained >= HISTORY {",
        tests: completions("a_late_failure_names_its_command"),
    },
    Mutant {
        breaks: "a record of the lap before is read once more",
        file: PAGE,
        find: "if record.lap != (self.consumed / records + 1) as u16 {",
        with: "let former = FAULT && record.lap != 0 && record.lap == (self.consumed / records) as u16;\n        if !former && record.lap != (self.consumed / records + 1) as u16 {",
        tests: completions("a_record_is_read_once"),
    },
    Mutant {
        breaks: "a status line from before the page counted anew is judged by the new count",
        file: PAGE,
        find: "if known.base != self.bases {",
        with: "if !FAULT && known.base != self.bases {",
        tests: page("a_page_that_counts_anew_meanwhile"),
    },
    Mutant {
        breaks: "a failure seen behind a status line stands for a command that the card had dropped before",
        file: PAGE,
        find: "if progress.bad() > known.bad_seen ||",
        with: "if progress.bad() > if FAULT { self.bad_seen } else { known.bad_seen } ||",
        tests: page("a_failure_seen_meanwhile"),
    },
    Mutant {
        breaks: "who reads back judges the status line by what the page knows behind it",
        file: PAGE,
        find: "let known = page()?.known();\n        let status = status()?;",
        with: "let known = page()?.known();\n        let status = status()?;\n        let known = if FAULT { page()?.known() } else { known };",
        tests: page("in_every_order"),
    },
    Mutant {
        breaks: "a command counts as durable before the card has accepted it (C4)",
        file: PAGE,
        // Without the comparison of counts alone nothing breaks: the card answers the status line
        // when everything before is accepted.
        find: "let status = status()?;",
        with: "if FAULT {\n            return Ok(Latched::default());\n        }\n        let status = status()?;",
        tests: tests("what_was_read_back_survives_a_power_cut"),
    },
    Mutant {
        breaks: "a command that was refused reads back as durable",
        file: PAGE,
        find: "self.failure_of(ticket.number) {\n            return Err(failure.into());\n        }\n        if self.is_accepted",
        with: "self.failure_of(ticket.number).filter(|_| !FAULT) {\n            return Err(failure.into());\n        }\n        if self.is_accepted",
        tests: completions("a_refused_command_does_not_read_back"),
    },
    Mutant {
        breaks: "a read-back behind a refused command never ends",
        file: PAGE,
        find: "progress.bad() > 0 && !self",
        with: "!FAULT && progress.bad() > 0 && !self",
        tests: completions("what_comes_behind_a_refused_command"),
    },
    Mutant {
        breaks: "a wait ends before its command",
        file: PAGE,
        find: "if ticket.number < self.drained || self.outcome(ticket.number) == Outcome::Done {",
        with: "if FAULT || ticket.number < self.drained || self.outcome(ticket.number) == Outcome::Done {",
        tests: tests(""),
    },
    Mutant {
        breaks: "a drain ends before its commands",
        file: PAGE,
        find: "if progress.settled() >= self.posted - self.drained {",
        with: "if FAULT || progress.settled() >= self.posted - self.drained {",
        tests: tests(""),
    },
    Mutant {
        breaks: "all ones are taken for a status",
        file: PAGE,
        find: "if bytes.iter().all(|&b| b == 0xff) {",
        with: "if !FAULT && bytes.iter().all(|&b| b == 0xff) {",
        tests: tests("a_card_that_has_gone"),
    },
    Mutant {
        breaks: "a failed log is told to nobody (C5)",
        file: CARD,
        find: "if latched.entries == 0 {",
        with: "if FAULT || latched.entries == 0 {",
        tests: tests("a_failed_log"),
    },
    Mutant {
        breaks: "a pool hears of the failed logs of others only",
        file: CARD,
        find: "logs.known.iter().filter(|failure| failure.command.pool == pool);",
        with: "logs.known.iter().filter(|failure| (failure.command.pool == pool) != FAULT);",
        tests: tests("a_failed_log_is_told_to_its_pool_and_to_no_other"),
    },
    Mutant {
        breaks: "a card with another interface is used",
        file: CARD,
        find: "INTERFACE_VERSION => Ok(()),",
        with: "version if FAULT || version == INTERFACE_VERSION => Ok(()),",
        tests: tests("what_is_not_this_card_is_refused"),
    },
    Mutant {
        breaks: "a window beyond the card's memory",
        file: CARD,
        find: "if range.end > self.pm_bytes {",
        with: "if !FAULT && range.end > self.pm_bytes {",
        tests: tests("windows_and_pages_beyond_the_card_are_refused"),
    },
    Mutant {
        breaks: "an image of another size is loaded",
        file: CARD,
        find: "if image.len() != IMAGE_BYTES {",
        with: "if !FAULT && image.len() != IMAGE_BYTES {",
        tests: tests("firmware_is_loaded_where_there_is_none_and_refused_when_it_is_wrong"),
    },
];
