//! Striped pools over memories behind links: power cuts at random moments, also in the recovery,
//! and faults that must be found.
//!
//! The program keeps some objects, each on a member of its own where there are enough, one of them
//! over several stripes, and changes a few in each transaction. The oracle: what recovers must be
//! the state after some transaction between the last that was acknowledged when the power failed
//! and the one that was running; under mechanisms with epochs nothing between two cuts.

use std::sync::{Arc, Mutex};

use nearpm_interface::media::CHUNK_BYTES;

use crate::heap::HeapLayout;
use crate::planted::{Fault, plant};
use crate::{Durability, Error, Mechanism, OffsetTx, Options, Pool};

#[path = "../../tests/common/links.rs"]
pub(crate) mod links;

use links::{Image, Links, Random};

/// Objects of the program.
const OBJECTS: usize = 9;
/// Bytes of the last one, which lies over two stripes or three.
const LARGE: u64 = 2_300_000;
/// Bytes in which an object holds its value, at each of its two ends.
const PIECE: usize = 100;

/// Value of each object: 0 before the first.
type Values = [u8; OBJECTS];

fn options(mechanism: Mechanism) -> Options {
    let ring_bytes = if mechanism == Mechanism::Checkpoint { 256 << 10 } else { 16 << 10 };
    Options::new().mechanism(mechanism).lanes(1).ring_bytes(ring_bytes).spare_pages(48).epoch_ops(4).id(7)
}

/// Two stripes and more for the heap, whatever the number of members.
fn bytes(members: usize) -> usize {
    let rounds = if members == 1 { 3 } else { 2usize.div_ceil(members - 1) };
    (rounds * (2 << 20) + (640 << 10)).next_multiple_of(4096)
}

fn slot(tx: &mut OffsetTx<'_>, object: usize) -> Result<u64, Error> {
    Ok(tx.root()? + 8 * object as u64)
}

/// The two places of an object that hold its value.
fn pieces(object: usize, at: u64, size: u64) -> [u64; 2] {
    // Of the large one: the end of a stripe and the beginning of the next, or near it.
    let inside = if object == OBJECTS - 1 { size - PIECE as u64 } else { size / 2 };
    [at, at + inside]
}

fn put(tx: &mut OffsetTx<'_>, object: usize, value: u8) -> Result<(), Error> {
    let slot = slot(tx, object)?;
    let at = tx.read_u64(slot)?;
    let size = tx.size_of(at)?;
    pieces(object, at, size).into_iter().try_for_each(|place| tx.write(place, &[value; PIECE]))
}

/// The same in a new object.
fn replace(tx: &mut OffsetTx<'_>, object: usize, value: u8, size: u64) -> Result<(), Error> {
    let slot = slot(tx, object)?;
    let old = tx.read_u64(slot)?;
    let new = tx.alloc(size)?;
    tx.write_u64(slot, new)?;
    tx.free(old)?;
    put(tx, object, value)
}

fn create(pool: &Pool) -> Result<(), Error> {
    pool.tx(|tx| {
        let root = tx.alloc_zeroed(8 * OBJECTS as u64)?;
        tx.set_root(root)?;
        // The large one first, while there is room in one piece.
        for object in (0..OBJECTS).rev() {
            let size = if object == OBJECTS - 1 { LARGE } else { 3 * 4096 };
            let at = tx.alloc(size)?;
            tx.write_u64(root + 8 * object as u64, at)?;
        }
        Ok(())
    })?;
    pool.tx(|tx| (0..OBJECTS).try_for_each(|object| put(tx, object, 0)))?;
    pool.persist()
}

fn contents(pool: &Pool) -> Result<Values, String> {
    pool.check().map_err(|e| e.to_string())?;
    let mut values = Values::default();
    let read = pool.tx(|tx| {
        for (object, value) in values.iter_mut().enumerate() {
            let slot = slot(tx, object)?;
            let at = tx.read_u64(slot)?;
            let size = tx.size_of(at)?;
            let [first, second] = pieces(object, at, size);
            let (first, second) = (tx.read_vec(first, PIECE)?, tx.read_vec(second, PIECE)?);
            *value = first[0];
            if first != [*value; PIECE] || second != first {
                return Err(Error::abort(format!("object {object} is torn: {first:?} and {second:?}")));
            }
        }
        Ok(())
    });
    read.map_err(|e| e.to_string())?;
    let objects = pool.objects().map_err(|e| e.to_string())?.len();
    if objects == OBJECTS + 1 { Ok(values) } else { Err(format!("{objects} objects")) }
}

/// What may be found after a cut.
#[derive(Default)]
struct Oracle {
    /// After each transaction.
    states: Vec<Values>,
    /// Index of the last that was acknowledged.
    acknowledged: usize,
}

impl Oracle {
    fn judge(&self, mechanism: Mechanism, found: &Values) -> Result<(), String> {
        let allowed = &self.states[self.acknowledged..];
        // Between two cuts of an epoch is nothing but what the running transaction may have cut.
        let between = mechanism.has_epochs() && allowed.len() > 2;
        let sound = allowed
            .iter()
            .enumerate()
            .any(|(n, state)| state == found && (!between || n == 0 || n + 2 >= allowed.len()));
        if sound {
            Ok(())
        } else {
            Err(format!("{found:?} is none of the {} states that may be: {allowed:?}", allowed.len()))
        }
    }
}

