//! Faults of the C interface.

use crate::{Mutant, Tests};

const TRANSACTIONS: &str = "libnearpm/c/src/transactions.rs";
const REGISTRY: &str = "libnearpm/c/src/registry.rs";

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
];
