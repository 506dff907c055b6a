//! What a scan must give: the records from a key on, in the order of their keys.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

use crate::record::{Fields, Shape};
use nearpm_workloads::programs::ycsb::scatter;

use crate::requests::key;

/// Records that earlier runs may have inserted behind those that were loaded.
const LATER: u64 = 1 << 20;

/// Numbers of records behind those that were loaded, by what their keys are named by.
struct Later {
    numbers: HashMap<u64, u64>,
    /// All below it are in there.
    end: u64,
    /// Records that this run inserts are below it.
    inserted: u64,
}

/// Records by key: those that were there at the beginning, which every scan over their place must
/// give, and those that may be there.
pub struct Index {
    loaded: BTreeMap<String, u64>,
    later: Mutex<Later>,
}

impl Index {
    /// So many records are there.
    pub fn of(records: u64) -> Index {
        let later = Later { numbers: HashMap::new(), end: records, inserted: records };
        Index { loaded: (0..records).map(|number| (key(number), number)).collect(), later: Mutex::new(later) }
    }

    /// A record is being inserted.
    pub fn add(&self, number: u64) {
        let mut later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        later.inserted = later.inserted.max(number + 1);
    }

    /// The number of a record by its key, also of one that an earlier run has inserted.
    fn number(&self, key: &str) -> Option<u64> {
        if let Some(number) = self.loaded.get(key) {
            return Some(*number);
        }
        let name = key.strip_prefix("user")?.parse().ok()?;
        let mut later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(number) = later.numbers.get(&name) {
                return Some(*number);
            }
            if later.end >= later.inserted + LATER {
                return None;
            }
            let more = later.end..later.end + (1 << 16);
            later.end = more.end;
            later.numbers.extend(more.map(|number| (scatter(number), number)));
        }
    }

    /// Whether that is what a scan of so many records from a key on may give.
    ///
    /// # Errors
    /// What is wrong with it: the order, a record that is missing, one that nobody wrote, its
    /// contents.
    pub fn check(&self, shape: &Shape, from: &str, count: u64, found: &[(String, Fields)]) -> Result<(), String> {
        if found.len() as u64 > count || !found.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(format!("a scan of {count} records gave {} of them, or not in order", found.len()));
        }
        for (key, fields) in found {
            let number = self.number(key).filter(|_| key.as_str() >= from);
            let number = number.ok_or_else(|| format!("a scan from {from} on gave {key}"))?;
            shape.check(number, fields).map_err(|wrong| wrong.to_string())?;
        }
        // One that stops early has come to the end.
        let end = found.last().filter(|_| found.len() as u64 == count);
        let end = end.map_or(Bound::Unbounded, |(key, _)| Bound::Included(key.as_str()));
        for key in self.loaded.range::<str, _>((Bound::Included(from), end)).map(|(key, _)| key) {
            if found.binary_search_by(|(other, _)| other.cmp(key)).is_err() {
                return Err(format!("a scan from {from} on left {key} out"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::inserted::Inserted;
    use crate::record::Layout;
    use crate::requests::Requests;
    use crate::workload::Workload;

    #[test]
    fn what_is_missing_or_strange_is_noticed() {
        let shape = Shape { layout: Layout::Ordered, fields: 2, field_bytes: 32, most_more: 0 };
        let index = Index::of(50);
        index.add(50);
        let mut requests = Requests::new(Workload::E, 50, Arc::new(Inserted::after(50)), 1, 0);
        let mut rows: Vec<_> = (0..50).map(|number| (key(number), shape.record(number, &mut requests))).collect();
        rows.sort();
        let from = rows[10].0.clone();
        let check = |count, rows: &[(String, Fields)]| index.check(&shape, &from, count, rows);
        assert_eq!(check(5, &rows[10..15]), Ok(()));
        assert_eq!(check(100, &rows[10..]), Ok(()), "the end");
        assert!(check(5, &rows[10..16]).is_err(), "one too many");
        assert!(check(5, &rows[9..14]).is_err(), "one in front");
        assert!(check(5, &rows[11..16]).is_err(), "the first is missing");
        assert!(check(6, &rows[10..15]).is_err(), "it ends early");
        assert!(check(5, &[&rows[10..12], &rows[13..16]].concat()).is_err(), "one is missing");
        assert!(check(2, &[rows[11].clone(), rows[10].clone()]).is_err(), "the order");
        let mut other = rows[10..12].to_vec();
        other[1].1 = rows[13].1.clone();
        assert!(check(2, &other).is_err(), "another one's contents");
        other[1] = ("userx".to_owned(), rows[11].1.clone());
        assert!(check(2, &other).is_err(), "nobody wrote it");
    }
}
