//! How many files the process may open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that the server needs besides those of clients: the pool, the log, event loops, what
/// the system opens.
const RESERVED: u64 = 64;

/// Asks the system for as many descriptors as clients need, and says how many clients may come.
pub fn clients(wanted: usize) -> usize {
    let needed = wanted as u64 + RESERVED;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let current = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
        // What the system refuses is seen below.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
    }
    let open = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if open >= needed {
        return wanted;
    }
    let clients = open.saturating_sub(RESERVED).max(1) as usize;
    log::warn!("{clients} clients may come, not {wanted}: the process may open {open} files (ulimit -n)");
    clients
}
