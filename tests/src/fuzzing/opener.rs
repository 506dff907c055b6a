//! The pool opener on arbitrary and on damaged pools.

use std::ops::Range;
use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use nearpm::memory::{Memory, TestMemory, VolatileMemory};
use nearpm::{Error, Mechanism, Options, Pool, Problem};
use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead};
use nearpm_interface::seal;

/// Bytes of the pools that are damaged: small, so that most damage meets something.
const POOL_BYTES: usize = 256 * 1024;
/// Most changes to one pool.
const CHANGES: usize = 12;

fn options(mechanism: Mechanism) -> Options {
    Options::new().mechanism(mechanism).lanes(2).ring_bytes(16 * 1024).epoch_ops(4).id(3)
}

/// A pool with objects, at a moment between a transaction's first store and its commit.
fn interrupted(mechanism: Mechanism) -> Vec<u8> {
    let memory = TestMemory::new(POOL_BYTES);
    let pool = options(mechanism).create_in(Box::new(memory.clone())).expect("the pool fits");
    let mut image = Vec::new();
    for n in 0..20 {
        let done = pool.tx(|tx| {
            let object = tx.alloc(90 * (1 + n % 3))?;
            tx.write(object, &[n as u8; 90])?;
            tx.set_root(object)?;
            image = memory.surviving(n);
            Ok(())
        });
        done.expect("the object fits");
    }
    image
}

/// One interrupted pool a mechanism.
fn images() -> &'static [Vec<u8>] {
    static IMAGES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    IMAGES.get_or_init(|| Mechanism::ALL.into_iter().map(interrupted).collect())
}

/// A place in `bytes`; as often in the rings and in the tables as in all the rest.
fn place(u: &mut Unstructured<'_>, bytes: Range<usize>) -> Result<usize> {
    let reach = *u.choose(&[16 * 1024, 64 * 1024, bytes.len()])?;
    Ok(bytes.start + u.int_in_range(0..=reach.min(bytes.len()) - 1)?)
}

/// Damages the head, or how much there is of the pool.
fn damage_head(u: &mut Unstructured<'_>, image: &mut Vec<u8>) -> Result<()> {
    let mut head: [u8; LINE] = image[..LINE].try_into().expect("a line");
    match u.int_in_range(0..=2)? {
        0 => image.truncate(u.int_in_range(0..=image.len() / LINE)? * LINE),
        1 => image[u.int_in_range(0..=LINE - 1)?] ^= u.arbitrary::<u8>()?,
        // With a checksum that holds, what it says is believed at first.
        _ => {
            head[u.int_in_range(8..=59)?] = u.arbitrary()?;
            seal::seal(&[], &mut head);
            put(image, 0, &head);
        }
    }
    Ok(())
}

/// Makes one change behind the head, many of which keep checksums valid: those reach the checks
/// behind them.
fn damage_body(u: &mut Unstructured<'_>, image: &mut [u8]) -> Result<()> {
    let body = LINE..image.len();
    let at = place(u, body.clone())?;
    match u.int_in_range(0..=5)? {
        0 => image[at] ^= 1 << u.int_in_range(0..=7)?,
        1 => image[at] = u.arbitrary()?,
        2 => put(image, at / 8 * 8, &u.arbitrary::<u64>()?.to_le_bytes()),
        3 => put(image, at / 8 * 8, &seal::seal_word(u.int_in_range(0..=99)?).to_le_bytes()),
        4 => {
            let (from, length) = (place(u, body)?, u.int_in_range(1..=5000)?);
            let piece = image[from..(from + length).min(image.len())].to_vec();
            put(image, at / LINE * LINE, &piece);
        }
        _ => {
            let entry = entry(u)?;
            put(image, at / LINE * LINE, &entry);
        }
    }
    Ok(())
}

