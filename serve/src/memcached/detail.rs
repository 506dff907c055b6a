//! `stats detail`: what is asked for, by the part of keys in front of the first colon.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What ends the part that counts.
const DELIMITER: u8 = b':';
/// Parts that are counted: clients choose them.
const MOST: usize = 10_000;

#[derive(Debug, Default)]
struct Counts {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

/// What was asked for since it was turned on.
#[derive(Debug, Default)]
pub struct Detail {
    on: AtomicBool,
    counts: Mutex<BTreeMap<Vec<u8>, Counts>>,
}

impl Detail {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Counts>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, key: &[u8], count: impl FnOnce(&mut Counts)) {
        if !self.on.load(Ordering::Relaxed) {
            return;
        }
        let Some(end) = key.iter().position(|&byte| byte == DELIMITER) else { return };
        let mut counts = self.lock();
        if counts.len() < MOST || counts.contains_key(&key[..end]) {
            count(counts.entry(key[..end].to_vec()).or_default());
        }
    }

    /// A key is asked for, and is there or not.
    pub fn get(&self, key: &[u8], hit: bool) {
        self.count(key, |counts| {
            counts.gets += 1;
            counts.hits += u64::from(hit);
        });
    }

    /// A value is to be stored.
    pub fn set(&self, key: &[u8]) {
        self.count(key, |counts| counts.sets += 1);
    }

    /// A key is to be removed.
    pub fn delete(&self, key: &[u8]) {
        self.count(key, |counts| counts.deletes += 1);
    }

    /// Counts anew.
    pub fn reset(&self) {
        self.lock().clear();
    }

    /// stats detail on|off|dump
    pub fn run(&self, what: &[u8], out: &mut Vec<u8>) {
        let line = |out: &mut Vec<u8>, text: &str| out.extend([text.as_bytes(), b"\r\n"].concat());
        match what {
            b"on" | b"off" => {
                self.on.store(what == b"on", Ordering::Relaxed);
                line(out, "OK");
            }
            b"dump" => {
                for (prefix, Counts { gets, hits, sets, deletes }) in self.lock().iter() {
                    out.extend_from_slice(b"PREFIX ");
                    out.extend_from_slice(prefix);
                    line(out, &format!(" get {gets} hit {hits} set {sets} del {deletes}"));
                }
                line(out, "END");
            }
            _ => line(out, "CLIENT_ERROR usage: stats detail on|off|dump"),
        }
    }
}
