//! What serde makes of values and collections: `cargo test -p nearpm --features serde,tracing --test serialised --test features`.

#![cfg(feature = "serde")]

use std::time::Duration;

use nearpm::PersistentEnum;
use nearpm::collections::{PBTreeSet, PBytes, PHashSet};
use nearpm::memory::VolatileMemory;
use nearpm::prelude::*;
use nearpm::typed::{PDuration, PEnum, POption, PTuple2};
use serde::{Deserialize, Serialize};

fn new_pool() -> DirectPool {
    DirectPool::create_in(Box::new(VolatileMemory::new(1 << 20)), &Options::default()).unwrap()
}

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
    let pool = new_pool();
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

#[derive(Clone, Copy, PersistentEnum, Serialize, Deserialize)]
enum Content {
    Nothing,
    Text(PString),
    Table { columns: PVec<PString>, rows: PVec<PVec<i64>> },
}

/// As a program has it: collections in collections, in options, tuples and the variants of an enum.
#[derive(Clone, Copy, Persistent, Serialize, Deserialize)]
#[repr(C)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Page {
    links_by_word: PBTreeMap<PString, PVec<u64>>,
    counts: PVec<PHashMap<u64, u64>>,
    note: POption<PVec<u64>>,
    no_note: POption<PString>,
    named: PTuple2<PString, PVec<u64>>,
    content: PEnum<Content>,
    more: PVec<PEnum<Content>>,
    waiting: PQueue<PTuple2<u64, PString>>,
    words: PBTreeSet<PString>,
    seen: PHashSet<u64>,
    bytes: PBytes,
    pair: [PVec<u64>; 2],
    #[serde(default)]
    visits: u64,
}

const PAGE: &str = concat!(
    r#"{"links-by-word":{"a":[1,2],"b":[],"ü":[3]},"counts":[{},{"7":8},{"1":2}],"note":[5,6],"no-note":null,"#,
    r#""named":["name",[9]],"content":{"Table":{"columns":["x","y"],"rows":[[1,-2],[],[3]]}},"#,
    r#""more":["Nothing",{"Text":"long enough to lie in an object of its own"}],"waiting":[[1,"one"],[2,""]],"#,
    r#""words":["b","c"],"seen":[4],"bytes":[0,255],"pair":[[],[1]],"visits":0}"#
);

fn objects(pool: &DirectPool) -> usize {
    std::iter::successors(pool.next_object(0), |&object| pool.next_object(object)).count()
}

fn json_of<T: Persistent + Serialize>(pool: &DirectPool, at: Ptr<T>) -> String {
    pool.read(|from| Ok(serde_json::to_string(&Ptr::serialised(at, from)).unwrap())).unwrap()
}

fn put<T: Persistent + for<'de> Deserialize<'de>>(pool: &DirectPool, at: Ptr<T>, json: &str) -> Result<(), Error> {
    pool.tx(|tx| Ptr::deserialise(at, tx, &mut serde_json::Deserializer::from_str(json)))
}

