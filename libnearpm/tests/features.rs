//! Events of pools: `cargo test -p nearpm --features serde,tracing --test serialised --test
//! features`. They have a process of their own: a place that says something is asked once whether
//! anybody listens, and pools of other threads would ask in vain.

#![cfg(feature = "tracing")]

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use nearpm::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps the events of this thread as text.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let name = field.name();
        if name == "message" {
            self.0.insert_str(0, &format!("{value:?}"));
        } else {
            write!(self.0, " {name}={value:?}").unwrap();
        }
    }
}

impl Subscriber for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("nearpm")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(format!("{} {}", event.metadata().level(), text.0));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_pool_says_what_happens_to_it() {
    let kept = Kept::default();
    tracing::subscriber::with_default(kept.clone(), || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool");
        let options = Options::new().growth(nearpm::direct::Growth { by: 1 << 20, most: 8 << 20 });
        let pool = DirectPool::create(path.to_str().unwrap(), 1 << 20, &options).unwrap();
        let row = pool.tx(|tx| tx.root_or_zeroed::<PVec<u64>>()).unwrap();
        let aborted = pool.tx(|_| Err::<(), _>(Error::abort("no")));
        assert!(aborted.is_err());
        drop(pool.snapshot().unwrap());
        pool.tx(|tx| row.extend(tx, &[1; 200_000])).unwrap();
        pool.close().unwrap();
    });
    let events = kept.0.lock().unwrap();
    let there = |what: &str| events.iter().filter(|event| event.contains(what)).count();
    assert!(there("INFO pool opened") >= 1, "{events:#?}");
    assert_eq!(there("INFO pool closed"), 1, "{events:#?}");
    assert!(there("INFO pool has grown") >= 1, "{events:#?}");
    assert_eq!(there("TRACE transaction committed"), 2, "{events:#?}");
    assert_eq!(there("TRACE transaction taken back"), 1, "{events:#?}");
    assert_eq!(there("DEBUG snapshot taken"), 1, "{events:#?}");
    assert!(there("DEBUG log truncated") >= 1, "{events:#?}");
}