/// Opens what survived, and cuts that too where `depth` says so.
fn recover(mechanism: Mechanism, images: Vec<Image>, oracle: &Oracle, seed: u64, depth: u32) -> Result<(), String> {
    let links = Links::from_images(images, seed);
    let again: Arc<Mutex<Vec<Vec<Image>>>> = Arc::default();
    if depth > 0 {
        let (sink, mut random) = (again.clone(), Random(seed));
        links.probe(move |_, survive| {
            if random.below(3) == 0 {
                sink.lock().unwrap().push(survive(random.below(u64::MAX)));
            }
        });
    }
    let pool = options(mechanism).open_striped(links.memories()).map_err(|e| e.to_string())?;
    links.stop_probe();
    oracle.judge(mechanism, &contents(&pool)?)?;
    go_on(mechanism, &pool, &links, seed)?;
    let again = std::mem::take(&mut *again.lock().unwrap());
    again.into_iter().enumerate().try_for_each(|(n, images)| {
        let result = recover(mechanism, images, oracle, seed + n as u64, depth - 1);
        result.map_err(|e| format!("cut {n} of the recovery: {e}"))
    })
}

/// Changes one object, mostly of one member alone, and looks at what a further life makes of it.
fn go_on(mechanism: Mechanism, pool: &Pool, links: &Links, seed: u64) -> Result<(), String> {
    let mut expected = contents(pool)?;
    let object = (seed % OBJECTS as u64) as usize;
    expected[object] = 0xee;
    pool.tx(|tx| put(tx, object, 0xee)).and_then(|()| pool.persist()).map_err(|e| e.to_string())?;
    let next = Links::from_images(links.surviving(seed), seed);
    let pool = options(mechanism).open_striped(next.memories()).map_err(|e| e.to_string())?;
    let found = contents(&pool)?;
    if found == expected { Ok(()) } else { Err(format!("in the next life {found:?} instead of {expected:?}")) }
}

/// One run with power cuts at one in `one_in` events; the number of cuts, or the first that was not
/// survived.
fn run(members: usize, mechanism: Mechanism, durability: Durability, seed: u64, one_in: u64) -> Result<u64, String> {
    let links = Links::new(members, bytes(members), seed);
    let options = options(mechanism).durability(durability);
    let pool = options.create_striped(links.memories()).unwrap();
    create(&pool).unwrap();
    let oracle = Arc::new(Mutex::new(Oracle { states: vec![Values::default()], acknowledged: 0 }));
    let verdict = Arc::new(Mutex::new((0, Ok(()))));
    let (shared, given, mut random) = (oracle.clone(), verdict.clone(), Random(seed));
    links.probe(move |number, survive| {
        let mut verdict = given.lock().unwrap();
        if verdict.1.is_ok() && random.below(one_in) == 0 {
            verdict.0 += 1;
            let depth = u32::from(random.below(4) == 0);
            let result = recover(mechanism, survive(number), &shared.lock().unwrap(), number, depth);
            verdict.1 = result.map_err(|e| format!("event {number}: {e}"));
        }
    });
    let mut random = Random(seed + 1);
    for n in 0..36u8 {
        let changed: Vec<usize> = (0..1 + random.below(3)).map(|_| random.below(OBJECTS as u64) as usize).collect();
        let mut next = *oracle.lock().unwrap().states.last().unwrap();
        changed.iter().for_each(|&object| next[object] = n + 1);
        oracle.lock().unwrap().states.push(next);
        let size = 2 * PIECE as u64 + random.below(12_000);
        let kind = random.below(4);
        let done = pool.tx(|tx| {
            for &object in &changed {
                match kind {
                    0 if object < OBJECTS - 1 => replace(tx, object, n + 1, size)?,
                    _ => put(tx, object, n + 1)?,
                }
            }
            Ok(())
        });
        done.unwrap();
        if random.below(9) == 0 {
            pool.persist().unwrap();
        }
        let statistics = pool.statistics();
        if statistics.acknowledged == statistics.transactions {
            let mut oracle = oracle.lock().unwrap();
            oracle.acknowledged = oracle.states.len() - 1;
        }
        if verdict.lock().unwrap().1.is_err() {
            break;
        }
    }
    let closed = pool.close();
    links.stop_probe();
    let verdict = std::mem::replace(&mut *verdict.lock().unwrap(), (0, Ok(())));
    verdict.1?;
    closed.unwrap();
    let mut oracle = oracle.lock().unwrap();
    oracle.acknowledged = oracle.states.len() - 1;
    recover(mechanism, links.surviving(seed), &oracle, seed, 0).map_err(|e| format!("after the close: {e}"))?;
    Ok(verdict.0)
}

