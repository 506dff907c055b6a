//! What serde makes of values and collections:
//! `cargo test -p nearpm --features serde,tracing --test serialised --test features`.

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

/// The same text by the standard library's collections and by those of pools, of which one has a
/// mechanism.
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

/// A value that a function of the program's own releases, which counts down how many live.
#[derive(Clone, Copy, Persistent, Serialize, Deserialize)]
#[repr(C)]
#[persistent(release = release_counted)]
struct Counted {
    numbers: PVec<u64>,
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Registry {
    live: u64,
    all: PVec<Counted>,
    by_name: PHashMap<u64, Counted>,
}

fn release_counted<S: Store>(value: Counted, tx: &mut S) -> Result<(), Error> {
    let live = tx.root_or_zeroed::<Registry>()?.live();
    let left = tx.get(live)?.checked_sub(1).ok_or_else(|| Error::abort("more are released than live"))?;
    tx.set(live, left)?;
    // As one that notes down what it does.
    let note = tx.alloc(left)?;
    tx.free(note)?;
    value.numbers.release(tx)
}

/// To learn what is left over, the value is released for a trial: nothing of that is done.
#[test]
fn what_a_program_releases_by_a_function_of_its_own_is_released_when_it_goes() {
    let pool = new_pool();
    let root = pool.tx(|tx| tx.root_or_zeroed::<Registry>()).unwrap();
    pool.tx(|tx| tx.set(root.live(), 3)).unwrap();
    let live = || pool.read(|from| from.get(root.live())).unwrap();
    let empty = objects(&pool);
    put(&pool, root.all(), r#"[{"numbers":[1]},{"numbers":[2,3]}]"#).unwrap();
    // The row, and the numbers of each.
    assert_eq!((live(), objects(&pool)), (3, empty + 3));
    // Two go, one comes.
    put(&pool, root.all(), r#"[{"numbers":[4]}]"#).unwrap();
    assert_eq!((live(), objects(&pool)), (1, empty + 2));
    put(&pool, root.all(), "[]").unwrap();
    assert_eq!((live(), objects(&pool)), (0, empty));
    // The first value of a key that comes twice has never lived.
    pool.tx(|tx| tx.set(root.live(), 1)).unwrap();
    put(&pool, root.by_name(), r#"{"1":{"numbers":[1]}}"#).unwrap();
    let one = objects(&pool);
    put(&pool, root.by_name(), "{}").unwrap();
    pool.tx(|tx| tx.set(root.live(), 1)).unwrap();
    put(&pool, root.by_name(), r#"{"1":{"numbers":[1]},"1":{"numbers":[2]}}"#).unwrap();
    assert_eq!((live(), objects(&pool)), (1, one));
}

/// A binary format that writes down how much comes: words of eight bytes, and sequences, maps and
/// texts behind their lengths. It has no limit of depth.
mod binary {
    use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
    use serde::ser::{self, Error, Impossible, Serialize};
    use serde::{Deserializer, Serializer};

    pub type Failed = de::value::Error;

    pub struct Writer(pub Vec<u8>);

    impl Writer {
        fn word(&mut self, word: u64) -> Result<(), Failed> {
            self.0.extend(word.to_le_bytes());
            Ok(())
        }

        fn length(&mut self, length: Option<usize>) -> Result<&mut Writer, Failed> {
            self.word(length.ok_or_else(|| Failed::custom("how many come?"))? as u64)?;
            Ok(self)
        }
    }

    macro_rules! no_such {
        ($($method:ident($($type:ty),*) -> $result:ty;)*) => {$(
            fn $method(self $(, _: $type)*) -> Result<$result, Failed> {
                Err(Failed::custom(stringify!($method)))
            }
        )*};
    }

    type Not = Impossible<(), Failed>;

    impl Serializer for &mut Writer {
        type Ok = ();
        type Error = Failed;
        type SerializeSeq = Self;
        type SerializeMap = Self;
        type SerializeTuple = Not;
        type SerializeTupleStruct = Not;
        type SerializeTupleVariant = Not;
        type SerializeStruct = Not;
        type SerializeStructVariant = Not;

        fn serialize_u64(self, value: u64) -> Result<(), Failed> {
            self.word(value)
        }
        fn serialize_str(self, value: &str) -> Result<(), Failed> {
            self.length(Some(value.len()))?.0.extend(value.as_bytes());
            Ok(())
        }
        fn serialize_seq(self, length: Option<usize>) -> Result<Self, Failed> {
            self.length(length)
        }
        fn serialize_map(self, length: Option<usize>) -> Result<Self, Failed> {
            self.length(length)
        }
        fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<(), Failed> {
            Err(Failed::custom("an option"))
        }
        fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Failed> {
            value.serialize(self)
        }
        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<(), Failed> {
            Err(Failed::custom("a variant"))
        }
        no_such! {
            serialize_bool(bool) -> ();
            serialize_i8(i8) -> ();
            serialize_i16(i16) -> ();
            serialize_i32(i32) -> ();
            serialize_i64(i64) -> ();
            serialize_u8(u8) -> ();
            serialize_u16(u16) -> ();
            serialize_u32(u32) -> ();
            serialize_f32(f32) -> ();
            serialize_f64(f64) -> ();
            serialize_char(char) -> ();
            serialize_bytes(&[u8]) -> ();
            serialize_none() -> ();
            serialize_unit() -> ();
            serialize_unit_struct(&'static str) -> ();
            serialize_unit_variant(&'static str, u32, &'static str) -> ();
            serialize_tuple(usize) -> Not;
            serialize_tuple_struct(&'static str, usize) -> Not;
            serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Not;
            serialize_struct(&'static str, usize) -> Not;
            serialize_struct_variant(&'static str, u32, &'static str, usize) -> Not;
        }
    }

    impl ser::SerializeSeq for &mut Writer {
        type Ok = ();
        type Error = Failed;
        fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
            value.serialize(&mut **self)
        }
        fn end(self) -> Result<(), Failed> {
            Ok(())
        }
    }

    impl ser::SerializeMap for &mut Writer {
        type Ok = ();
        type Error = Failed;
        fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failed> {
            key.serialize(&mut **self)
        }
        fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
            value.serialize(&mut **self)
        }
        fn end(self) -> Result<(), Failed> {
            Ok(())
        }
    }

    pub struct Reader<'de>(pub &'de [u8]);

    impl Reader<'_> {
        fn word(&mut self) -> Result<u64, Failed> {
            let (word, rest) = self.0.split_first_chunk().ok_or_else(|| Failed::custom("no more words"))?;
            self.0 = rest;
            Ok(u64::from_le_bytes(*word))
        }
    }

    impl<'de> Deserializer<'de> for &mut Reader<'de> {
        type Error = Failed;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Failed> {
            Err(Failed::custom("a binary format does not say what comes"))
        }
        fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
            visitor.visit_u64(self.word()?)
        }
        fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
            let length = self.word()? as usize;
            let (text, rest) = self.0.split_at_checked(length).ok_or_else(|| Failed::custom("half a text"))?;
            self.0 = rest;
            visitor.visit_str(std::str::from_utf8(text).map_err(Failed::custom)?)
        }
        fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
            let left = self.word()?;
            visitor.visit_seq(Items { from: self, left })
        }
        fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
            let left = self.word()?;
            visitor.visit_map(Items { from: self, left })
        }
        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str bytes byte_buf option unit unit_struct
            newtype_struct tuple tuple_struct struct enum identifier ignored_any
        }
    }

    struct Items<'a, 'de> {
        from: &'a mut Reader<'de>,
        left: u64,
    }

    impl<'de> SeqAccess<'de> for Items<'_, 'de> {
        type Error = Failed;
        fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failed> {
            let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
            self.left = left;
            seed.deserialize(&mut *self.from).map(Some)
        }
    }

    impl<'de> MapAccess<'de> for Items<'_, 'de> {
        type Error = Failed;
        fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failed> {
            self.next_element_seed(seed)
        }
        fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failed> {
            seed.deserialize(&mut *self.from)
        }
    }
}

