//! Faults of the paper's mechanisms, their recovery, and the processor's copies.

use super::{library, unit};
use crate::Mutant;

const CPU: &str = "libnearpm/src/executor/cpu.rs";
const UNDO: &str = "libnearpm/src/mechanism/undo.rs";
const REDO: &str = "libnearpm/src/mechanism/redo.rs";
const REDO_LOG: &str = "libnearpm/src/mechanism/redo_log.rs";
const CHECKPOINT: &str = "libnearpm/src/mechanism/checkpoint.rs";
const SHADOW: &str = "libnearpm/src/mechanism/shadow.rs";
const RECOVERY: &str = "libnearpm/src/recovery/mod.rs";
const LANE: &str = "libnearpm/src/lane/ring.rs";

pub const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "stores follow a log entry that is not durable (invariant 1)",
        file: CPU,
        find: "durable entry, then stores.\n        medium.fence()",
        with: "durable entry, then stores.\n        if FAULT { Ok(()) } else { medium.fence() }",
        tests: library("crash", "durable_undo"),
    },
    Mutant {
        breaks: "a commit is acknowledged before it is durable (C4)",
        file: CPU,
        find: "self.asynchronous = false;\n                medium.drain()",
        with: "self.asynchronous = false;\n                if FAULT { Ok(()) } else { medium.drain() }",
        tests: library("crash", "durable"),
    },
    Mutant {
        breaks: "a redo log is marked as applied before its stores are durable",
        file: CPU,
        find: "if let Some(word) = self.unapplied.take() {\n            medium.fence()?;",
        with: "if let Some(word) = self.unapplied.take() {\n            if !FAULT { medium.fence()?; }",
        tests: library("crash", "redo"),
    },
    Mutant {
        breaks: "a transaction commits before its stores are written back (C9)",
        file: UNDO,
        find: "if self.stored.is_empty() {",
        with: "if FAULT || self.stored.is_empty() {",
        tests: library("crash", "durable_undo"),
    },
    Mutant {
        // That its slots are used again before it is durable breaks nothing: what is stored to them
        // comes behind the commit on the same link.
        breaks: "a durable transaction that wrote nothing does not cover the asynchronous one before it (C4)",
        file: UNDO,
        find: "} else if durability == Durability::Durable && self.unreleased {",
        with: "} else if !FAULT && durability == Durability::Durable && self.unreleased {",
        tests: library("card_order", "what_is_acknowledged"),
    },
    Mutant {
        breaks: "the same for redo logs (C4)",
        file: REDO,
        find: "if !wrote && self.unacknowledged {",
        with: "if !FAULT && !wrote && self.unacknowledged {",
        tests: library("card_order", "what_is_acknowledged"),
    },
    Mutant {
        breaks: "a write that overlaps nothing fresh is not logged",
        file: UNDO,
        find: "self.put(cx, offset, data, &gaps);",
        with: "self.put(cx, offset, data, if FAULT { &[] } else { &gaps });",
        tests: library("crash", "durable_undo"),
    },
    Mutant {
        breaks: "slots of a redo log that is not home yet are used again",
        file: REDO_LOG,
        find: "cx.lane.release_of(&log.entries, log.former);",
        with: "cx.lane.release_of(&log.entries, if FAULT { cx.lane.mark() } else { log.former });",
        tests: library("crash", "redo"),
    },
    Mutant {
        breaks: "an epoch is cut while its lines are in the cache",
        file: CHECKPOINT,
        find: "self.epoch.write_back(&cx.medium);",
        with: "if !FAULT { self.epoch.write_back(&cx.medium); }",
        tests: library("crash", "checkpoint"),
    },
    Mutant {
        breaks: "a page is stored to before its checkpoint is there",
        file: CHECKPOINT,
        find: "let logged = cx.lane.log(&cx.medium, EntryKind::Checkpoint, txid, entries, false);",
        with: "let logged = if FAULT { Ok(()) } else { cx.lane.log(&cx.medium, EntryKind::Checkpoint, txid, entries, false) };",
        tests: library("crash", "checkpoint"),
    },
    Mutant {
        breaks: "an abort leaves what the transaction was the first to store in an epoch",
        file: CHECKPOINT,
        find: "cx.medium.store(page + run.start, &old);",
        with: "if !FAULT { cx.medium.store(page + run.start, &old); }",
        tests: library("card", "an_abort_takes_back"),
    },
    Mutant {
        breaks: "the same where the card copies pages",
        file: SHADOW,
        find: "self.cache.forget(page, lines);",
        with: "if !FAULT { self.cache.forget(page, lines); }",
        tests: library("card", "an_abort_takes_back"),
    },
    Mutant {
        breaks: "the same where the processor copies pages",
        file: SHADOW,
        find: "cx.medium.store(page + run.start, &old);",
        with: "if !FAULT { cx.medium.store(page + run.start, &old); }",
        tests: library("card", "an_abort_takes_back"),
    },
    Mutant {
        breaks: "pages switch while their lines are in the cache",
        file: SHADOW,
        find: "} else {\n            self.epoch.write_back(&cx.medium);",
        with: "} else if !FAULT {\n            self.epoch.write_back(&cx.medium);",
        tests: library("crash", "shadow"),
    },
    Mutant {
        breaks: "pages switch before the log of their switch is durable",
        file: SHADOW,
        find: "self.log.prepare(cx, values)?;\n        cx.lane.executor.barrier(&cx.medium)?;",
        with: "self.log.prepare(cx, values)?;\n        if !FAULT { cx.lane.executor.barrier(&cx.medium)?; }",
        tests: library("crash", "shadow"),
    },
    Mutant {
        breaks: "entries are restored oldest first (C6)",
        file: RECOVERY,
        find: "log.sort_by_key(|(e, _)| std::cmp::Reverse(e.sequence));",
        with: "log.sort_by_key(|(e, _)| std::cmp::Reverse(if FAULT { u64::MAX - e.sequence } else { e.sequence }));",
        tests: library("crash", "a_range_that_was_logged_twice"),
    },
    Mutant {
        breaks: "the last committed transaction is rolled back (C6)",
        file: RECOVERY,
        find: "e.txid > epoch);",
        with: "(e.txid > epoch || FAULT && e.txid == epoch));",
        tests: library("crash", "durable_undo"),
    },
    Mutant {
        breaks: "a committed redo log is forgotten",
        file: RECOVERY,
        find: "if last <= self.applied {",
        with: "if FAULT || last <= self.applied {",
        tests: library("crash", "durable_redo"),
    },
    Mutant {
        breaks: "an entry counts wherever it lies (C6)",
        file: RECOVERY,
        find: "sequence_parts(entry.sequence).1 == at as u64",
        with: "(FAULT || sequence_parts(entry.sequence).1 == at as u64)",
        tests: library("recovery", "data_that_looks_like_an_entry"),
    },
    Mutant {
        breaks: "an entry of another thread counts",
        file: RECOVERY,
        find: "entry.thread == self.thread",
        with: "(FAULT || entry.thread == self.thread)",
        tests: library("recovery", "data_that_looks_like_an_entry"),
    },
    Mutant {
        breaks: "an entry of another pool counts",
        file: RECOVERY,
        find: "entry.pool == pool &&",
        with: "(FAULT || entry.pool == pool) &&",
        tests: library("recovery", "data_that_looks_like_an_entry"),
    },
    Mutant {
        breaks: "a redo log counts as applied before its stores are durable",
        file: RECOVERY,
        // Without the drain behind the stores nothing breaks: the fence that lets go of their lines
        // stands in its place.
        find: "report.torn += ring.torn;",
        with: "report.torn += ring.torn;\n        if FAULT { ring.put_word(part.medium, RING_REDO_APPLIED, ring.applied, committed); }",
        tests: library("recovery", "a_redo_log_counts"),
    },
    Mutant {
        breaks: "logs are deleted before what was undone is durable",
        file: RECOVERY,
        find: "ring.redo(part, committed, report).and_then(",
        with: "if FAULT { ring.put_word(part.medium, RING_EPOCH, ring.epoch, ring.last_txid()); }\n        ring.redo(part, committed, report).and_then(",
        tests: library("recovery", "an_undo_log_is_deleted"),
    },
    Mutant {
        breaks: "the ring's extent shrinks while its entries count",
        file: RECOVERY,
        find: "RING_EPOCH, ring.epoch, last_txid));\n    drain(parts)?;",
        with: "RING_EPOCH, ring.epoch, last_txid));\n    if !FAULT { drain(parts)?; }",
        tests: library("crash", "the_extent_shrinks_only_behind_the_epoch_word"),
    },
    Mutant {
        breaks: "an identifier is given out twice",
        file: RECOVERY,
        find: "let words = [self.epoch, self.committed, self.applied];",
        with: "let words = if FAULT { return self.epoch } else { [self.epoch, self.committed, self.applied] };",
        tests: library("crash", ""),
    },
    Mutant {
        breaks: "a recovery reads less of the ring than was used",
        file: LANE,
        find: "if end <= self.extent {",
        with: "if FAULT || end <= self.extent {",
        tests: unit("lane::"),
    },
    Mutant {
        breaks: "slots that are in use are given out",
        file: LANE,
        find: "if at + bytes - self.back > self.capacity {",
        with: "if !FAULT && at + bytes - self.back > self.capacity {",
        tests: unit("lane::"),
    },
    Mutant {
        breaks: "a slot reaches over the end of the ring",
        file: LANE,
        find: "if place + bytes > self.capacity {",
        with: "if !FAULT && place + bytes > self.capacity {",
        tests: unit("lane::"),
    },
];
