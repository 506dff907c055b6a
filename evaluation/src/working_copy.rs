//! Working copies ([`DirectPool`]) as cases have them: commits by records, or brought home by the
//! case's mechanism.
//!
//! Where the mechanism has epochs, commits are asynchronous and made durable as seldom as epochs
//! end elsewhere, so that each way promises what others of its mechanism do. With a commit that is
//! durable when it returns each would be an epoch of its own.

use anyhow::{Context, Result};
use nearpm::direct::DirectPool;
use nearpm::{Durability, Options};
use nearpm_workloads::programs::Workload;
use nearpm_workloads::store::Store;

use crate::case::Case;
use crate::served::{Alone, EPOCH};

/// How a case has its pool open; `ring_bytes` are those of a mechanism's log.
pub fn options(case: &Case, ring_bytes: u32) -> Options {
    let durability = if case.mechanism.has_epochs() { Durability::Asynchronous } else { Durability::Durable };
    let options = Options::new().durability(durability);
    if !case.configuration.has_mechanism() {
        return options;
    }
    options.mechanism(case.mechanism).engine(case.configuration.engine()).lanes(1).ring_bytes(ring_bytes)
}

/// Makes a pool with what a program works on, which is filled by records, whatever brings commits
/// home later.
///
/// # Errors
/// If the pool cannot be made or filled.
pub fn prepare(program: Box<dyn Workload>, options: &Options, location: &str, bytes: u64) -> Result<Alone<DirectPool>> {
    DirectPool::create(location, bytes, options).context("the pool cannot be made")?.close()?;
    let by_records = options.clone().mechanism(None).durability(Durability::Asynchronous);
    Alone::prepare(program, DirectPool::open(location, &by_records)?)
}

/// Does the transactions of a case, up to a number of them, and makes durable what is behind each;
/// the pool of `store` is `pool`'s. `before` is called before each.
///
/// # Errors
/// If one of them fails.
pub fn run<S: Store>(
    case: &Case,
    alone: &mut Alone<S>,
    count: usize,
    pool: impl Fn(&S) -> &DirectPool,
    before: impl Fn(),
) -> Result<()> {
    let is_waited_for = case.mechanism.has_epochs();
    for number in 1..=count {
        before();
        alone.apply()?;
        if is_waited_for && (number % EPOCH == 0 || number == count) {
            pool(alone.store()).wait_durable()?;
        }
    }
    Ok(())
}
