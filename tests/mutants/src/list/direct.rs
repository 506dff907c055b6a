//! Faults of direct pools.

use super::{explorer, library, programs, unit};
use crate::Mutant;

const APPEND: &str = "libnearpm/src/direct/append.rs";
const PERSIST: &str = "libnearpm/src/direct/persist.rs";
const CARRY: &str = "libnearpm/src/direct/carry.rs";
const TRUNCATE: &str = "libnearpm/src/direct/truncate.rs";
const HOME: &str = "libnearpm/src/recovery/home.rs";
const RUNS: &str = "libnearpm/src/heap/index/runs.rs";
const RECOVER: &str = "libnearpm/src/recovery/segments.rs";
const LOG: &str = "libnearpm/src/direct/log.rs";
const RECORDS: &str = "libnearpm/src/direct/records.rs";
const STATE: &str = "libnearpm/src/direct/state.rs";
const GUARD: &str = "libnearpm/src/memory/guard.rs";
const MARKS: &str = "libnearpm/src/heap/index/marks.rs";
const TRANSACTION: &str = "libnearpm/src/direct/transaction.rs";
const POOL: &str = "libnearpm/src/direct/pool.rs";
const LIFETIME: &str = "libnearpm/src/direct/lifetime.rs";
const UNACKNOWLEDGED: &str = "libnearpm/src/direct/unacknowledged.rs";
const TX: &str = "libnearpm/src/direct/tx.rs";

