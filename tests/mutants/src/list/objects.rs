//! Faults of typed objects and collections.

use super::library;
use crate::{Mutant, Tests};

const GATE: &str = "libnearpm/src/typed/gate.rs";
const LOCKS: &str = "libnearpm/src/typed/locks.rs";
const ROOT: &str = "libnearpm/src/typed/seam/root.rs";
const SEAM: &str = "libnearpm/src/typed/seam/mod.rs";
const COLLECTIONS: &str = "libnearpm/src/collections/mod.rs";
const VECTOR: &str = "libnearpm/src/collections/vector.rs";
const TREE: &str = "libnearpm/src/collections/btree/mod.rs";
const JOIN: &str = "libnearpm/src/collections/btree/join.rs";
const TABLE: &str = "libnearpm/src/collections/hashmap.rs";
const QUEUE: &str = "libnearpm/src/collections/queue.rs";
const CURSOR: &str = "libnearpm/src/collections/btree/cursor.rs";
const COPIES: &str = "libnearpm/src/typed/page_copies.rs";
const POOL: &str = "libnearpm/src/direct/pool.rs";

const fn collections(filter: &'static str) -> Tests {
    library("collections", filter)
}

pub const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "a reader enters beside a writer",
        file: GATE,
        find: "role != Role::Writer && state & (ROLE | WAITING) == role as u64;",
        with: "role != Role::Writer && (FAULT && state & WAITING == 0 || state & (ROLE | WAITING) == role as u64);",
        tests: library("typed_threads", "a_writer_keeps_all_others_out"),
    },
    Mutant {
        breaks: "who enters does not see what those did who have left",
        file: GATE,
        find: "self.state.compare_exchange(state, next, Ordering::Acquire, Ordering::Relaxed).is_ok()",
        with: "self.state.compare_exchange(state, next, if FAULT { Ordering::Relaxed } else { Ordering::Acquire }, Ordering::Relaxed).is_ok()",
        tests: library("gate", "writers_are_alone"),
    },
    Mutant {
        breaks: "who is let in is not told",
        file: GATE,
        find: "self.admitted.notify_all();",
        with: "if !FAULT { self.admitted.notify_all(); }",
        tests: library("gate", "readers_and_writers_take_turns"),
    },
    Mutant {
        breaks: "locks are taken in the order in which they are named",
        file: LOCKS,
        find: "places.sort_unstable();",
        with: "if !FAULT { places.sort_unstable(); }",
        tests: library("gate", "locks_exclude"),
    },
    Mutant {
        breaks: "a snapshot sees what transactions change",
        file: POOL,
        find: "ranges.iter().for_each(|range| self.keep(range));",
        with: "if !FAULT { ranges.iter().for_each(|range| self.keep(range)); }",
        tests: library("snapshots", "snapshots_stay_what_they_were"),
    },
    Mutant {
        breaks: "a snapshot sees new objects in the place of those that were freed",
        file: POOL,
        find: "linter.reserve(self, range);\n        }\n        self.keep(range);",
        with: "linter.reserve(self, range);\n        }\n        if !FAULT { self.keep(range); }",
        tests: library("snapshots", "snapshots_stay_what_they_were"),
    },
    Mutant {
        breaks: "a snapshot sees the log in the place of objects that were freed",
        file: "libnearpm/src/direct/truncate.rs",
        find: "self.keep(&(offset..offset + bytes));",
        with: "if !FAULT { self.keep(&(offset..offset + bytes)); }",
        tests: library("snapshots", "freed_objects_stay_in_a_snapshot"),
    },
    Mutant {
        breaks: "a reader of a snapshot finds no copy of what it has seen changed",
        file: COPIES,
        find: "fence(Ordering::Acquire);",
        with: "if !FAULT { fence(Ordering::Acquire); }",
        tests: library("gate", "a_snapshot_sees_no_store"),
    },
    Mutant {
        breaks: "a copy for a snapshot is seen after the store that it is for",
        file: COPIES,
        find: "fence(Ordering::Release);",
        with: "if !FAULT { fence(Ordering::Release); }",
        tests: library("gate", "a_snapshot_sees_no_store"),
    },
    Mutant {
        breaks: "a cursor stays in its leaf at the end of it",
        file: CURSOR,
        find: "if !self.next_leaf(backwards)? {",
        with: "if FAULT || !self.next_leaf(backwards)? {",
        tests: library("values", "a_cursor_goes_both_ways"),
    },
    Mutant {
        breaks: "two threads hold a lock alone",
        file: LOCKS,
        find: "Hold::Alone => !self.writer && self.readers == 0,",
        with: "Hold::Alone => FAULT || !self.writer && self.readers == 0,",
        tests: library("typed_threads", "a_holder_of_a_lock_keeps_others_out"),
    },
    Mutant {
        breaks: "a root of another type is taken for one of this type",
        file: ROOT,
        find: "&& from.get(object.fingerprint())? == fingerprint::<T>();",
        with: "&& (FAULT || from.get(object.fingerprint())? == fingerprint::<T>());",
        tests: library("typed", "a_root_of_another_type_is_refused"),
    },
    Mutant {
        breaks: "a transaction goes on after a change that was left half done",
        file: SEAM,
        find: "if done.is_err() && tx.changes() != before {",
        with: "if !FAULT && done.is_err() && tx.changes() != before {",
        tests: collections("a_map_that_finds_no_room_keeps_its_entries"),
    },
    Mutant {
        breaks: "bytes that move up over each other are copied from the front",
        file: COLLECTIONS,
        find: "let at = if from > to {",
        with: "let at = if FAULT || from > to {",
        tests: collections("many_values_move_up_and_down"),
    },
    Mutant {
        breaks: "a value that was popped is still there",
        file: VECTOR,
        find: "self.data.filter(|_| index < self.length).map(",
        with: "self.data.filter(|_| index < if FAULT { self.room } else { self.length }).map(",
        tests: collections("a_vector_of_numbers"),
    },
    Mutant {
        breaks: "a leaf that splits loses its middle key",
        file: TREE,
        find: "node::set_count(tx, upper, ROOM - kept)?;\n        node::set_count(tx, full, kept)?;",
        with: "node::set_count(tx, upper, ROOM - kept)?;\n        node::set_count(tx, full, if FAULT { kept - 1 } else { kept })?;",
        tests: collections("an_ordered_map_of_numbers"),
    },
    Mutant {
        breaks: "a key in front of the separator of a split goes behind it",
        file: TREE,
        find: "if at > kept {\n                (to, at) = (upper,",
        with: "if at > kept || FAULT && at == kept {\n                (to, at) = (upper,",
        tests: collections("an_ordered_map_of_numbers"),
    },
    Mutant {
        breaks: "nodes that fit into one stay two",
        file: JOIN,
        find: "Ok((child.1 + count + more",
        with: "Ok((!FAULT && child.1 + count + more",
        tests: collections("nodes_stay_filled"),
    },
    Mutant {
        breaks: "nodes are joined to one that is full",
        file: JOIN,
        find: " <= JOINED)",
        with: " <= if FAULT { node::ROOM } else { JOINED })",
        tests: collections("a_key_that_comes_and_goes_moves_no_nodes"),
    },
    Mutant {
        breaks: "what is joined is not counted with what takes it over",
        file: JOIN,
        find: "let moved = row.get(tx, at)?;",
        with: "let moved = if FAULT { 0 } else { row.get(tx, at)? };",
        tests: collections("nodes_that_are_joined_are_counted"),
    },
    Mutant {
        breaks: "a separator that comes down is freed",
        file: JOIN,
        find: "if K::OWNS && spare {",
        with: "if K::OWNS && (spare || FAULT) {",
        tests: collections("separators_of_nodes_that_are_joined_are_freed_once"),
    },
    Mutant {
        breaks: "the node that was joined is not freed",
        file: JOIN,
        find: "node::set_count(tx, left, kept + moved)?;\n        tx.free(right)?;",
        with: "node::set_count(tx, left, kept + moved)?;\n        if !FAULT { tx.free(right)?; }",
        tests: collections("nodes_stay_filled"),
    },
    Mutant {
        breaks: "a table grows and does not say so",
        file: TABLE,
        find: "tx.set(self.buckets(), map.buckets)\n",
        with: "if FAULT { Ok(()) } else { tx.set(self.buckets(), map.buckets) }\n",
        tests: collections("a_hash_map_of_numbers"),
    },
    Mutant {
        breaks: "a key that is removed keeps the text that it owns",
        file: TABLE,
        find: "if K::OWNS {\n            tx.get(Self::key(entry))?.release(tx)?;",
        with: "if K::OWNS && !FAULT {\n            tx.get(Self::key(entry))?.release(tx)?;",
        tests: collections("a_hash_map_of_texts"),
    },
    Mutant {
        breaks: "a block of a queue that is empty stays allocated",
        file: QUEUE,
        find: "if let Some(block) = empty {\n                tx.free(block)?;\n            }\n            tx.set(self, rest)?;",
        with: "if let Some(block) = empty.filter(|_| !FAULT) {\n                tx.free(block)?;\n            }\n            tx.set(self, rest)?;",
        tests: collections("a_queue"),
    },
];
