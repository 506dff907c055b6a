//! Operations, each a transaction.

use nearpm::prelude::*;

/// Words of the array.
const WORDS: u64 = 4096;
/// Words of a line.
const LINE: u64 = 8;

/// The root.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
pub struct Root {
    words: PVec<u64>,
    table: PHashMap<u64, u64>,
    ordered: PBTreeMap<u64, u64>,
    queue: PQueue<u64>,
    /// An object that comes and goes.
    guest: Option<Ptr<u64>>,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    /// A transaction that changes nothing.
    Nothing,
    /// A word is stored.
    Word,
    /// Sixteen words in as many lines are stored.
    Words,
    /// 4 KiB are stored.
    Page,
    /// An object of 64 bytes comes, the one before goes.
    Object,
    /// The same with 100 KiB.
    LargeObject,
    /// A key is inserted into a hash map.
    HashMap,
    /// A key is inserted into an ordered map.
    Ordered,
    /// A value goes into a queue, and one comes out.
    Queue,
    /// Four words are stored, and the transaction is given up.
    Abort,
}

impl Operation {
    pub const ALL: [Operation; 10] = [
        Operation::Nothing,
        Operation::Word,
        Operation::Words,
        Operation::Page,
        Operation::Object,
        Operation::LargeObject,
        Operation::HashMap,
        Operation::Ordered,
        Operation::Queue,
        Operation::Abort,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Operation::Nothing => "nothing",
            Operation::Word => "word",
            Operation::Words => "words",
            Operation::Page => "page",
            Operation::Object => "object",
            Operation::LargeObject => "large-object",
            Operation::HashMap => "hash-map",
            Operation::Ordered => "ordered",
            Operation::Queue => "queue",
            Operation::Abort => "abort",
        }
    }

    /// Whether its instructions are the library's, and not those of copies.
    pub fn is_short(self) -> bool {
        !matches!(self, Operation::Nothing | Operation::Page | Operation::LargeObject | Operation::Queue)
    }
}

/// A number that looks random.
fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

/// Makes what the operations work on.
pub fn prepare(tx: &mut impl Store) -> Result<(), Error> {
    let root = tx.root_or_zeroed::<Root>()?;
    root.words().extend(tx, &vec![1; WORDS as usize])
}

fn exchange(tx: &mut impl Store, root: Ptr<Root>, words: u64) -> Result<(), Error> {
    if let Some(guest) = tx.get(root.guest())? {
        tx.free(guest)?;
    }
    let guest = tx.alloc_zeroed::<u64>(words)?;
    tx.set(root.guest(), Some(guest))
}

/// Does an operation for the `number`th time.
pub fn operate(tx: &mut impl Store, operation: Operation, number: u64) -> Result<(), Error> {
    let Some(root) = tx.root::<Root>()? else { return Err(Error::abort("there is no root")) };
    let words = |tx: &mut _, count: u64| {
        (0..count).try_for_each(|n| {
            let index = (mixed(number) + n * LINE * 3) % WORDS;
            root.words().set(tx, index, number).map(drop)
        })
    };
    match operation {
        Operation::Nothing => Ok(()),
        Operation::Word => words(tx, 1),
        Operation::Words => words(tx, 16),
        Operation::Page => {
            let first = number % 7 * 512;
            let place = root.words().slot(tx, first)?.ok_or_else(|| Error::abort("no such word"))?;
            tx.set_all(place, &[number; 512])
        }
        Operation::Object => exchange(tx, root, 8),
        Operation::LargeObject => exchange(tx, root, 100 << 7),
        Operation::HashMap => root.table().insert(tx, &mixed(number), number).map(drop),
        Operation::Ordered => root.ordered().insert(tx, &mixed(number), number).map(drop),
        Operation::Queue => {
            root.queue().push(tx, number)?;
            if number > 4 { root.queue().pop(tx).map(drop) } else { Ok(()) }
        }
        Operation::Abort => {
            words(tx, 4)?;
            Err(Error::abort("given up"))
        }
    }
}

/// Sees that so many operations were done.
pub fn check(from: &impl Load, operation: Operation, times: u64) -> Result<(), Error> {
    let Some(root) = from.root::<Root>()? else { panic!("there is a root") };
    let words = root.words().to_vec(from)?;
    let last = mixed(times - 1) % WORDS;
    match operation {
        Operation::Nothing | Operation::Abort => assert!(words.iter().all(|word| *word == 1)),
        Operation::Word | Operation::Words => assert_eq!(words[last as usize], times - 1),
        Operation::Page => assert_eq!(words[((times - 1) % 7 * 512) as usize], times - 1),
        Operation::Object | Operation::LargeObject => assert!(from.get(root.guest())?.is_some()),
        Operation::HashMap => assert_eq!(root.table().len(from)?, times),
        Operation::Ordered => assert_eq!(root.ordered().len(from)?, times),
        Operation::Queue => assert_eq!(root.queue().len(from)?, 5),
    }
    Ok(())
}
