//! Faults of pools over several cards.

use super::{library, programs, unit};
use crate::Mutant;

const SET: &str = "libnearpm/src/pool/set.rs";
const ON_CARDS: &str = "libnearpm/src/pool/set_on_cards.rs";
const WAITING: &str = "libnearpm/src/pool/waiting.rs";
const EXECUTOR: &str = "libnearpm/src/executor/striped.rs";
const BY_MECHANISM: &str = "libnearpm/src/direct/by_mechanism.rs";

pub const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "a member of another pool of the same shape is taken",
        file: SET,
        find: "if fits && first.is_none_or(|first| shape(first) == shape(head)) {",
        with: "if fits && (FAULT || first.is_none_or(|first| shape(first) == shape(head))) {",
        tests: library("striped", "members_that_do_not_belong_together"),
    },
    Mutant {
        breaks: "a pool that could not be made on one card stays on the others",
        file: ON_CARDS,
        find: "self.iter().zip(&cards).take(made) {",
        with: "self.iter().zip(&cards).take(if FAULT { 0 } else { made }) {",
        tests: library("striped", "a_pool_that_cannot_be_made_leaves_nothing_behind"),
    },
    Mutant {
        breaks: "a pool is removed from its first card alone",
        file: ON_CARDS,
        find: "found.into_iter().try_for_each(",
        with: "found.into_iter().take(if FAULT { 1 } else { usize::MAX }).try_for_each(",
        tests: library("striped", "a_pool_is_removed_from_all_its_cards"),
    },
    Mutant {
        breaks: "cards without a port to others are to wait for each other",
        file: WAITING,
        find: "let able = has_peers(card) && card",
        with: "let able = (FAULT || has_peers(card)) && card",
        tests: library("striped", "where_cards_cannot_wait_for_each_other"),
    },
    Mutant {
        breaks: "an asynchronous commit on a member is forgotten, and a later one on another member does not wait for it",
        file: EXECUTOR,
        find: "self.unacknowledged = self.unacknowledged.union(committing);",
        with: "self.unacknowledged = if FAULT { Mask::default() } else { self.unacknowledged.union(committing) };",
        tests: unit("asynchronous_commits_on_several_members"),
    },
    Mutant {
        breaks: "a commit is sent before asynchronous ones on other members are durable",
        file: EXECUTOR,
        find: "involved = involved.union(self.unacknowledged);",
        with: "if !FAULT { involved = involved.union(self.unacknowledged); }",
        tests: unit("asynchronous_commits_on_several_members"),
    },
    Mutant {
        breaks: "the values of a member are those that come first in the transaction",
        file: EXECUTOR,
        find: "at += value.len();\n        if entry.member == member {",
        with: "if !FAULT || entry.member == member {\n            at += value.len();\n        }\n        if entry.member == member {",
        tests: library("striped", "objects_over_several_stripes_are_whole"),
    },
    Mutant {
        breaks: "of a pool by pointer the pages of the first member alone come home",
        file: SET,
        find: "for part in self.parts(whole) {\n            // Its pages",
        with: "for part in self.parts(whole).into_iter().take(if FAULT { 1 } else { usize::MAX }) {\n            // Its pages",
        tests: programs("direct_card", "nothing_acknowledged_is_lost_on_several_cards"),
    },
    Mutant {
        breaks: "what a ring has no room for goes by records over several cards",
        file: BY_MECHANISM,
        find: "matches!(error, Error::TooLarge { .. }) && pool.has_log();",
        with: "matches!(error, Error::TooLarge { .. }) && (FAULT || pool.has_log());",
        tests: programs("direct_card", "what_has_no_room_is_refused_on_several_cards"),
    },
];