/// A log entry that is whole and means anything.
fn entry(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let head = EntryHead {
        magic: ENTRY_MAGIC,
        kind: u.int_in_range(0..=4)?,
        version: ENTRY_VERSION,
        thread: u.int_in_range(0..=2)?,
        sequence: u.arbitrary()?,
        txid: u.int_in_range(0..=30)?,
        offset: if u.ratio(1, 4)? { u.arbitrary()? } else { u.int_in_range(0..=POOL_BYTES as u64)? },
        length: u.int_in_range(1..=4096)?,
        pool: if u.ratio(1, 8)? { u.arbitrary()? } else { 3 },
        participants: u.int_in_range(0..=3)?,
        ..EntryHead::default()
    };
    Ok(head.encode(&vec![u.arbitrary()?; head.length as usize]))
}

/// Overwrites bytes as far as there are some.
fn put(image: &mut [u8], at: usize, bytes: &[u8]) {
    let length = bytes.len().min(image.len() - at);
    image[at..at + length].copy_from_slice(&bytes[..length]);
}

/// Opens what the bytes describe: a memory of just these bytes, or an interrupted pool with
/// changes.
///
/// # Panics
/// If the opener breaks its promise.
pub fn pool_opener(data: &[u8]) {
    pool_opener_by(&|options, memory| options.open_in(memory), data);
}

/// What opens the pool in a memory.
type Opener<'a> = &'a dyn Fn(&Options, Box<dyn Memory>) -> std::result::Result<Pool, Error>;

/// The same with any opener.
///
/// # Panics
/// If that breaks the promise.
pub fn pool_opener_by(opener: Opener<'_>, data: &[u8]) {
    // Bytes that run out end the description early: every input is one.
    let _ = open(opener, &mut Unstructured::new(data));
}

fn open(opener: Opener<'_>, u: &mut Unstructured<'_>) -> Result<()> {
    let options = options(*u.choose(&Mechanism::ALL)?);
    if u.ratio(1, 8)? {
        judge(opener(&options, Box::new(VolatileMemory::from_bytes(u.bytes(u.len())?.to_vec()))));
        return Ok(());
    }
    let mut image = u.choose(images())?.clone();
    for _ in 0..u.int_in_range(1..=CHANGES)? {
        damage_body(u, &mut image)?;
    }
    if u.ratio(1, 4)? {
        damage_head(u, &mut image)?;
    }
    let memory = TestMemory::from_image(image.clone());
    let opened = opener(&options, Box::new(memory.clone()));
    if let Some(Problem::Foreign { .. } | Problem::Unfinished | Problem::Newer { .. } | Problem::Truncated { .. }) =
        judge(opened)
    {
        assert!(memory.current() == image, "a refusal changed the memory");
    }
    Ok(())
}

/// A pool must be sound and usable, an error must be one of the opener's; the problem of a refusal.
fn judge(opened: std::result::Result<Pool, Error>) -> Option<Problem> {
    match opened {
        Ok(pool) => {
            pool.check().expect("a pool that was opened is sound");
            used(&pool);
            pool.check().expect("a pool that was used is sound");
            None
        }
        Err(Error::Pool { location, problem }) => {
            assert_eq!(location, "in memory");
            assert!(!problem.to_string().is_empty());
            Some(problem)
        }
        Err(other) => panic!("not an error of opening: {other:?}"),
    }
}

/// Uses a pool, whose objects may hold anything.
fn used(pool: &Pool) {
    let root = pool.root().expect("the root can be read");
    let _ = pool.tx(|tx| tx.read_u64(root));
    let allocated = pool.tx(|tx| {
        let object = tx.alloc(1000)?;
        tx.write(object, &[1; 1000])?;
        tx.free(object)
    });
    match allocated {
        Ok(()) | Err(Error::Full { .. } | Error::TooLarge { .. }) => {}
        Err(other) => panic!("an intact pool refuses a transaction: {other:?}"),
    }
    for (object, _) in pool.objects().expect("the objects can be listed") {
        match pool.tx(|tx| tx.free(object)) {
            Ok(()) | Err(Error::TooLarge { .. }) => {}
            Err(other) => panic!("an allocated object cannot be freed: {other:?}"),
        }
    }
}