fn cuts(mechanism: Mechanism, durability: Durability) {
    let runs = if nearpm_tier::thorough() { 40 } else { 2 };
    for members in [1, 2, 4, 8] {
        let mut cuts = 0;
        for seed in 0..runs {
            let result = run(members, mechanism, durability, seed, 25);
            cuts +=
                result.unwrap_or_else(|e| panic!("{mechanism:?}, {durability:?}, {members} members, seed {seed}: {e}"));
        }
        assert!(cuts > 10 * runs, "{mechanism:?}, {members} members: only {cuts} cuts");
    }
}

/// What a transaction has logged of an object that it frees must not come over the next object
/// there, whose transaction has its log on another member.
#[test]
fn a_log_that_counts_still_does_not_come_over_a_new_object() {
    // Whole lines, of which none needs a log in a new object.
    const SIZE: u64 = 4096;
    let links = Links::new(2, bytes(2), 1);
    let pool = options(Mechanism::Redo).create_striped(links.memories()).unwrap();
    create(&pool).unwrap();
    let stripes = pool.members.stripes;
    let is_on_the_other = |&object: &u64| stripes.locate(object, SIZE).member == 1;
    // The tables that change are the first member's, the object is the other one's. It is the
    // lowest place for one of its size that is freed.
    let objects = pool.tx(|tx| (0..40).map(|_| tx.alloc(SIZE)).collect::<Result<Vec<_>, _>>()).unwrap();
    let object = objects.into_iter().find(is_on_the_other).expect("new chunks go to the members in turn");
    pool.tx(|tx| tx.write(object, &[1; SIZE as usize]).and_then(|()| tx.free(object))).unwrap();
    let new = pool.tx(|tx| {
        let new = tx.alloc(SIZE)?;
        tx.write(new, &[2; SIZE as usize])?;
        Ok(new)
    });
    assert_eq!(new.unwrap(), object, "it has the place of the one that was freed");
    let next = Links::from_images(links.surviving(1), 1);
    let pool = options(Mechanism::Redo).open_striped(next.memories()).unwrap();
    assert_eq!(pool.tx(|tx| tx.read_vec(object, SIZE as usize)).unwrap(), [2; SIZE as usize]);
}

/// All cards are to have work.
#[test]
fn new_chunks_go_to_the_members_in_turn() {
    let links = Links::new(3, bytes(2), 1);
    let pool = options(Mechanism::Undo).create_striped(links.memories()).unwrap();
    let (layout, stripe) = (HeapLayout::of(&pool.head), u64::from(pool.head.stripe));
    let member = |object: u64| {
        let chunk = ((object - layout.first) / CHUNK_BYTES) as u32;
        (0..).find(|&number| layout.chunks_of(number, stripe).contains(&chunk)).unwrap() % 3
    };
    let members = pool.tx(|tx| (0..9).map(|_| tx.alloc(CHUNK_BYTES).map(member)).collect::<Result<Vec<_>, _>>());
    assert_eq!(members.unwrap(), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

#[test]
fn undo_survives_cuts() {
    cuts(Mechanism::Undo, Durability::Durable);
    cuts(Mechanism::Undo, Durability::Asynchronous);
}

#[test]
fn redo_survives_cuts() {
    cuts(Mechanism::Redo, Durability::Durable);
    cuts(Mechanism::Redo, Durability::Asynchronous);
}

#[test]
fn checkpointing_survives_cuts() {
    cuts(Mechanism::Checkpoint, Durability::Durable);
}

#[test]
fn shadow_paging_survives_cuts() {
    cuts(Mechanism::Shadow, Durability::Durable);
}

/// More cuts than above: what a later commit has left behind is seen only where its link has kept
/// it and another link has lost the earlier one.
#[test]
fn asynchronous_commits_on_several_members_survive_cuts() {
    for (members, seed) in [2, 3].into_iter().flat_map(|members| (0..12).map(move |seed| (members, seed))) {
        let result = run(members, Mechanism::Undo, Durability::Asynchronous, seed, 8);
        let cuts = result.unwrap_or_else(|e| panic!("{members} members, seed {seed}: {e}"));
        assert!(cuts > 30, "{members} members, seed {seed}: only {cuts} cuts");
    }
}

/// A fault that nothing finds is one that the tests above would not find either.
#[test]
fn each_planted_fault_is_found() {
    for fault in Fault::ALL {
        let tries = (0..60u64).flat_map(|seed| {
            let mechanisms = [Mechanism::Undo, Mechanism::Redo];
            let durabilities = [Durability::Durable, Durability::Asynchronous];
            mechanisms.into_iter().flat_map(move |m| durabilities.map(|d| (m, d, seed)))
        });
        plant(Some(fault));
        let found = tries.enumerate().find_map(|(n, (mechanism, durability, seed))| {
            let caught = std::panic::catch_unwind(|| run(3, mechanism, durability, seed, 12));
            let error = match caught {
                Ok(result) => result.err()?,
                Err(_) => "a panic".to_owned(),
            };
            Some(format!("{mechanism:?}, {durability:?}, run {n}: {error}"))
        });
        plant(None);
        let found = found.unwrap_or_else(|| panic!("{fault:?} is not found"));
        println!("{fault:?}: {}", &found[..found.len().min(200)]);
    }
}
