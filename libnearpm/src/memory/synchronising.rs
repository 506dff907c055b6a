//! Synchronising an ordinary file, by several threads at once.
//!
//! A call takes what was written back and is not synchronised, and with it what other calls have
//! under way: when it returns, all of that is on the medium. So nobody waits until another thread's
//! call has returned before its own begins, and the device has several to do at a time.
//!
//! Each call has a *way* of its own, a mapping of the file opened anew. The system tells a failed
//! write once to each open file: of two calls by one open file, one would be told that all is well.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use memmap2::{MmapOptions, MmapRaw};

/// Calls at a time: those of two threads that commit, and of one that writes home.
const WAYS: usize = 3;

/// From the first byte to behind the last.
type Span = (u64, u64);

/// No byte.
const NOTHING: Span = (u64::MAX, 0);

fn join(one: Span, other: Span) -> Span {
    (one.0.min(other.0), one.1.max(other.1))
}

fn is_empty(span: Span) -> bool {
    span.0 >= span.1
}

#[derive(Debug)]
struct State {
    /// What was written back and not yet synchronised.
    pending: Span,
    /// By way: what is being synchronised.
    under_way: Vec<Option<Span>>,
    /// Calls that wait for a way: to wake nobody would be a call of the system as well.
    waiting: usize,
    /// Code of a failure. Linux may then hold pages for clean that never reached their medium, so
    /// that no later success counts.
    failed: Option<i32>,
}

impl State {
    fn new(ways: usize) -> State {
        State { pending: NOTHING, under_way: vec![None; ways], waiting: 0, failed: None }
    }

    fn fail(&mut self, error: &io::Error) {
        self.failed = error.raw_os_error().or(Some(libc::EIO));
    }

    fn check(&self) -> io::Result<()> {
        self.failed.map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code)))
    }

    /// What a call that begins now must synchronise.
    fn needed(&self) -> Span {
        self.under_way.iter().flatten().fold(self.pending, |all, one| join(all, *one))
    }
}

/// What of a file awaits synchronisation, and the ways to do it.
pub(super) struct Synchronising {
    state: Mutex<State>,
    /// A way is free.
    freed: Condvar,
    /// Beside the mapping itself, which is the first way.
    others: Vec<MmapRaw>,
}

/// The same file, opened and mapped anew. Nothing is ever loaded from the mapping. It is opened for
/// writing, because the system synchronises nothing through a mapping that could never be written
/// to.
fn way(file: &File, bytes: u64) -> io::Result<MmapRaw> {
    let again = File::options().read(true).write(true).open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    MmapOptions::new().len(bytes as usize).no_reserve_swap().map_raw_read_only(&again)
}

