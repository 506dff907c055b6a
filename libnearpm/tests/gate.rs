//! The gate, the locks and the copies of pages of a pool in every order of events that their memory
//! model allows (loom), up to a number of preemptions.
//!
//! The files are those of the library, with loom's atomics and locks in the place of the system's.

#[path = "../src/typed/gate.rs"]
mod gate;
#[path = "../src/typed/locks.rs"]
mod locks;
#[path = "../src/typed/page_copies.rs"]
#[allow(dead_code, reason = "the library's own; the programs here use a part of it")]
mod page_copies;

/// What the library takes from the standard library.
mod sync {
    pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
    /// Looking again is another order of events, which loom tries anyway.
    pub const SPINS: u32 = 0;
    /// Fewer, as loom watches each.
    pub const TABLE: usize = 2;
}

use gate::{Gate, Role};
use locks::{Hold, LockTable};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use page_copies::PageCopies;

/// Something that the gate protects: loom reports an access that another one does not happen
/// before.
struct Guarded {
    gate: Gate,
    value: UnsafeCell<u64>,
}

impl Guarded {
    fn enter(&self, role: Role) {
        self.gate.enter(role);
        match role {
            // SAFETY: loom checks that nobody else accesses the value meanwhile, which is what is
            // tested.
            Role::Writer => self.value.with_mut(|value| unsafe { *value += 1 }),
            Role::Reader => self.value.with(|_| ()),
            // Holders keep out of each other's way by their locks: those of the gate are tested by
            // their not meeting the others.
            Role::Holder => {}
        }
        self.gate.leave();
    }
}

/// Runs a program in every order of events with so many preemptions, and prints how many there are.
fn explore(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    // Of the standard library: loom has no business with it.
    let orders = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = orders.clone();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        body();
    });
    let orders = orders.load(std::sync::atomic::Ordering::Relaxed);
    println!(r#"{{"counts":{{"programs":1,"orders of events":{orders},"violations":0}}}}"#);
}

/// Threads enter in these roles, one each but the last, which is this one.
fn threads(roles: &'static [Role], times: usize, preemptions: usize) {
    explore(preemptions, move || {
        let guarded = Arc::new(Guarded { gate: Gate::default(), value: UnsafeCell::new(0) });
        let (here, others) = roles.split_last().expect("at least one thread");
        let others: Vec<_> = others
            .iter()
            .map(|&role| {
                let guarded = guarded.clone();
                thread::spawn(move || guarded.enter(role))
            })
            .collect();
        (0..times).for_each(|_| guarded.enter(*here));
        others.into_iter().for_each(|other| other.join().expect("no thread panics"));
        let writers = roles[..roles.len() - 1].iter().filter(|&&role| role == Role::Writer).count();
        let here = if *here == Role::Writer { times } else { 0 };
        // Nobody is inside, so that a writer enters at once.
        guarded.gate.enter(Role::Writer);
        // SAFETY: as above.
        assert_eq!(guarded.value.with(|value| unsafe { *value }), (writers + here) as u64);
    });
}

#[test]
fn writers_are_alone() {
    threads(&[Role::Writer, Role::Writer, Role::Writer], 1, 3);
    threads(&[Role::Writer, Role::Writer], 2, 4);
}

#[test]
fn readers_and_writers_take_turns() {
    threads(&[Role::Reader, Role::Writer, Role::Reader], 1, 3);
    threads(&[Role::Writer, Role::Reader], 2, 4);
    threads(&[Role::Reader, Role::Reader, Role::Writer], 1, 3);
}

#[test]
fn all_roles_get_in() {
    threads(&[Role::Holder, Role::Reader, Role::Writer], 1, 3);
    threads(&[Role::Writer, Role::Holder, Role::Holder], 1, 3);
}

#[test]
fn holders_and_readers_are_never_inside_together() {
    explore(3, || {
        let guarded = Arc::new(Guarded { gate: Gate::default(), value: UnsafeCell::new(0) });
        let other = guarded.clone();
        let holder = thread::spawn(move || {
            other.gate.enter(Role::Holder);
            // SAFETY: the only holder; loom checks that no reader is inside.
            other.value.with_mut(|value| unsafe { *value += 1 });
            other.gate.leave();
        });
        guarded.enter(Role::Reader);
        holder.join().expect("no thread panics");
    });
}

/// Threads take locks, two at a time in whatever order, without waiting for each other in a circle.
#[test]
fn locks_exclude_and_never_wait_in_a_circle() {
    explore(3, || {
        let table = Arc::new((LockTable::default(), [UnsafeCell::new(0), UnsafeCell::new(0)]));
        let raise = |table: &(LockTable, [UnsafeCell<u64>; 2]), places: [u64; 2]| {
            let _held = table.0.take_all(places.map(|place| 64 * place).to_vec(), Hold::Alone);
            // SAFETY: loom checks that nobody else has the locks of these.
            places.iter().for_each(|&place| table.1[place as usize].with_mut(|value| unsafe { *value += 1 }));
        };
        let others: Vec<_> = [[0, 1], [1, 0]]
            .map(|places| {
                let table = table.clone();
                thread::spawn(move || raise(&table, places))
            })
            .into();
        let reader = table.0.take_all(vec![0, 64, 0], Hold::Shared);
        table.1[0].with(|_| ());
        drop(reader);
        others.into_iter().for_each(|other| other.join().expect("no thread panics"));
        // SAFETY: the other threads have ended.
        assert_eq!([0, 1].map(|at| table.1[at].with(|value| unsafe { *value })), [2, 2]);
    });
}

/// Both words of a page as a snapshot sees them.
const SEEN: [u8; 16] = [7, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];

/// Writers that change words of one page, each the one of its number, and a reader of a snapshot
/// that was taken before.
fn writers_beside_a_snapshot(writers: usize, preemptions: usize) {
    explore(preemptions, move || {
        let page =
            Arc::new(([AtomicU64::new(7), AtomicU64::new(7)], PageCopies::new(0..page_copies::PAGE as u64).unwrap()));
        let load = |words: &[AtomicU64; 2], offset: u64, to: &mut [u8]| {
            for (at, word) in to.chunks_exact_mut(8).enumerate() {
                let value = words.get(offset as usize / 8 + at).map_or(0, |word| word.load(Ordering::Relaxed));
                word.copy_from_slice(&value.to_le_bytes());
            }
        };
        // Of two accesses to one word by two threads loom tries both orders unless the one that
        // comes second has loaded the word itself in between: where nobody else has changed the
        // page, its writer need not load it to know what it had.
        let alone = writers == 1;
        let writers: Vec<_> = (0..writers)
            .map(|writer| {
                let page = page.clone();
                thread::spawn(move || {
                    let offset = 8 * writer as u64;
                    page.1.keep(&(offset..offset + 8), |offset, to| match alone {
                        true => to[..16].copy_from_slice(&SEEN),
                        false => load(&page.0, offset, &mut to[..16]),
                    });
                    page.0[writer].store(8, Ordering::Relaxed);
                })
            })
            .collect();
        let mut seen = [0; 16];
        page.1.read(0, &mut seen, |offset, to| load(&page.0, offset, to)).expect("there is memory");
        assert_eq!(seen, SEEN);
        writers.into_iter().for_each(|writer| writer.join().expect("no thread panics"));
        assert_eq!(page.1.count(), 1, "one page, once");
    });
}

#[test]
fn a_snapshot_sees_no_store_that_came_after_it() {
    writers_beside_a_snapshot(1, 4);
    writers_beside_a_snapshot(2, 3);
}
