//! What the tests of pools that grow have in common.

use nearpm_explorer::program::{Operation, Transaction};
use nearpm_explorer::trace::{Event, Trace};
use nearpm_interface::media::POOL_GROWN;

/// The number of a size of the slots: a whole chunk.
pub const CHUNK: u32 = 7;

/// A transaction that makes objects of one of the sizes of the slots, by their numbers.
pub fn objects(made: &[(u8, u32)]) -> Transaction {
    let operations = made.iter().map(|&(key, size)| Operation { kind: 0, key, value: size | 0x4500 }).collect();
    Transaction { operations, ..Transaction::default() }
}

/// The steps since crashes began that store the word which says where the pool ends, by their
/// numbers in the trace.
pub fn growths(trace: &Trace) -> impl DoubleEndedIterator<Item = usize> {
    let begin = trace.bounds.first().map_or(0, |first| first.0);
    let stores = |event: &Event| match event {
        Event::Store(parts) | Event::Stream(parts) => parts.iter().any(|part| part.word as u64 * 8 == POOL_GROWN),
        _ => false,
    };
    (begin..trace.steps.len()).filter(move |&at| stores(&trace.steps[at].event))
}