impl Synchronising {
    /// Of a file of so many bytes, which may need more than one way. Where the system grants none,
    /// calls wait for each other.
    pub fn new(file: &File, bytes: u64, often: bool) -> Synchronising {
        let ways = if often { WAYS } else { 1 };
        let others: Vec<_> = (1..ways).map_while(|_| way(file, bytes).ok()).collect();
        let state = Mutex::new(State::new(others.len() + 1));
        Synchronising { state, freed: Condvar::new(), others }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A range was written back.
    pub fn add(&self, start: u64, end: u64) {
        let mut state = self.lock();
        state.pending = join(state.pending, (start, end));
    }

    /// Whether nothing was written back that is not synchronised.
    pub fn is_idle(&self) -> bool {
        is_empty(self.lock().pending)
    }

    /// From now on nothing can be claimed.
    pub fn fail(&self, error: &io::Error) {
        self.lock().fail(error);
        self.freed.notify_all();
    }

    /// Waits until everything is on the medium that was written back before.
    ///
    /// # Errors
    /// What the system says, once and for all.
    pub fn synchronise(&self, map: &MmapRaw) -> io::Result<()> {
        self.synchronise_by(|way, (start, end)| {
            let map = if way == 0 { map } else { &self.others[way - 1] };
            map.flush_range(start as usize, (end - start) as usize)
        })
    }

    fn synchronise_by(&self, write: impl FnOnce(usize, Span) -> io::Result<()>) -> io::Result<()> {
        let mut state = self.lock();
        let way = loop {
            state.check()?;
            if is_empty(state.needed()) {
                return Ok(());
            }
            if let Some(free) = state.under_way.iter().position(Option::is_none) {
                break free;
            }
            state.waiting += 1;
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        };
        let span = state.needed();
        state.pending = NOTHING;
        state.under_way[way] = Some(span);
        drop(state);
        let done = write(way, span);
        let mut state = self.lock();
        state.under_way[way] = None;
        let done = done.inspect_err(|error| state.fail(error)).and_then(|()| state.check());
        if state.waiting > 0 {
            // Who has nothing left to wait for takes no way, and wakes nobody.
            if done.is_err() || is_empty(state.needed()) {
                self.freed.notify_all();
            } else {
                self.freed.notify_one();
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn synchronising(ways: usize) -> Synchronising {
        Synchronising { state: Mutex::new(State::new(ways)), freed: Condvar::new(), others: Vec::new() }
    }

    #[test]
    fn after_a_failed_synchronisation_none_succeeds() {
        let all = synchronising(1);
        all.add(64, 128);
        all.add(0, 8);
        let mut written = NOTHING;
        let write = |_, span| {
            written = span;
            Ok(())
        };
        assert!(all.synchronise_by(write).is_ok());
        assert_eq!(written, (0, 128));
        assert!(all.synchronise_by(|_, _| panic!("nothing is pending")).is_ok());
        all.add(64, 128);
        let full = || io::Error::from_raw_os_error(libc::ENOSPC);
        assert!(all.synchronise_by(|_, _| Err(full())).is_err());
        let again = all.synchronise_by(|_, _| panic!("the system would say that all is well"));
        assert_eq!(again.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    }

    /// Threads that wait while a call covers what they need, or fails, return when it ends.
    #[test]
    fn all_who_wait_for_a_call_end_with_it() {
        for failure in [None, Some(libc::EIO)] {
            let all = std::sync::Arc::new(synchronising(1));
            let (end, ended) = std::sync::mpsc::channel();
            all.add(0, 8);
            let done = all.synchronise_by(|_, _| {
                for _ in 0..5 {
                    let (all, end) = (all.clone(), end.clone());
                    std::thread::spawn(move || {
                        let done = all.synchronise_by(|_, _| panic!("nothing is left to be done"));
                        end.send(done.err().and_then(|error| error.raw_os_error())).unwrap();
                    });
                }
                while all.lock().waiting < 5 {
                    std::thread::yield_now();
                }
                failure.map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
            });
            assert_eq!(done.err().and_then(|error| error.raw_os_error()), failure);
            for _ in 0..5 {
                // Long for a loaded machine; without an end, it would be for ever.
                assert_eq!(ended.recv_timeout(std::time::Duration::from_secs(60)), Ok(failure));
            }
        }
    }

    #[test]
    fn a_call_takes_what_others_have_under_way_and_its_failure_is_theirs() {
        let all = synchronising(2);
        all.add(0, 8);
        let outer = all.synchronise_by(|way, span| {
            assert_eq!((way, span), (0, (0, 8)));
            // Nothing else is pending, and what the first call has is not on the medium yet.
            all.synchronise_by(|way, span| {
                assert_eq!((way, span), (1, (0, 8)));
                Ok(())
            })?;
            all.add(64, 72);
            let failed = all.synchronise_by(|way, span| {
                assert_eq!((way, span), (1, (0, 72)));
                Err(io::Error::from_raw_os_error(libc::EIO))
            });
            assert!(failed.is_err());
            Ok(())
        });
        assert_eq!(outer.unwrap_err().raw_os_error(), Some(libc::EIO), "its bytes may be among those that are lost");
    }

    /// `sh` of proc_pid_smaps(5): a mapping that is synchronised.
    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn ways_are_mappings_that_the_system_synchronises() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let all = Synchronising::new(&file, 8192, true);
        assert_eq!(all.others.len(), WAYS - 1);
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        for way in &all.others {
            let start = format!("{:x}-", way.as_ptr().addr());
            let lines = smaps.lines().skip_while(|line| !line.starts_with(&start));
            let flags = lines.skip(1).find_map(|line| line.strip_prefix("VmFlags:")).expect("the mapping has flags");
            assert!(flags.split_whitespace().any(|flag| flag == "sh"), "{flags}");
        }
    }

    #[test]
    fn calls_wait_where_all_ways_are_taken() {
        let all = synchronising(1);
        let calls = Mutex::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (all, calls) = (&all, &calls);
                scope.spawn(move || {
                    for round in 0..50 {
                        all.add(thread * 1000 + round, thread * 1000 + round + 1);
                        let done = all.synchronise_by(|way, _| {
                            let alone = calls.try_lock();
                            assert_eq!(way, 0);
                            *alone.expect("no other call is under way") += 1;
                            Ok(())
                        });
                        done.unwrap();
                    }
                });
            }
        });
        assert!((1..=200).contains(&*calls.lock().unwrap()));
        assert!(is_empty(all.lock().pending));
    }
}