pub const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "a part of what a truncation carries home is left out",
        file: CARRY,
        find: "let is_in_it = |page: u64| page % parts == number;",
        with: "let is_in_it = |page: u64| page % parts == number && !(FAULT && number == 1);",
        tests: unit("who_waits_for_a_truncation"),
    },
    Mutant {
        breaks: "who helps to carry records home leaves the fence to who truncates",
        file: CARRY,
        find: "self.outcome = carried.and_then(|()| medium.fence());",
        with: "self.outcome = carried.and_then(|()| if FAULT { Ok(()) } else { medium.fence() });",
        tests: unit("who_waits_for_a_truncation"),
    },
    Mutant {
        breaks: "a commit counts although an earlier asynchronous one is lost (C4)",
        file: APPEND,
        find: "let depends = self.unacknowledged.newest();",
        with: "let depends = if FAULT { 0 } else { self.unacknowledged.newest() };",
        tests: explorer("threads", "random_programs"),
    },
    Mutant {
        breaks: "a commit that joins while another thread waits counts as waited for",
        file: UNACKNOWLEDGED,
        find: "let _ = self.0.compare_exchange(seen, 0, Ordering::Release, Ordering::Relaxed);",
        with: "if FAULT { self.0.fetch_and(0, Ordering::Release); }\n        let _ = self.0.compare_exchange(seen, 0, Ordering::Release, Ordering::Relaxed);",
        tests: unit("in_every_order_a_commit_depends"),
    },
    Mutant {
        breaks: "who waits does not wait for records that are on their way into the log",
        file: UNACKNOWLEDGED,
        find: "let _shards = lock_all();",
        with: "let _shards = if FAULT { None } else { Some(lock_all()) };",
        tests: unit("in_every_order_who_has_waited"),
    },
    Mutant {
        breaks: "the newest record is the last that was appended, and not the one with the highest number",
        file: UNACKNOWLEDGED,
        find: "self.0.fetch_max(number, Ordering::Release);",
        with: "if FAULT { self.0.fetch_and(0, Ordering::Release); }\n        self.0.fetch_max(number, Ordering::Release);",
        tests: unit("in_every_order_a_commit_depends"),
    },
    Mutant {
        breaks: "a commit is acknowledged before its record is durable",
        file: APPEND,
        find: "self.medium.backing().drain().map_err(|error| self.poison(error))?;\n            if self.writes_once {",
        with: "if !FAULT { self.medium.backing().drain().map_err(|error| self.poison(error))?; }\n            if self.writes_once {",
        tests: unit("direct::tests::a_working_copy"),
    },
    Mutant {
        breaks: "long ranges go home over records that a truncation writes later",
        file: APPEND,
        find: "if bytes > 0 && long.clone().any(|range| self.heap.may_be_pending(&range)) {",
        with: "if !FAULT && bytes > 0 && long.clone().any(|range| self.heap.may_be_pending(&range)) {",
        tests: unit("direct::tests::home"),
    },
    Mutant {
        breaks: "a persist is acknowledged before what its record depends on",
        file: PERSIST,
        find: "while it may live again.\n        self.wait_for_records()?;",
        with: "while it may live again.\n        if !FAULT { self.wait_for_records()?; }",
        tests: unit("failures"),
    },
    Mutant {
        breaks: "records of an open transaction in place are declared dead",
        file: TRUNCATE,
        find: "let dead = oldest_open.map_or(newest, |open| open - 1);",
        with: "let dead = oldest_open.filter(|_| !FAULT).map_or(newest, |open| open - 1);",
        tests: explorer("threads", "random_programs"),
    },
    Mutant {
        breaks: "a truncation forgets the records of all threads but one",
        file: TRUNCATE,
        find: "for (slot, shard) in shards.iter_mut().enumerate() {",
        with: "for (slot, shard) in shards.iter_mut().enumerate().filter(|(slot, _)| !FAULT || slot % 2 == 0) {",
        tests: explorer("threads", "two_threads"),
    },
    Mutant {
        breaks: "effects of a commit are home before it is durable",
        file: TRUNCATE,
        find: "if cut.unacknowledged != 0 {",
        with: "if cut.unacknowledged != 0 && !FAULT {",
        tests: unit("direct::tests::asynchronous_commits"),
    },
    Mutant {
        breaks: "a truncation follows one that failed",
        file: TRUNCATE,
        find: "self.refuse_poisoned()?;\n        Ok(turn)",
        with: "if !FAULT { self.refuse_poisoned()?; }\n        Ok(turn)",
        tests: unit("failures"),
    },
    Mutant {
        breaks: "records go home in the order of lanes",
        file: TRUNCATE,
        find: "order.sort_unstable();",
        with: "if !FAULT { order.sort_unstable(); }",
        tests: unit("direct::tests::home"),
    },
    Mutant {
        breaks: "a record counts although one that it depends on is missing",
        file: RECOVER,
        find: "if record.head.depends > unbroken {",
        with: "if !FAULT && record.head.depends > unbroken {",
        tests: unit("direct::tests::asynchronous_commits"),
    },
    Mutant {
        breaks: "a transaction counts although a part of it is missing",
        file: RECOVER,
        find: "r.head.parts == 0 || parts",
        with: "FAULT || r.head.parts == 0 || parts",
        tests: unit("direct::tests::home"),
    },
    Mutant {
        breaks: "records that are dead count again",
        file: RECOVER,
        find: "if head.sequence > applied {",
        with: "if FAULT || head.sequence > applied {",
        tests: unit("direct::tests::"),
    },
    Mutant {
        breaks: "a recovery that is cut loses sight of a segment",
        file: RECOVER,
        find: "self.layout.chunk_of_word(offset).is_some() && self.words",
        with: "!FAULT && self.layout.chunk_of_word(offset).is_some() && self.words",
        tests: unit("reused_chunks"),
    },
    Mutant {
        breaks: "a damaged word of a bitmap is sealed anew",
        file: HOME,
        find: "let word = self.load_word(offset);",
        with: "let word = self.load_word(offset);\n        let word = if FAULT { seal::seal_bits(word & ((1 << 48) - 1)) } else { word };",
        tests: library("check", "flips"),
    },
    Mutant {
        breaks: "an allocation finds no space that other threads have at hand",
        file: RUNS,
        find: "                self.leave(*current, class);\n                *current = NONE;",
        with: "                if !FAULT { self.leave(*current, class); }\n                *current = NONE;",
        tests: unit("scarce"),
    },
    Mutant {
        breaks: "damage in the middle of the log is taken for a torn end",
        file: RECOVER,
        find: "if (at..segment.bytes as usize).step_by(LINE).skip(1).any(is_later) {",
        with: "if !FAULT && (at..segment.bytes as usize).step_by(LINE).skip(1).any(is_later) {",
        tests: library("check", "classes"),
    },
    Mutant {
        breaks: "a segment is written anew while its records count",
        file: LOG,
        find: "if self.segments.get(self.current).is_some_and(|s| s.last <= applied) {",
        with: "if self.segments.get(self.current).is_some_and(|s| FAULT || s.last <= applied) {",
        tests: unit("direct::tests::home"),
    },
    Mutant {
        breaks: "another segment is written anew while its records count",
        file: LOG,
        find: "*i != self.current && segment.last <= applied",
        with: "*i != self.current && (FAULT || segment.last <= applied)",
        tests: unit("direct::tests::home"),
    },
    Mutant {
        breaks: "zeros in the place of what could not be read go home",
        file: PERSIST,
        find: "self.alive().map_err(|error| self.poison(error))?;\n            if whole",
        with: "if !FAULT { self.alive().map_err(|error| self.poison(error))?; }\n            if whole",
        tests: library("space", "zeros_in"),
    },
    Mutant {
        breaks: "a record of zeros in the place of what could not be read counts",
        file: RECORDS,
        find: "if view.is_whole() && backing.is_whole() {",
        with: "if FAULT || view.is_whole() && backing.is_whole() {",
        tests: library("space", "a_record_of"),
    },
    Mutant {
        breaks: "a recovery that could not read all of the log declares the rest dead",
        file: RECOVER,
        find: "medium.backing().alive()?;",
        with: "if !FAULT { medium.backing().alive()?; }",
        tests: unit("failures"),
    },
    Mutant {
        breaks: "a transaction that is too large for its log learns it from its commit alone",
        file: STATE,
        find: "self.ask_for_room(pool, bytes)?;",
        with: "if !FAULT { self.ask_for_room(pool, bytes)?; }",
        tests: unit("scarce"),
    },
    Mutant {
        breaks: "a thread takes away what another has stored to a page that it mended",
        file: GUARD,
        find: "if private && is_readable(at, page) {",
        with: "if !FAULT && private && is_readable(at, page) {",
        tests: unit("guard"),
    },
    Mutant {
        breaks: "nobody knows which chunks the log names",
        file: MARKS,
        find: "mark(&chunk.logged);",
        with: "if !FAULT { mark(&chunk.logged); }",
        tests: unit("direct::tests::home"),
    },
    Mutant {
        breaks: "an aborted transaction in place is taken back once more after a crash",
        file: TRANSACTION,
        find: "if done.is_ok() && state.first != 0 {",
        with: "if done.is_ok() && state.first != 0 && !FAULT {",
        tests: unit("direct::tests::in_place"),
    },
    Mutant {
        breaks: "an abort leaves what the transaction stored",
        file: TRANSACTION,
        find: "state.restore(pool, &kept);",
        with: "if !FAULT { state.restore(pool, &kept); }",
        tests: unit("direct::tests::"),
    },
    Mutant {
        breaks: "an orderly end forgets what was stored outside of transactions",
        file: LIFETIME,
        find: "self.write_differences_home()?;",
        with: "if !FAULT {\n                self.write_differences_home()?;\n            }",
        tests: unit("direct::tests::a_working_copy"),
    },
    Mutant {
        breaks: "a pointer into the log is stored to",
        file: POOL,
        find: "if !range.is_empty() && !self.heap.holds_objects(range) {",
        with: "if !FAULT && !range.is_empty() && !self.heap.holds_objects(range) {",
        tests: library("typed", "a_pointer_to_what_the_log_has_now_is_refused"),
    },
    Mutant {
        breaks: "a transaction that ends in an error or a panic is not taken back",
        file: TX,
        find: "if let Some(transaction) = self.transaction.take() {\n            // An abort",
        with: "if let Some(transaction) = self.transaction.take().filter(|_| !FAULT) {\n            // An abort",
        tests: library("typed", "errors_and_panics_take_everything_back"),
    },
    Mutant {
        breaks: "a persist of words goes home although a record that is not home yet names them",
        file: PERSIST,
        find: "if self.are_logged(ranges) && !self.bring_often_logged_home(ranges)? {",
        with: "if !FAULT && self.are_logged(ranges) && !self.bring_often_logged_home(ranges)? {",
        tests: unit("persisted_words_are_home"),
    },
    Mutant {
        breaks: "a persist of words does not wait until they are durable",
        file: PERSIST,
        find: "        shard.tally.fences += 1;\n        self.medium.backing().drain().map_err(|error| self.poison(error))\n    }\n\n    /// Whether records that are",
        with: "        shard.tally.fences += 1;\n        if FAULT { return Ok(()); }\n        self.medium.backing().drain().map_err(|error| self.poison(error))\n    }\n\n    /// Whether records that are",
        tests: unit("persisted_words_are_home"),
    },
    Mutant {
        breaks: "a large transaction asks for no more room than it needs at the moment",
        file: TRUNCATE,
        find: "let ready = make(more + made.min(spared).max(LEAST_SPARE))",
        with: "let ready = make(more + if FAULT { LEAST_SPARE } else { made.min(spared).max(LEAST_SPARE) })",
        tests: unit("looks_at_itself_a_few_times"),
    },
    Mutant {
        breaks: "an asynchronous commit on a card is not ordered before what another thread's drain waits for",
        file: APPEND,
        find: "if !self.drain_is_a_call() {\n",
        with: "if !(FAULT || self.drain_is_a_call()) {\n",
        tests: unit("a_commit_waits_or_is_ordered"),
    },
    Mutant {
        breaks: "on a card an asynchronous commit is waited for all the same",
        file: APPEND,
        find: "backing.drains_for_all() || backing.is_read_back())",
        with: "backing.drains_for_all() || (!FAULT && backing.is_read_back()))",
        tests: programs("direct_card", "commits_that_nobody_waits_for"),
    },
];
