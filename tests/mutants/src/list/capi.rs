//! Faults of the C interface.

use crate::{Mutant, Tests};

const TRANSACTIONS: &str = "libnearpm/c/src/transactions.rs";
const REGISTRY: &str = "libnearpm/c/src/registry.rs";

const COPY: &str = "libnearpm/c/src/copy.rs";

const SEEN: Tests = Tests { package: "nearpm-c-card", target: "programs", filter: "primitives_show_the_same" };
const CUT: Tests = Tests { package: "nearpm-c-card", target: "programs", filter: "no_primitive" };
const MISUSE: Tests = Tests { package: "nearpm-c", target: "capi", filter: "misuse_is_refused" };

pub const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "an address is stored through a null pointer",
        file: TRANSACTIONS,
        find: "not_null(object, \"the place for the address\")?;\n        let address = with(tx, |open| open.alloc(bytes))?;\n        // SAFETY: it is",
        with: "if !FAULT { not_null(object, \"the place for the address\")?; }\n        let address = with(tx, |open| open.alloc(bytes))?;\n        // SAFETY: it is",
        tests: MISUSE,
    },
    Mutant {
        breaks: "a commit that failed is reported as done",
        file: TRANSACTIONS,
        find: "Ok(open.transaction.commit(&open.pool)?)",
        with: "open.transaction.commit(&open.pool).or_else(|error| if FAULT { Ok(()) } else { Err(error) })?;\n        Ok(())",
        tests: MISUSE,
    },
    Mutant {
        breaks: "the root of a pool is freed",
        file: TRANSACTIONS,
        find: "refuse_root(&self.pool, self.root, object)?;",
        with: "if !FAULT { refuse_root(&self.pool, self.root, object)?; }",
        tests: MISUSE,
    },
    Mutant {
        breaks: "a pool with an open transaction is closed",
        file: REGISTRY,
        find: "if Arc::strong_count(place.get()) > 1 => Taken::Shared,",
        with: "if !FAULT && Arc::strong_count(place.get()) > 1 => Taken::Shared,",
        tests: MISUSE,
    },
    Mutant {
        breaks: "a card logs what it has, and not what the program sees",
        file: COPY,
        find: "self.bring_home(&mut state, pool, range.clone())?;\n        log()?;",
        with: "if !FAULT { self.bring_home(&mut state, pool, range.clone())?; }\n        log()?;",
        tests: SEEN,
    },
    Mutant {
        breaks: "a log of a card ends before what it covers is home",
        file: COPY,
        find: "self.bring_home(&mut state, pool, range)?;\n        }\n        pool.commit_log(thread)?;",
        with: "if !FAULT { self.bring_home(&mut state, pool, range)?; }\n        }\n        pool.commit_log(thread)?;",
        tests: CUT,
    },
    Mutant {
        breaks: "new values of a redo log are not seen when it has committed",
        file: COPY,
        find: "for (offset, value) in state.logs.remove(&thread).unwrap_or_default().new {",
        with: "for (offset, value) in state.logs.remove(&thread).unwrap_or_default().new.into_iter().filter(|_| !FAULT) {",
        tests: SEEN,
    },
    Mutant {
        breaks: "what an aborted log covers stays as the program has stored it",
        file: COPY,
        find: "for range in state.logs.remove(&thread).unwrap_or_default().old {",
        with: "for range in state.logs.remove(&thread).unwrap_or_default().old.into_iter().filter(|_| !FAULT) {",
        tests: SEEN,
    },
    Mutant {
        breaks: "a page is copied on a card without what the program has stored to it",
        file: COPY,
        find: "self.bring_home(&mut state, pool, from)?;",
        with: "if !FAULT { self.bring_home(&mut state, pool, from)?; }",
        tests: SEEN,
    },
    Mutant {
        breaks: "what a program has stored on a card is made durable and not stored",
        file: COPY,
        find: "self.bring_home(&mut self.state(), pool, range)?;",
        with: "if !FAULT { self.bring_home(&mut self.state(), pool, range)?; }",
        tests: CUT,
    },
    Mutant {
        breaks: "a pool on a card is closed with what was stored still in the copy",
        file: COPY,
        find: "for stored in self.bring_home(&mut state, pool, object..object + bytes)? {",
        with: "for stored in if FAULT { Vec::new() } else { self.bring_home(&mut state, pool, object..object + bytes)? } {",
        tests: SEEN,
    },
];
