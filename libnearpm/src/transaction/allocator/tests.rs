//! Where a transaction by offsets puts objects, against a model: to the lowest place that is free.
//! What cards and their links have to do depends on it, and so does every stored result of the
//! evaluation.

use std::collections::{BTreeMap, BTreeSet};

use nearpm_interface::media::CHUNK_BYTES;
use proptest::prelude::*;

use crate::direct::DirectPool;
use crate::heap::HeapLayout;
use crate::heap::classes::{CLASSES, capacity_of};
use crate::memory::TestMemory;
use crate::{Error, Mechanism, Options};

/// Chunks that belong together, and the objects in them.
#[derive(Clone)]
struct Piece {
    chunks: u32,
    /// Bytes of an object, and how many there may be.
    bytes: u64,
    capacity: u32,
    taken: BTreeSet<u32>,
}

/// Pieces by their first chunk.
#[derive(Clone)]
struct Model {
    layout: HeapLayout,
    pieces: BTreeMap<u32, Piece>,
}

impl Model {
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let (chunks, bytes, capacity) = match self.layout.classes.class_of(bytes) {
            Some(class) => {
                let chunks = self.layout.classes.chunks_of_run(class, 0);
                (chunks, u64::from(CLASSES[class]), capacity_of(CLASSES[class], chunks))
            }
            None => (bytes.div_ceil(CHUNK_BYTES) as u32, bytes.next_multiple_of(CHUNK_BYTES), 1),
        };
        let has_room =
            |(_, piece): &(&u32, &mut Piece)| piece.bytes == bytes && (piece.taken.len() as u32) < piece.capacity;
        let chunk = self.pieces.iter_mut().find(has_room).map(|(&chunk, _)| chunk);
        let chunk = chunk.or_else(|| {
            let mut free = 0;
            for (&first, piece) in &self.pieces {
                if free + chunks <= first {
                    break;
                }
                free = first + piece.chunks;
            }
            self.pieces.insert(free, Piece { chunks, bytes, capacity, taken: BTreeSet::new() });
            (u64::from(free + chunks) <= self.layout.chunks).then_some(free).or_else(|| {
                self.pieces.remove(&free);
                None
            })
        })?;
        let piece = self.pieces.get_mut(&chunk).unwrap();
        let unit = (0..).find(|unit| !piece.taken.contains(unit)).unwrap();
        piece.taken.insert(unit);
        Some(self.layout.chunk(chunk) + u64::from(unit) * bytes)
    }

    fn free(&mut self, object: u64) {
        let chunk = ((object - self.layout.first) / CHUNK_BYTES) as u32;
        let (&first, piece) = self.pieces.range_mut(..=chunk).next_back().unwrap();
        assert!(piece.taken.remove(&(((object - self.layout.chunk(first)) / piece.bytes) as u32)));
        if piece.taken.is_empty() {
            self.pieces.remove(&first);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn objects_go_to_the_lowest_place_that_is_free(
        steps in prop::collection::vec(
            // Of one size there are many, so that they fill more than a run.
            (
                prop_oneof![1u64..200, 1u64..5000, 1u64..60_000, Just(3000), Just(3000)],
                0u32..10,
                any::<prop::sample::Index>(),
            ),
            1..300,
        ),
        opened in any::<bool>(),
        of_spans in any::<bool>(),
    ) {
        let options = Options::new().mechanism(Mechanism::Undo).lanes(1).ring_bytes(512 << 10).spare_pages(0);
        let memory = TestMemory::new(2 << 20);
        let mut pool = if of_spans {
            // Pools by pointer have runs of several chunks.
            DirectPool::create_in(Box::new(memory.clone()), &options).unwrap().close().unwrap();
            options.open_in(Box::new(memory.clone())).unwrap()
        } else {
            options.create_in(Box::new(memory.clone())).unwrap()
        };
        let layout = pool.tx(|tx| Ok(tx.layout())).unwrap();
        let mut model = Model { layout, pieces: BTreeMap::new() };
        let mut live: Vec<u64> = Vec::new();
        for steps in steps.chunks(12) {
            let (mut next, mut after, mut freed) = (live.clone(), model.clone(), Vec::new());
            let gives_up = steps[0].1 == 9;
            let ended = pool.tx(|tx| {
                for &(bytes, kind, index) in steps {
                    if kind < 3 && !next.is_empty() {
                        let object = next.swap_remove(index.index(next.len()));
                        tx.free(object)?;
                        assert!(tx.size_of(object).is_err() && tx.free(object).is_err());
                        freed.push(object);
                        continue;
                    }
                    match after.take(bytes) {
                        Some(place) => {
                            assert_eq!(tx.alloc(bytes)?, place);
                            next.push(place);
                        }
                        None => assert!(matches!(tx.alloc(bytes), Err(Error::Full { .. }))),
                    }
                }
                if gives_up { Err(Error::abort("given up")) } else { Ok(()) }
            });
            if gives_up {
                assert!(matches!(ended, Err(Error::Aborted(_))));
            } else {
                ended.unwrap();
                freed.into_iter().for_each(|object| after.free(object));
                (live, model) = (next, after);
            }
            pool.check().unwrap();
            if opened {
                pool.close().unwrap();
                pool = options.open_in(Box::new(memory.clone())).unwrap();
            }
        }
        let found: Vec<u64> = pool.objects().unwrap().into_iter().map(|(object, _)| object).collect();
        live.sort_unstable();
        prop_assert_eq!(found, live);
    }
}
