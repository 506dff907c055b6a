//! Faults of pools' heads, files and tables.

use super::{library, unit};
use crate::Mutant;

const MAPPED: &str = "libnearpm/src/memory/mapped.rs";
const OPEN: &str = "libnearpm/src/pool/open.rs";
const REFUSALS: &str = "libnearpm/src/options/refusals.rs";
const FILE: &str = "libnearpm/src/pool/file.rs";
const SYNCHRONISING: &str = "libnearpm/src/memory/synchronising.rs";
const ON_CARD: &str = "libnearpm/src/pool/on_card.rs";
const ALLOCATOR: &str = "libnearpm/src/transaction/allocator.rs";
const AT_HOME: &str = "libnearpm/src/recovery/at_home.rs";
const FORMAT: &str = "libnearpm/src/pool/format.rs";
const INDEX: &str = "libnearpm/src/heap/index/mod.rs";
const PLACES: &str = "libnearpm/src/heap/index/places.rs";
const RESIZE: &str = "libnearpm/src/check/resize.rs";
const RUNS: &str = "libnearpm/src/heap/index/runs.rs";
const TABLES: &str = "libnearpm/src/heap/tables.rs";
const TRUNCATE: &str = "libnearpm/src/direct/truncate.rs";

pub const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "what cannot be had together is had",
        file: REFUSALS,
        find: "refused.map_or(Ok(()), |&(_, what)|",
        with: "refused.filter(|_| !FAULT).map_or(Ok(()), |&(_, what)|",
        tests: library("refusals", "what_cannot_be_had_together"),
    },
    Mutant {
        breaks: "a file is a pool before it is filled",
        file: OPEN,
        find: "format::prepare(&medium, &head)?;",
        with: "format::prepare(&medium, &head)?;\n    if FAULT { format::put_head(&medium, head)?; }",
        tests: library("creation", "a_file_that_was_to_be_filled"),
    },
    Mutant {
        breaks: "pages stay in a process that lets them go",
        file: MAPPED,
        find: "pub fn let_pages_go(&self) {",
        with: "pub fn let_pages_go(&self) {\n        if FAULT { return; }",
        tests: unit("pages_that_are_let_go_are_fetched_again"),
    },
    Mutant {
        breaks: "a synchronisation succeeds after one that failed",
        file: SYNCHRONISING,
        find: "self.failed.map_or(Ok(()), |code|",
        with: "self.failed.filter(|_| !FAULT).map_or(Ok(()), |code|",
        tests: unit("after_a_failed_synchronisation"),
    },
    Mutant {
        breaks: "a copy runs over the end of a mapping",
        file: MAPPED,
        find: "fn store(&self, offset: u64, data: &[u8]) {\n        check_range(self.bytes(), offset, data.len() as u64);",
        with: "fn store(&self, offset: u64, data: &[u8]) {\n        check_range(if FAULT { self.bytes() + 8 } else { self.bytes() }, offset, data.len() as u64);\n        if FAULT && offset + data.len() as u64 > self.bytes() { return; }",
        tests: unit("mapped::tests::a_range_beyond_the_end_is_refused"),
    },
    Mutant {
        breaks: "two processes have a pool",
        file: FILE,
        find: "Access::Exclusive => file.try_lock(),",
        with: "Access::Exclusive if FAULT => Ok(()),\n        Access::Exclusive => file.try_lock(),",
        tests: library("refusals", "a_pool_is_open_once"),
    },
    Mutant {
        breaks: "a file that holds something is filled with a pool",
        file: FILE,
        find: "if !is_blank(&mut page) {",
        with: "if !FAULT && !is_blank(&mut page) {",
        tests: library("direct", "a_file_that_exists_is_filled_only_if_it_is_blank"),
    },
    Mutant {
        breaks: "a failed reservation leaves the medium full",
        file: "libnearpm/src/memory/length.rs",
        find: "let _ = file.set_len(former);",
        with: "if !FAULT { let _ = file.set_len(former); }",
        tests: unit("a_reservation_that_fails_half_way"),
    },
    Mutant {
        breaks: "lines of a process that died stay in the cache (C9)",
        file: ON_CARD,
        find: "if word != 0 && !elsewhere {",
        with: "if !FAULT && word != 0 && !elsewhere {",
        tests: library("card", "a_process_that_dies"),
    },
    Mutant {
        breaks: "a full pool has no room for the log of what would free something",
        file: RUNS,
        find: "let left = if is_log { spare } else { free.kept_free(self.kept) };",
        with: "let left = if is_log || FAULT { spare } else { free.kept_free(self.kept) };",
        tests: unit("scarce"),
    },
    Mutant {
        breaks: "a bitmap with objects behind the last one is believed",
        file: TABLES,
        find: "(chunks, beyond.map(|at| (Class::BitmapBeyond, at)))",
        with: "(chunks, beyond.filter(|_| !FAULT).map(|at| (Class::BitmapBeyond, at)))",
        tests: library("check", "classes"),
    },
    Mutant {
        breaks: "a run that became another is listed as what it was",
        file: RUNS,
        find: "== place::FULL && is_run() {",
        with: "== place::FULL && (FAULT || is_run()) {",
        tests: unit("in_every_order_a_run_that_became_another"),
    },
    Mutant {
        breaks: "an arena looks for room before it says that it has left the run",
        file: RUNS,
        find: "entry.place.store(place::FULL, Ordering::SeqCst);\n        // Whoever frees",
        with: "if FAULT {\n            let room = entry.has_room();\n            entry.place.store(place::FULL, Ordering::SeqCst);\n            if room {\n                self.list(chunk, class);\n            }\n            return;\n        }\n        entry.place.store(place::FULL, Ordering::SeqCst);\n        // Whoever frees",
        tests: unit("in_every_order_what_is_freed"),
    },
    Mutant {
        breaks: "two threads free an object",
        file: PLACES,
        find: "let before = bits.allocated[unit as usize / 64].fetch_and(!mask, Ordering::Relaxed);",
        with: "let before = bits.allocated[unit as usize / 64].load(Ordering::Relaxed);\n                let after = bits.allocated[unit as usize / 64].fetch_and(!mask, Ordering::Relaxed);\n                let before = if FAULT { before } else { after };",
        tests: unit("in_every_order_an_object_is_freed"),
    },
    Mutant {
        breaks: "an object of a pool by offsets goes to another run than the lowest with room",
        file: RUNS,
        find: "if current != NONE && lock(&self.partial[class]).is_before(current) {",
        with: "if !FAULT && current != NONE && lock(&self.partial[class]).is_before(current) {",
        tests: unit("objects_go_to_the_lowest"),
    },
    Mutant {
        breaks: "runs of a pool by offsets grow with their class",
        file: RUNS,
        find: "let so_far = if self.short_runs {",
        with: "let so_far = if self.short_runs && !FAULT {",
        tests: unit("objects_go_to_the_lowest"),
    },
    Mutant {
        breaks: "a run that a commit of a pool by offsets has emptied stays a run",
        file: ALLOCATOR,
        find: ".filter(|&(_, left)| left == 0)",
        with: ".filter(|&(_, left)| left == 0 && !FAULT)",
        tests: unit("objects_go_to_the_lowest"),
    },
    Mutant {
        breaks: "the index of a pool by offsets keeps a run whose word an abort has taken back",
        file: ALLOCATOR,
        find: "if let Some((chunk, 1)) = run {",
        with: "if let Some((chunk, 1)) = run.filter(|_| !FAULT) {",
        tests: library("transactions", "the_allocator_is_what_its_model_says"),
    },
    Mutant {
        breaks: "what a transaction by offsets frees is given out before its commit",
        file: ALLOCATOR,
        find: "        self.steps.push(Step::Frees { object });",
        with: "        self.steps.push(Step::Frees { object });\n        if FAULT { self.heap.release(object); }",
        tests: library("transactions", "freed_space_is_not_used_again"),
    },
    Mutant {
        breaks: "new chunks of a striped pool all go to its first members",
        file: INDEX,
        find: "let turn = self.spread.as_mut().map(",
        with: "let turn = self.spread.as_mut().filter(|_| !FAULT).map(",
        tests: unit("new_chunks_go_to_the_members_in_turn"),
    },
    Mutant {
        breaks: "new objects are joined by what a chunk was before it was an object's own",
        file: PLACES,
        find: "if belongs_to != holds::RUN && belongs_to != holds::INNER {",
        with: "if !FAULT && belongs_to != holds::RUN && belongs_to != holds::INNER {",
        tests: unit("the_end_of_a_place"),
    },
    Mutant {
        breaks: "a damaged head is replaced by that of another pool",
        file: FORMAT,
        find: ".filter(|next| next.pool == torn.pool)",
        with: ".filter(|next| FAULT || next.pool == torn.pool)",
        tests: library("growth", "a_damaged_head"),
    },
    Mutant {
        breaks: "a transaction of a pool that has grown is promised more of the log than is kept",
        file: TRUNCATE,
        find: "segment_bytes(self.head.bytes) - SegmentHead::SIZE",
        with: "segment_bytes(if FAULT { self.bytes() } else { self.head.bytes }) - SegmentHead::SIZE",
        tests: library("growth", "too_large_for_the_log"),
    },
    Mutant {
        breaks: "words of empty runs name chunks that a shorter pool has not",
        file: RESIZE,
        find: "forget_runs(&medium, &tables, &new)?;",
        with: "if !FAULT { forget_runs(&medium, &tables, &new)?; }",
        tests: library("growth", "ends_where_runs_were"),
    },
    Mutant {
        breaks: "a recovery refuses new objects in what has come by growth",
        file: AT_HOME,
        find: "offset + u64::from(bytes) > self.head.last()",
        with: "offset + u64::from(bytes) > (if FAULT { self.head.heap_end() } else { self.head.last() })",
        tests: library("growth", "written_once_lie_in_what_has_come"),
    },
];
