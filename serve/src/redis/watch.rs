//! WATCH: whether keys have changed since a client looked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nearpm::Error;

#[derive(Debug, Default)]
struct Watched {
    /// Changes of the key since it is watched.
    version: u64,
    /// How many sets it is in.
    sets: usize,
}

/// The keys that somebody watches.
#[derive(Debug, Default)]
pub struct Watches {
    keys: Mutex<HashMap<Vec<u8>, Watched>>,
    /// Their number, to be looked at before the lock is taken.
    count: AtomicUsize,
}

impl Watches {
    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Watched>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A key changes. That of a transaction that is taken back later counts too: it can only make
    /// an EXEC fail that could have run.
    pub fn touch(&self, key: &[u8]) {
        if self.count.load(Ordering::Acquire) > 0
            && let Some(watched) = self.lock().get_mut(key)
        {
            watched.version += 1;
        }
    }

    /// All of them.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        if self.count.load(Ordering::Acquire) == 0 { Vec::new() } else { self.lock().keys().cloned().collect() }
    }
}

#[derive(Debug)]
struct Entry {
    key: Vec<u8>,
    version: u64,
    /// It was there.
    lived: bool,
}

/// What a client watches between two EXECs. It ends with the last request that refers to it.
#[derive(Debug)]
pub struct WatchSet {
    watches: Arc<Watches>,
    entries: Mutex<Vec<Entry>>,
}

impl WatchSet {
    /// An empty one.
    pub fn new(watches: Arc<Watches>) -> WatchSet {
        WatchSet { watches, entries: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches one key more from now on.
    pub fn add(&self, key: &[u8], lived: bool) {
        let mut entries = self.lock();
        if entries.iter().any(|entry| entry.key == key) {
            return;
        }
        let mut keys = self.watches.lock();
        let watched = keys.entry(key.to_vec()).or_default();
        watched.sets += 1;
        entries.push(Entry { key: key.to_vec(), version: watched.version, lived });
        self.watches.count.store(keys.len(), Ordering::Release);
    }

    /// Whether one of the keys has changed, or has expired since.
    pub fn is_stale(&self, lives: impl Fn(&[u8]) -> Result<bool, Error>) -> Result<bool, Error> {
        for entry in self.lock().iter() {
            let version = self.watches.lock().get(&entry.key).map(|watched| watched.version);
            if version != Some(entry.version) || entry.lived && !lives(&entry.key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Drop for WatchSet {
    fn drop(&mut self) {
        let entries = std::mem::take(&mut *self.lock());
        if entries.is_empty() {
            return;
        }
        let mut keys = self.watches.lock();
        for entry in entries {
            let last = keys.get_mut(&entry.key).is_some_and(|watched| {
                watched.sets -= 1;
                watched.sets == 0
            });
            if last {
                keys.remove(&entry.key);
            }
        }
        self.watches.count.store(keys.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_by_those_who_watch() {
        let watches = Arc::new(Watches::default());
        let (one, other) = (WatchSet::new(watches.clone()), WatchSet::new(watches.clone()));
        one.add(b"k", true);
        assert!(!one.is_stale(|_| Ok(true)).unwrap());
        assert!(one.is_stale(|_| Ok(false)).unwrap(), "it has expired");
        watches.touch(b"k");
        other.add(b"k", false);
        assert!(one.is_stale(|_| Ok(true)).unwrap());
        assert!(!other.is_stale(|_| Ok(false)).unwrap());
        drop((one, other));
        assert!(watches.keys().is_empty() && watches.lock().is_empty());
    }
}