#[test]
fn what_is_nested_comes_back_and_leaves_nothing_behind() {
    let pool = new_pool();
    let page = pool.tx(|tx| tx.root_or_zeroed::<Page>()).unwrap();
    let empty = objects(&pool);
    put(&pool, page, PAGE).unwrap();
    assert_eq!(json_of(&pool, page), PAGE);
    let full = objects(&pool);
    // What was there before is freed; a field that has a default may be left out.
    put(&pool, page, &PAGE.replace(r#","visits":0"#, "")).unwrap();
    assert_eq!((json_of(&pool, page), objects(&pool)), (PAGE.into(), full));
    // In a pool the collections are such as others: they are found, changed and freed.
    pool.tx(|tx| {
        let links = page.links_by_word().slot(tx, "a")?.unwrap();
        links.push(tx, 10)?;
        page.counts().slot(tx, 1)?.unwrap().insert(tx, &7, 70)?;
        page.words().remove(tx, "c").map(drop)
    })
    .unwrap();
    let changed = PAGE.replace("[1,2]", "[1,2,10]").replace(r#"{"7":8}"#, r#"{"7":70}"#).replace(r#","c"]"#, "]");
    assert_eq!(json_of(&pool, page), changed);
    let snapshot = pool.snapshot().unwrap();
    pool.tx(|tx| {
        let value = tx.get(page)?;
        value.release(tx)?;
        tx.write(Ptr::offset(page), &[0; size_of::<Page>()])
    })
    .unwrap();
    assert_eq!(objects(&pool), empty);
    let old = snapshot.read(|from| Ok(serde_json::to_string(&Ptr::serialised(page, from)).unwrap())).unwrap();
    assert_eq!(old, changed);
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let pool = new_pool();
    let page = pool.tx(|tx| tx.root_or_zeroed::<Page>()).unwrap();
    put(&pool, page, PAGE).unwrap();
    let full = objects(&pool);
    let refused = |json: &str, says: &str| {
        let error = put(&pool, page, json).unwrap_err();
        assert!(matches!(error, Error::Aborted(_)) && error.to_string().contains(says), "{error}");
        assert_eq!((json_of(&pool, page), objects(&pool)), (PAGE.into(), full));
    };
    // The last field is wrong, when all others are in the pool.
    refused(&PAGE.replace(r#""visits":0"#, r#""visits":"many""#), "expected u64");
    refused(&PAGE.replace("visits", "visitors"), "unknown field `visitors`");
    refused(&PAGE[..PAGE.len() - 1], "EOF");
    refused(&PAGE.replace("[1,-2]", "1"), "expected a sequence");
    refused(&PAGE.replace(r#""Text""#, r#""Image""#), "unknown variant `Image`");
    let error = put(&pool, page.visits(), "-1").unwrap_err();
    assert!(matches!(error, Error::Aborted(_)), "{error}");
    // The pool's own errors stay what they are.
    let many = serde_json::to_string(&vec![vec![1u64; 1000]; 1000]).unwrap();
    let error = pool.tx(|tx| {
        nearpm::collections::deserialised::<PVec<PVec<u64>>, _, _>(tx, &mut serde_json::Deserializer::from_str(&many))
    });
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Full { .. } | Error::TooLarge { .. }), "{error}");
    assert_eq!((json_of(&pool, page), objects(&pool)), (PAGE.into(), full));
}

/// Transactions may go on where nothing was made, and only be aborted where something was.
#[test]
fn a_transaction_that_goes_on_has_nothing_half_read() {
    let pool = new_pool();
    let row = pool.tx(|tx| tx.root_or_zeroed::<PVec<PString>>()).unwrap();
    pool.tx(|tx| {
        Ptr::deserialise(row, tx, &mut serde_json::Deserializer::from_str("7")).unwrap_err();
        Ptr::deserialise(row, tx, &mut serde_json::Deserializer::from_str(r#"["a"]"#))
    })
    .unwrap();
    let committed = pool.tx(|tx| {
        Ptr::deserialise(row, tx, &mut serde_json::Deserializer::from_str(r#"["b",7]"#)).unwrap_err();
        Ok(())
    });
    assert!(committed.is_err());
    assert_eq!(json_of(&pool, row), r#"["a"]"#);
}

#[derive(Clone, Copy, PersistentEnum, Serialize, Deserialize)]
#[serde(untagged)]
enum Any {
    Numbers { names: PVec<PString>, numbers: PVec<u64> },
    Texts { names: PVec<PString>, numbers: PVec<PString> },
}

#[test]
fn variants_that_were_tried_leave_nothing_behind() {
    let pool = new_pool();
    let any = pool.tx(|tx| tx.root_or_zeroed::<PEnum<Any>>()).unwrap();
    let texts = r#"{"names":["a","b"],"numbers":["one","two"]}"#;
    put(&pool, any, texts).unwrap();
    assert_eq!(json_of(&pool, any), texts);
    // The root, its type, the two vectors, and four texts.
    let pool_of_one = new_pool();
    let one = pool_of_one.tx(|tx| tx.root_or_zeroed::<PTuple2<PVec<PString>, PVec<PString>>>()).unwrap();
    put(&pool_of_one, one, r#"[["a","b"],["one","two"]]"#).unwrap();
    assert_eq!(objects(&pool), objects(&pool_of_one));
}

#[test]
fn a_key_that_comes_twice_has_its_last_value() {
    let pool = new_pool();
    let map = pool.tx(|tx| tx.root_or_zeroed::<PHashMap<PString, PVec<u64>>>()).unwrap();
    put(&pool, map, r#"{"a":[1,2,3]}"#).unwrap();
    let one = objects(&pool);
    put(&pool, map, r#"{"a":[4],"a":[5]}"#).unwrap();
    assert_eq!((json_of(&pool, map), objects(&pool)), (r#"{"a":[5]}"#.into(), one));
}

#[test]
fn a_collection_outside_of_a_transaction_says_what_to_do() {
    let error = serde_json::to_string(&PVec::<u64>::new()).unwrap_err();
    assert!(error.to_string().contains("Ptr::serialised"), "{error}");
    let error = serde_json::from_str::<PBTreeMap<u64, u64>>("{}").unwrap_err();
    assert!(error.to_string().contains("Ptr::deserialise"), "{error}");
    // Nor is what another call was in still there, also where it has panicked.
    let pool = new_pool();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pool.tx(|tx| {
            let row = tx.root_or_zeroed::<PVec<Panics>>()?;
            Ptr::deserialise(row, tx, &mut serde_json::Deserializer::from_str("[1]"))
        })
    }));
    assert!(caught.is_err());
    assert!(serde_json::from_str::<PVec<u64>>("[]").is_err());
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Panics(u64);

impl<'de> Deserialize<'de> for Panics {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Panics, D::Error> {
        panic!("as a program may");
    }
}

/// The same text by the standard library's collections and by those of pools, of which one has a mechanism.
#[test]
fn random_nests_are_those_of_the_standard_library() {
    use std::collections::BTreeMap;
    type Std = BTreeMap<String, Vec<(Option<Vec<u64>>, BTreeMap<u64, Vec<String>>)>>;
    type Ours = PBTreeMap<PString, PVec<PTuple2<POption<PVec<u64>>, PBTreeMap<u64, PVec<PString>>>>>;
    let mut state = 7u64;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let direct = new_pool();
    let root = direct.tx(|tx| tx.root_or_zeroed::<Ours>()).unwrap();
    let memory = Box::new(nearpm::memory::TestMemory::new(1 << 20));
    let logged = Options::new().mechanism(nearpm::Mechanism::Undo).create_in(memory).unwrap();
    for _ in 0..100 {
        let mut all = Std::new();
        for _ in 0..below(6) {
            let mut row = Vec::new();
            for _ in 0..below(4) {
                let numbers = (below(2) == 0).then(|| (0..below(5)).map(|_| below(1 << 40)).collect());
                let texts = (0..below(9)).map(|_| (below(99), vec!["t".repeat(below(40) as usize); below(3) as usize]));
                row.push((numbers, texts.collect::<Vec<_>>().into_iter().collect()));
            }
            all.insert(format!("key {}", below(1000)), row);
        }
        let json = serde_json::to_string(&all).unwrap();
        put(&direct, root, &json).unwrap();
        assert_eq!(json_of(&direct, root), json);
        let back = logged.tx(|tx| {
            let mut tx = tx.typed();
            let root = tx.root_or_zeroed::<Ours>()?;
            Ptr::deserialise(root, &mut tx, &mut serde_json::Deserializer::from_str(&json))?;
            Ok(serde_json::to_string(&Ptr::serialised(root, &tx)).unwrap())
        });
        assert_eq!(back.unwrap(), json);
    }
    put(&direct, root, "{}").unwrap();
    let fresh = new_pool();
    fresh.tx(|tx| tx.root_or_zeroed::<Ours>()).unwrap();
    // A map without entries has its handle alone, as one that was never filled.
    assert_eq!(objects(&direct), objects(&fresh));
}
