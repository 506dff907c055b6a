//! Both designs against a map of the processor's, on the interpreter.

use std::collections::HashMap;
use std::rc::Rc;

use nearpm_gphash::{Design, Layout, Op, Outcome, Request, Table};
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

/// Batches of distinct keys, so that their answers depend on nothing but what was before.
fn against_a_map(layout: Layout, keys: u64, batches: usize) {
    let region = region(&layout);
    let mut table = Table::create(&region, "t", &layout, 7).unwrap();
    let mut map: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut random = Random(layout.buckets as u64 * 977 + keys);
    for number in 0..batches {
        let mut requests = Vec::new();
        for key in 1..=keys {
            if number % 2 == 1 && random.below(3) == 0 {
                continue;
            }
            let op = [Op::Get, Op::Insert, Op::Update, Op::Put, Op::Delete, Op::Rmw][random.below(6) as usize];
            let value = if matches!(op, Op::Get | Op::Delete) {
                vec![]
            } else {
                (0..layout.value_bytes).map(|_| random.below(256) as u8).collect()
            };
            requests.push(Request { op, key: key * 0x1_0000_0001, value });
        }
        let answers = table.batch(&requests).unwrap();
        for (request, answer) in requests.iter().zip(answers) {
            let there = map.get(&request.key).cloned();
            let outcome = match (request.op, &there) {
                (Op::Insert, Some(_)) => Outcome::Exists,
                (Op::Insert | Op::Put, _) | (_, Some(_)) => Outcome::Done,
                _ => Outcome::Absent,
            };
            assert_eq!(answer.outcome, outcome, "{request:?}, batch {number}");
            assert_eq!(
                answer.value,
                there.filter(|_| matches!(request.op, Op::Get | Op::Rmw)),
                "{request:?}, batch {number}"
            );
            match request.op {
                Op::Delete => drop(map.remove(&request.key)),
                Op::Get => {}
                _ if outcome == Outcome::Done => drop(map.insert(request.key, request.value.clone())),
                _ => {}
            }
        }
        let found = table.check().unwrap();
        assert!(found.is_sound(), "{found}");
        if number % 3 == 2 {
            drop(table);
            table = Table::open(&region, "t").unwrap();
            assert_eq!(table.found().live as usize, map.len());
        }
    }
    assert!(!map.is_empty());
}

#[test]
fn levels_do_what_a_map_does() {
    against_a_map(small(Design::Levels), 60, 12);
}

#[test]
fn tags_do_what_a_map_does() {
    against_a_map(small(Design::Tags), 40, 12);
}
