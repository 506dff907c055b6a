//! Both designs against a map of the processor's, on the interpreter.

use std::collections::HashMap;
use std::rc::Rc;

use nearpm_gphash::{CacheOptions, Design, Key, Keys, Layout, Op, Operations, Outcome, Policy, Request, Table};
use nearpm_gpu::{Device, Interpreted, Medium, PmRegion};

fn region(layout: &Layout) -> PmRegion {
    let device: Rc<dyn Device> = Rc::new(Interpreted::new(64 << 20));
    let bytes = (layout.bytes() + (1 << 16)).next_multiple_of(4096);
    PmRegion::create_in(device, Medium::of_bytes(vec![0; bytes as usize])).unwrap()
}

fn small(design: Design) -> Layout {
    match design {
        Design::Levels => Layout { buckets: 8, spares: 64, value_bytes: 32, ..Layout::levels(1, 16) },
        Design::Tags => {
            Layout { width: 8, buckets: 8, windows: 2, stash: 1, spares: 16, value_bytes: 32, ..Layout::tags(1, 16) }
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// How a table is used.
#[derive(Clone, Copy, Default)]
struct Usage {
    cache: Option<Policy>,
    /// Windows or levels that it grows by behind some batches.
    grows: bool,
}

fn open(region: &PmRegion, usage: Usage) -> Table {
    match usage.cache {
        None => Table::open(region, "t").unwrap(),
        Some(policy) => {
            let mut table = Table::open_cached(region, "t", CacheOptions { entries: 8, policy, sampled: 0 }).unwrap();
            // With room to sort, the cache answers first what it can.
            table.sort_batches(256).unwrap();
            table
        }
    }
}

/// The number-th key: of different lengths, where that may be.
fn key(layout: &Layout, number: u64) -> Key {
    let bytes = |length: usize| Key::Bytes((0..length).map(|at| (number >> (at % 3)) as u8 ^ at as u8).collect());
    match layout.keys {
        Keys::Words => Key::Word(number * 0x1_0000_0001),
        Keys::Fixed(length) => bytes(length as usize),
        Keys::Variable(most) => bytes((number % u64::from(most)) as usize),
    }
}

/// Batches of distinct keys, so that their answers depend on nothing but what was before.
fn against_a_map(layout: Layout, keys: u64, batches: usize, usage: Usage) {
    let region = region(&layout);
    drop(Table::create(&region, "t", &layout, 7).unwrap());
    let mut table = open(&region, usage);
    let mut map: HashMap<Key, Vec<u8>> = HashMap::new();
    let mut random = Random(u64::from(layout.buckets) * 977 + keys);
    let (mut grew, mut cached) = (0, 0);
    for batch in 0..batches {
        let mut requests = Vec::new();
        for number in (1..=keys).filter(|_| batch % 2 == 0 || random.below(3) > 0).collect::<Vec<_>>() {
            // What is cached is what is read, and not changed in the same batch.
            let kinds = if usage.cache.is_some() && batch % 4 > 1 { 1 } else { 6 };
            let op = [Op::Get, Op::Insert, Op::Update, Op::Put, Op::Delete, Op::Rmw][random.below(kinds) as usize];
            let value =
                if op.puts() { (0..layout.value_bytes).map(|_| random.below(256) as u8).collect() } else { vec![] };
            requests.push(Request { op, key: key(&layout, number), value });
        }
        let answers = table.batch(&requests).unwrap();
        for (request, answer) in requests.iter().zip(answers) {
            let there = map.get(&request.key).cloned();
            let outcome = match (request.op, &there) {
                (Op::Insert, Some(_)) => Outcome::Exists,
                (Op::Insert | Op::Put, _) | (_, Some(_)) => Outcome::Done,
                _ => Outcome::Absent,
            };
            assert_eq!(answer.outcome, outcome, "{request:?}, batch {batch}");
            let reads = matches!(request.op, Op::Get | Op::Rmw);
            assert_eq!(answer.value, there.filter(|_| reads), "{request:?}, batch {batch}");
            match request.op {
                Op::Delete => drop(map.remove(&request.key)),
                Op::Get => {}
                _ if outcome == Outcome::Done => drop(map.insert(request.key.clone(), request.value.clone())),
                _ => {}
            }
        }
        table.turn_cache().unwrap();
        cached += table.cached().unwrap();
        if usage.grows && batch % 2 == 1 && table.can_grow() {
            table.grow(1).unwrap();
            grew += 1;
        }
        let found = table.check().unwrap();
        assert!(found.is_sound(), "batch {batch}: {found}");
        if batch % 3 == 2 && usage.cache.is_none() {
            drop(table);
            table = open(&region, usage);
            assert_eq!(table.found().live as usize, map.len());
        }
    }
    assert!(!map.is_empty() && usage.grows == (grew > 0) && usage.cache.is_some() == (cached > 0));
}

#[test]
fn levels_do_what_a_map_does() {
    against_a_map(small(Design::Levels), 60, 12, Usage::default());
}

#[test]
fn tags_do_what_a_map_does() {
    against_a_map(small(Design::Tags), 40, 12, Usage::default());
}

#[test]
fn growing_tables_do_what_a_map_does() {
    let usage = Usage { grows: true, ..Usage::default() };
    against_a_map(small(Design::Levels).growing(2), 60, 8, usage);
    against_a_map(small(Design::Tags).growing(2), 40, 14, usage);
}

#[test]
fn cached_tables_do_what_a_map_does() {
    for policy in [Policy::Lfu, Policy::Lru, Policy::Random] {
        let usage = Usage { cache: Some(policy), ..Usage::default() };
        against_a_map(small(Design::Levels), 60, 8, usage);
    }
    let usage = Usage { cache: Some(Policy::Lfu), grows: true };
    against_a_map(small(Design::Tags).growing(1), 40, 8, usage);
}

#[test]
fn tables_of_wide_keys_do_what_a_map_does() {
    let usage = Usage { grows: true, ..Usage::default() };
    for keys in [Keys::Fixed(32), Keys::Variable(40)] {
        against_a_map(small(Design::Levels).with_keys(keys).growing(1), 60, 6, usage);
        against_a_map(small(Design::Tags).with_keys(keys).growing(1), 40, 6, usage);
    }
}

/// There are no caches for wide keys: an error says what to do instead, and the table is there
/// without one.
#[test]
fn a_cache_for_wide_keys_is_refused_and_loses_nothing() {
    for (design, keys) in
        [Design::Levels, Design::Tags].into_iter().flat_map(|d| [(d, Keys::Fixed(32)), (d, Keys::Variable(40))])
    {
        let layout = small(design).with_keys(keys);
        let region = region(&layout);
        let pair = |op: Op| Request { op, key: key(&layout, 5), value: if op.puts() { vec![5; 32] } else { vec![] } };
        let table = Table::create(&region, "t", &layout, 7).unwrap();
        table.batch(&[pair(Op::Insert)]).unwrap();
        drop(table);
        let options = CacheOptions { entries: 8, policy: Policy::Lfu, sampled: 0 };
        let refused = Table::open_cached(&region, "t", options).map(drop).unwrap_err().to_string();
        assert!(refused.contains(&format!("{keys:?}")) && refused.contains("open it without one"), "{refused}");
        let answers = Table::open(&region, "t").unwrap().batch(&[pair(Op::Get)]).unwrap();
        assert_eq!(answers[0].value, Some(vec![5; 32]));
    }
}

/// A free slot's tag is no key's fingerprint: a look-up of a key that is not there reads no free
/// slot of PM, whatever the key is, and whether slots were in use before or not.
#[test]
fn look_ups_of_what_is_not_there_read_no_free_slots() {
    let layout = Layout { stash: 0, ..Layout::tags(512, 16) };
    let device: Rc<dyn Device> = Rc::new(Interpreted::new(64 << 20));
    let bytes = (layout.bytes() + (1 << 16)).next_multiple_of(4096);
    let region = PmRegion::create_in(device.clone(), Medium::of_bytes(vec![0; bytes as usize])).unwrap();
    let table = Table::create(&region, "t", &layout, 7).unwrap();
    let keys: Vec<u64> = (1..=20_000).collect();
    let looks_up = || {
        let before = device.counts().unwrap().pm_bytes_loaded;
        let batch = Operations::new(&device, Op::Get, &keys).unwrap();
        table.run(&batch).unwrap();
        assert!(table.outcomes(&batch).unwrap().iter().all(|&outcome| outcome == Outcome::Absent));
        device.counts().unwrap().pm_bytes_loaded - before
    };
    assert_eq!(looks_up(), 0);
    // Slots that were given up in an even epoch, and in an odd one: each batch is an epoch, and a
    // round has five.
    for first in [1 << 40, 1 << 41] {
        let request = |op: Op| {
            let value = if op.puts() { vec![1; 16] } else { Vec::new() };
            move |number: u64| Request { op, key: (first + number).into(), value: value.clone() }
        };
        table.batch(&(0..128).map(request(Op::Insert)).collect::<Vec<_>>()).unwrap();
        assert!(looks_up() > 0, "no key that is there has the fingerprint of any that was looked for");
        table.batch(&(0..128).map(request(Op::Delete)).collect::<Vec<_>>()).unwrap();
        assert_eq!([looks_up(), looks_up()], [0, 0]);
    }
}

/// A volatile copy has what the table has; what is changed in it is not changed there, and it does
/// not grow.
#[test]
fn a_volatile_copy_leaves_the_table_as_it_is() {
    for (design, keys) in
        [Design::Levels, Design::Tags].into_iter().flat_map(|d| [(d, Keys::Words), (d, Keys::Fixed(32))])
    {
        let layout = small(design).with_keys(keys).growing(1);
        let region = region(&layout);
        let table = Table::create(&region, "t", &layout, 7).unwrap();
        let request = |op: Op, number: u64, byte: u8| {
            let value = if op.puts() { vec![byte; 32] } else { Vec::new() };
            Request { op, key: key(&layout, number), value }
        };
        let each = |op: Op, byte: u8| (1..=20).map(|number| request(op, number, byte)).collect::<Vec<_>>();
        table.batch(&each(Op::Insert, 1)).unwrap();
        drop(table);
        let copy = Table::open_volatile(&region, "t").unwrap();
        let all_are = |table: &Table, byte: u8| {
            let answers = table.batch(&each(Op::Get, 0)).unwrap();
            answers.iter().all(|answer| answer.value == Some(vec![byte; 32]))
        };
        assert!(all_are(&copy, 1));
        copy.batch(&each(Op::Update, 2)).unwrap();
        assert!(all_are(&copy, 2) && copy.check().unwrap().is_sound());
        copy.batch(&each(Op::Delete, 0)).unwrap();
        let refused = copy.grow(1).unwrap_err().to_string();
        assert!(!copy.can_grow() && refused.contains("let the table itself grow"), "{refused}");
        drop(copy);
        assert!(all_are(&Table::open(&region, "t").unwrap(), 1));
    }
}

/// A table that is full grows by itself, as far as its object has room.
#[test]
fn a_full_table_grows_and_then_refuses_with_the_key() {
    for design in [Design::Levels, Design::Tags] {
        let layout = small(design).growing(1);
        let region = region(&layout);
        let table = Table::create(&region, "t", &layout, 7).unwrap();
        let before = table.slots_in_use();
        let mut inside = 0;
        let refused = (1..20).find_map(|batch: u64| {
            let insert =
                |number: u64| Request { op: Op::Insert, key: Key::Word(batch << 8 | number), value: vec![9; 32] };
            let outcome = table.batch(&(0..24).map(insert).collect::<Vec<_>>());
            inside += if outcome.is_ok() { 24 } else { 0 };
            outcome.err()
        });
        let refused = refused.expect("it is full").to_string();
        assert!(refused.contains("no free slot for the key 0x0000"), "{refused}");
        assert_eq!(table.slots_in_use(), 2 * before);
        assert!(inside > before, "{inside} of {before} at first");
        assert!(table.check().unwrap().is_sound());
    }
}

fn mixed(key: u64) -> u64 {
    let key = (key ^ key >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let key = (key ^ key >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    key ^ key >> 33
}

/// Two keys of which the slot would have the same 64 bits.
#[test]
fn wide_keys_with_the_same_bits_are_told_apart() {
    let words = |of: [u64; 4]| Key::Bytes(of.into_iter().flat_map(u64::to_le_bytes).collect());
    // The last word takes back what the first has changed.
    let before = |first: u64| [first, 2, 3].into_iter().fold(7, |so_far, word| mixed(so_far ^ word));
    let (one, other) = (words([1, 2, 3, 4]), words([9, 2, 3, 4 ^ before(1) ^ before(9)]));
    for design in [Design::Levels, Design::Tags] {
        let layout = small(design).with_keys(Keys::Fixed(32));
        let region = region(&layout);
        let table = Table::create(&region, "t", &layout, 7).unwrap();
        let request =
            |op: Op, key: &Key| Request { op, key: key.clone(), value: if op.puts() { vec![5; 32] } else { vec![] } };
        let both = [request(Op::Insert, &one), request(Op::Insert, &other)];
        let refused = table.batch(&both).unwrap_err().to_string();
        assert!(refused.contains("the same 64 bits"), "{refused}");
        let [one, other] = if table.batch(&[request(Op::Get, &one)]).unwrap()[0].outcome == Outcome::Done {
            [&one, &other]
        } else {
            [&other, &one]
        };
        for op in [Op::Get, Op::Update, Op::Delete] {
            assert_eq!(table.batch(&[request(op, other)]).unwrap()[0].outcome, Outcome::Absent, "{op:?}");
        }
        assert!(table.batch(&[request(Op::Put, other)]).is_err());
        assert_eq!(table.batch(&[request(Op::Delete, one)]).unwrap()[0].outcome, Outcome::Done);
        assert_eq!(table.batch(&[request(Op::Put, other)]).unwrap()[0].outcome, Outcome::Done);
        assert!(table.check().unwrap().is_sound());
    }
}

#[test]
fn keys_of_another_kind_are_refused() {
    let layout = small(Design::Tags).with_keys(Keys::Fixed(32));
    let region = region(&layout);
    let table = Table::create(&region, "t", &layout, 7).unwrap();
    for key in [Key::Word(3), Key::Bytes(vec![1; 31])] {
        let refused = table.batch(&[Request { op: Op::Get, key, value: vec![] }]).unwrap_err().to_string();
        assert!(refused.contains("its keys have 32 bytes"), "{refused}");
    }
}

/// Too little of the GPU's memory is an error with the bytes, and what the table has stays.
#[test]
fn too_little_memory_of_the_gpu_is_told_and_loses_nothing() {
    let on = |memory: u64, image: Vec<u8>| {
        let device: Rc<dyn Device> = Rc::new(Interpreted::new(memory));
        PmRegion::open_in(device, Medium::of_bytes(image)).unwrap()
    };
    for design in [Design::Levels, Design::Tags] {
        let layout = small(design);
        let region = region(&layout);
        let table = Table::create(&region, "t", &layout, 7).unwrap();
        let insert = |number: u64| Request { op: Op::Insert, key: number.into(), value: vec![number as u8; 32] };
        table.batch(&(1..=10).map(insert).collect::<Vec<_>>()).unwrap();
        drop(table);
        let mut image = region.close().unwrap().bytes().to_vec();
        for memory in [0, 64, layout.device_bytes()] {
            let poor = on(memory, image);
            let refused = Table::open(&poor, "t").map(drop).unwrap_err().to_string();
            assert!(refused.contains("bytes") && refused.contains(&memory.to_string()), "{memory}: {refused}");
            image = poor.close().unwrap().bytes().to_vec();
        }
        let rich = on(1 << 20, image);
        let most = CacheOptions { entries: 1 << 20, policy: Policy::Lfu, sampled: 0 };
        let refused = Table::open_cached(&rich, "t", most).map(drop).unwrap_err().to_string();
        assert!(refused.contains("bytes"), "{refused}");
        let get = |number: u64| Request { op: Op::Get, key: number.into(), value: vec![] };
        let answers = Table::open(&rich, "t").unwrap().batch(&(1..=10).map(get).collect::<Vec<_>>()).unwrap();
        assert!((1..=10).zip(answers).all(|(number, answer)| answer.value == Some(vec![number; 32])));
    }
}

/// Look-ups that the cache answers happen before what their batch changes; all others are run
/// behind them.
#[test]
fn the_cache_answers_before_a_batch_changes_anything() {
    let layout = small(Design::Tags);
    let region = region(&layout);
    drop(Table::create(&region, "t", &layout, 7).unwrap());
    let table = open(&region, Usage { cache: Some(Policy::Lfu), grows: false });
    let request = |op: Op, number: u64, value: u8| Request {
        op,
        key: key(&layout, number),
        value: if op.puts() { vec![value; 32] } else { Vec::new() },
    };
    table.batch(&(1..=20).map(|number| request(Op::Insert, number, 1)).collect::<Vec<_>>()).unwrap();
    let gets: Vec<Request> = (1..=20).map(|number| request(Op::Get, number, 0)).collect();
    for _ in 0..4 {
        table.batch(&gets).unwrap();
        table.turn_cache().unwrap();
    }
    let cached = table.cached().unwrap();
    assert!((4..=8).contains(&cached), "{cached}");
    assert!(table.batch(&gets).unwrap().iter().all(|answer| answer.value == Some(vec![1; 32])));
    assert_eq!(table.missed(), Some(20 - cached));
    // Each key is read and given another value in one batch: readers have either.
    let both: Vec<Request> = (1..=20).flat_map(|n| [request(Op::Get, n, 0), request(Op::Update, n, 2)]).collect();
    let answers = table.batch(&both).unwrap();
    let old = answers.iter().filter(|answer| answer.value == Some(vec![1; 32])).count();
    let new = answers.iter().filter(|answer| answer.value == Some(vec![2; 32])).count();
    assert!(old >= cached as usize && old + new == 20, "{old} and {new}");
    assert!(table.batch(&gets).unwrap().iter().all(|answer| answer.value == Some(vec![2; 32])));
}