fn binary_of<T: Persistent + Serialize>(from: &impl Load, at: Ptr<T>) -> Result<Vec<u8>, binary::Failed> {
    let mut writer = binary::Writer(Vec::new());
    Ptr::serialised(at, from).serialize(&mut writer)?;
    Ok(writer.0)
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct All {
    rows: PBTreeMap<PString, PVec<PQueue<u64>>>,
    sets: PHashMap<u64, PBTreeSet<u64>>,
    seen: PHashSet<u64>,
}

/// Such a format has to be told beforehand how much comes.
#[test]
fn binary_formats_have_the_lengths_that_they_need() {
    let pool = new_pool();
    let root = pool.tx(|tx| tx.root_or_zeroed::<All>()).unwrap();
    fn there_and_back<T: Persistent + Serialize + for<'de> Deserialize<'de>>(
        pool: &DirectPool,
        at: Ptr<T>,
        json: &str,
    ) {
        put(pool, at, json).unwrap();
        let bytes = pool.read(|from| Ok(binary_of(from, at).unwrap())).unwrap();
        put(pool, at, if json.starts_with('{') { "{}" } else { "[]" }).unwrap();
        pool.tx(|tx| Ptr::deserialise(at, tx, &mut binary::Reader(&bytes))).unwrap();
        assert_eq!(json_of(pool, at), json);
    }
    there_and_back(&pool, root.rows(), r#"{"a":[[1,2],[]],"b":[],"c":[[3]]}"#);
    there_and_back(&pool, root.sets(), r#"{"7":[1,2,3]}"#);
    there_and_back(&pool, root.seen(), "[9]");
    let bytes = pool.read(|from| Ok(binary_of(from, root.seen()).unwrap())).unwrap();
    assert_eq!(bytes, [1u64.to_le_bytes(), 9u64.to_le_bytes()].concat());
    // A length that is damaged is not believed.
    let whole = size_of::<PHashSet<u64>>() as u64;
    let length = (0..whole / 8)
        .map(|word| Ptr::offset(root.seen()) + 8 * word)
        .find(|&at| pool.read(|from| from.get(Ptr::<u64>::from_offset(at).unwrap())).unwrap() == 1);
    for (wrong, says) in [(0, "more than the 0"), (2, "fewer than the 2")] {
        let told = pool.tx(|tx| {
            tx.write(length.unwrap(), &u64::to_le_bytes(wrong))?;
            Ok(binary_of(&*tx, root.seen()).unwrap_err().to_string())
        });
        assert!(told.as_ref().unwrap().contains(says), "{told:?}");
    }
}

#[derive(Clone, Copy, Persistent, Serialize, Deserialize)]
#[repr(C)]
#[serde(transparent)]
struct Nest {
    inner: PVec<Nest>,
}

/// As many as serde goes into; it takes stack for each.
const DEEPEST: usize = 128;

/// A nest of so many vectors: each but the innermost has one.
fn nest(levels: usize) -> Vec<u8> {
    let lengths = (1..levels).map(|_| 1u64).chain([0]);
    lengths.flat_map(u64::to_le_bytes).collect()
}

#[test]
fn what_is_deeper_than_a_stack_is_refused() {
    let pool = DirectPool::create_in(Box::new(VolatileMemory::new(1 << 26)), &Options::default()).unwrap();
    let root = pool.tx(|tx| tx.root_or_zeroed::<PVec<Nest>>()).unwrap();
    let put = |levels| pool.tx(|tx| Ptr::deserialise(root, tx, &mut binary::Reader(&nest(levels))));
    let get = || pool.read(|from| Ok(binary_of(from, root))).unwrap();
    let empty = objects(&pool);
    put(DEEPEST).unwrap();
    assert_eq!(get().unwrap(), nest(DEEPEST));
    for levels in [DEEPEST + 1, 60_000] {
        let error = put(levels).unwrap_err();
        assert!(matches!(error, Error::Aborted(_)) && error.to_string().contains("128 deep"), "{error}");
        assert_eq!(get().unwrap(), nest(DEEPEST));
    }
    // A pool may hold deeper ones: one more, many more, and one that has no end.
    let around = |tx: &mut Tx<'_>, levels| {
        (0..levels).try_for_each(|_| {
            let inner = tx.get(root)?;
            let row = PVec::with(tx, &[Nest { inner }])?;
            tx.set(root, row)
        })
    };
    for times in [1, 120] {
        (0..times).for_each(|_| pool.tx(|tx| around(tx, if times == 1 { 1 } else { 500 })).unwrap());
        let error = get().unwrap_err();
        assert!(error.to_string().contains("128 deep"), "{error}");
    }
    put(1).unwrap();
    assert_eq!((get().unwrap(), objects(&pool)), (nest(1), empty));
    let told = pool.tx(|tx| {
        let empty = PVec::with(tx, &[])?;
        root.push(tx, Nest { inner: empty })?;
        let itself = tx.get(root)?;
        let place = root.slot(tx, 0)?.unwrap();
        tx.set(place, Nest { inner: itself })?;
        let told = binary_of(&*tx, root).unwrap_err().to_string();
        tx.set(place, Nest { inner: empty })?;
        Ok(told)
    });
    assert!(told.as_ref().unwrap().contains("128 deep"), "{told:?}");
    // Nothing of the depth stays behind.
    put(DEEPEST).unwrap();
}

#[derive(Clone, Copy, PersistentEnum, Serialize, Deserialize)]
#[serde(untagged)]
enum Large {
    First { many: PVec<u64> },
    Second { few: PVec<u64> },
}

/// The first variant fits but for the pool's room; the second would fit the pool as well.
#[test]
fn after_the_pools_first_error_no_other_variant_is_made() {
    let pool = new_pool();
    let both = std::collections::BTreeMap::from([("many", vec![1u64; 1 << 18]), ("few", vec![1])]);
    let both = serde_json::to_string(&both).unwrap();
    let tried = pool.tx(|tx| {
        let before = tx.changes();
        let error =
            nearpm::collections::deserialised::<PEnum<Large>, _, _>(tx, &mut serde_json::Deserializer::from_str(&both));
        assert_eq!(tx.changes(), before);
        Ok(error.err().unwrap())
    });
    assert!(matches!(tried, Ok(Error::Full { .. } | Error::TooLarge { .. })), "{tried:?}");
}
