//! Features that are off by default: `cargo test -p nearpm --features serde,tracing --test features`.

#![cfg(any(feature = "serde", feature = "tracing"))]

use nearpm::memory::VolatileMemory;
use nearpm::prelude::*;

fn pool() -> DirectPool {
    DirectPool::create_in(Box::new(VolatileMemory::new(1 << 20)), &Options::default()).unwrap()
}

#[cfg(feature = "serde")]
mod serialised {
    use std::time::Duration;

    use nearpm::PersistentEnum;
    use nearpm::collections::{PBTreeSet, PBytes};
    use nearpm::typed::{PDuration, PEnum, POption, PTuple2};
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, PersistentEnum, Serialize, Deserialize)]
    enum Shape {
        Nothing,
        Circle { radius: u32 },
    }

    /// Both at once.
    #[derive(Clone, Copy, Debug, PartialEq, Persistent, Serialize, Deserialize)]
    #[repr(C)]
    struct Values {
        option: POption<u64>,
        none: POption<u64>,
        stay: PDuration,
        pair: PTuple2<u32, u32>,
        shape: PEnum<Shape>,
        truth: PBool,
        rest: [u8; 7],
    }

    #[test]
    fn values_say_what_they_mean_and_come_back() {
        let values = Values {
            option: Some(3).into(),
            none: None.into(),
            stay: Duration::new(5, 7).into(),
            pair: (1, 2).into(),
            shape: Shape::Circle { radius: 4 }.into(),
            truth: true.into(),
            rest: [0; 7],
        };
        let text = serde_json::to_string(&values).unwrap();
        let expected = concat!(
            r#"{"option":3,"none":null,"stay":{"secs":5,"nanos":7},"pair":[1,2],"shape":{"Circle":{"radius":4}},"#,
            r#""truth":true,"rest":[0,0,0,0,0,0,0]}"#
        );
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Values>(&text).unwrap(), values);
        assert!(serde_json::from_str::<Values>(&text.replace("true", "1")).is_err());
    }

    #[derive(Clone, Copy, Persistent)]
    #[repr(C)]
    struct Root {
        row: PVec<Values>,
        prices: PBTreeMap<PString, u64>,
        seen: PBTreeSet<u32>,
        waiting: PQueue<u64>,
        counts: PHashMap<u64, u64>,
        name: PString,
        bytes: PBytes,
    }

    #[test]
    fn collections_are_sequences_maps_and_text() {
        let pool = pool();
        let root = pool.tx(|tx| tx.root_or_zeroed::<Root>()).unwrap();
        pool.tx(|tx| {
            root.prices().insert(tx, "tea", 250)?;
            root.prices().insert(tx, "cake", 300)?;
            root.seen().insert(tx, &9)?;
            (0..3).try_for_each(|number| root.waiting().push(tx, number))?;
            root.counts().insert(tx, &1, 2)?;
            root.name().set(tx, "a \"shop\"")?;
            root.bytes().set(tx, &[1, 255])
        })
        .unwrap();
        pool.read(|from| {
            let json = |text: Result<String, _>| text.unwrap();
            assert_eq!(json(serde_json::to_string(&Ptr::serialised(root.row(), from))), "[]");
            assert_eq!(json(serde_json::to_string(&Ptr::serialised(root.prices(), from))), r#"{"cake":300,"tea":250}"#);
            assert_eq!(json(serde_json::to_string(&Ptr::serialised(root.seen(), from))), "[9]");
            assert_eq!(json(serde_json::to_string(&Ptr::serialised(root.waiting(), from))), "[0,1,2]");
            assert_eq!(json(serde_json::to_string(&Ptr::serialised(root.counts(), from))), r#"{"1":2}"#);
            assert_eq!(json(serde_json::to_string(&Ptr::serialised(root.name(), from))), r#""a \"shop\"""#);
            assert_eq!(json(serde_json::to_string(&Ptr::serialised(root.bytes(), from))), "[1,255]");
            let nowhere = Ptr::<PVec<u64>>::from_offset(8).unwrap();
            let error = serde_json::to_string(&Ptr::serialised(nowhere, from)).unwrap_err();
            assert!(error.to_string().contains("heap"), "{error}");
            Ok(())
        })
        .unwrap();
    }
}

#[cfg(feature = "tracing")]
mod events {
    use std::fmt::Write;
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

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
}
