//! A medium that refuses, and threads that meet in the middle of an append.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::super::slot::move_to;
use super::store::{Model, contents, create, empty, options, peek, poke};
use super::{Allowed, DirectPool, Mode, verify};
use crate::memory::{Memory, TestMemory};
use crate::{Durability, Error};

type Action = Box<dyn FnOnce() + Send>;

/// Memory with a hook. Clones share it.
#[derive(Clone)]
struct Seam {
    memory: TestMemory,
    /// Fences that succeed before one fails; `u64::MAX`: none fails.
    good_fences: Arc<AtomicU64>,
    /// Fences so far.
    fences: Arc<AtomicU64>,
    /// Done once, just before the next store.
    before_store: Arc<Mutex<Option<Action>>>,
    /// Something could not be read.
    lost: Arc<AtomicBool>,
}

impl Seam {
    fn new(memory: TestMemory) -> Seam {
        let good_fences = Arc::new(AtomicU64::new(u64::MAX));
        Seam { memory, good_fences, fences: Arc::default(), before_store: Arc::default(), lost: Arc::default() }
    }
}

impl Memory for Seam {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    fn load(&self, offset: u64, data: &mut [u8]) {
        self.memory.load(offset, data);
    }

    fn store(&self, offset: u64, data: &[u8]) {
        let action = self.before_store.lock().unwrap().take();
        action.into_iter().for_each(|action| action());
        self.memory.store(offset, data);
    }

    fn write_back(&self, offset: u64, bytes: u64) {
        self.memory.write_back(offset, bytes);
    }

    fn fence(&self) -> Result<(), Error> {
        let left = self.good_fences.load(Ordering::SeqCst);
        self.good_fences.store(left.wrapping_sub(u64::from(left != u64::MAX)), Ordering::SeqCst);
        if left == 0 {
            // Later ones would succeed again.
            self.good_fences.store(u64::MAX, Ordering::SeqCst);
            return Err(by_order("fence the memory of a test"));
        }
        let done = self.memory.fence();
        self.fences.fetch_add(1, Ordering::SeqCst);
        done
    }

    fn invalidate(&self, offset: u64, bytes: u64) {
        self.memory.invalidate(offset, bytes);
    }

    fn drains_for_all(&self) -> bool {
        self.memory.drains_for_all()
    }

    fn address(&self) -> Option<*mut u8> {
        self.memory.address()
    }

    fn alive(&self) -> Result<(), Error> {
        if self.lost.load(Ordering::SeqCst) { Err(by_order("read the memory of a test")) } else { Ok(()) }
    }
}

fn by_order(what: &str) -> Error {
    Error::system(what, std::io::Error::other("by order of the test"))
}

/// Commits one changed scratch byte of the store.
fn scribble(pool: &DirectPool, model: &mut Model, at: usize, value: u8) {
    let offset = pool.root() + super::store::STORE - 256 + at as u64;
    let mut tx = pool.begin().unwrap();
    tx.add(pool, offset..offset + 1).unwrap();
    poke(pool, offset, &[value]);
    tx.commit(pool).unwrap();
    model.1[at] = value;
}

#[test]
fn nothing_follows_a_truncation_that_failed() {
    // At its first fence, and at its second.
    for good in 0..2 {
        let seam = Seam::new(TestMemory::new(1 << 19));
        let pool = DirectPool::create_in(Box::new(seam.clone()), &options(Mode::WorkingCopy)).unwrap();
        let mut tx = pool.begin().unwrap();
        let root = tx.alloc(&pool, super::store::STORE).unwrap().offset;
        poke(&pool, root, &[0; super::store::STORE as usize]);
        tx.set_root(root);
        tx.commit(&pool).unwrap();
        let mut model = empty();
        (0..40).for_each(|at| scribble(&pool, &mut model, at, at as u8 + 1));
        seam.good_fences.store(good, Ordering::SeqCst);
        let failed = pool.truncation().and_then(|turn| pool.truncate_beside(&turn));
        assert!(matches!(failed, Err(Error::System { .. })), "{failed:?}");
        assert!(matches!(pool.truncation().map(drop), Err(Error::Poisoned)));
        assert!(matches!(pool.wait_durable(), Err(Error::Poisoned)));
        for bytes in [8, 1 << 17] {
            let range = pool.heap().start..pool.heap().start + bytes;
            assert!(matches!(pool.persist(&[range]), Err(Error::Poisoned)), "{bytes} bytes");
        }
        assert!(matches!(pool.begin().map(drop), Err(Error::Poisoned)));
        pool.close().unwrap();
        for draw in 0..16 {
            verify(seam.memory.surviving(draw), Mode::WorkingCopy, &Allowed(vec![model.clone()])).unwrap();
        }
    }
}

/// A persist is acknowledged while another thread's asynchronous commit, with a lower number than
/// one that has ended, is on its way into the log: the record of the persist counts only when that
/// commit is there.
#[test]
fn a_persist_waits_for_commits_on_their_way() {
    let seam = Seam::new(TestMemory::new(1 << 20).one_domain());
    let asynchronous = options(Mode::WorkingCopy).durability(Durability::Asynchronous);
    drop(create(seam.memory.clone(), &asynchronous, 1).unwrap());
    let pool = Arc::new(DirectPool::open_in(Box::new(seam.clone()), &asynchronous).unwrap());
    let mut model = empty();
    // Each has a segment, so that nobody needs the locks of all.
    for thread in [2, 1, 0] {
        move_to(thread);
        scribble(&pool, &mut model, thread, 1);
    }
    pool.wait_durable().unwrap();
    let persisted = pool.root() + super::store::STORE - 8;
    let third = Arc::new(Mutex::new(None));
    let (inside, handle, fences) = (pool.clone(), third.clone(), seam.fences.clone());
    let meet = move || {
        let (second, before) = (inside.clone(), fences.load(Ordering::SeqCst));
        let commit = move || {
            move_to(1);
            scribble(&second, &mut empty(), 1, 2);
        };
        std::thread::spawn(commit).join().unwrap();
        let persist = move || {
            move_to(2);
            poke(&inside, persisted, &[7; 8]);
            inside.persist(std::slice::from_ref(&(persisted..persisted + 8))).unwrap();
        };
        *handle.lock().unwrap() = Some(std::thread::spawn(persist));
        // Until its record is durable.
        while fences.load(Ordering::SeqCst) == before {
            std::thread::yield_now();
        }
    };
    *seam.before_store.lock().unwrap() = Some(Box::new(meet));
    scribble(&pool, &mut model, 0, 2);
    third.lock().unwrap().take().unwrap().join().unwrap();
    let survived = DirectPool::open_in(Box::new(TestMemory::from_image(seam.memory.durable())), &asynchronous).unwrap();
    assert_eq!(peek(&survived, persisted..persisted + 8), [7; 8]);
    assert!(contents(&survived, 1).is_ok());
}

/// The root, of 128 zeros.
fn zeroed_root(pool: &DirectPool) -> u64 {
    let mut tx = pool.begin().unwrap();
    let root = tx.alloc(pool, 128).unwrap().offset;
    poke(pool, root, &[0; 128]);
    tx.set_root(root);
    tx.commit(pool).unwrap();
    root
}

/// In place a transaction of a pool that has failed is taken back by the next open: the old bytes
/// that it has at hand are not stored.
#[test]
fn an_abort_in_place_leaves_a_pool_that_has_failed_to_its_log() {
    for loses in [false, true] {
        let seam = Seam::new(TestMemory::new(1 << 19));
        let pool = DirectPool::create_in(Box::new(seam.clone()), &options(Mode::InPlace)).unwrap();
        let root = zeroed_root(&pool);
        let [mut first, mut second] = [pool.begin().unwrap(), pool.begin().unwrap()];
        for (tx, at, value) in [(&mut first, root, 1), (&mut second, root + 64, 2)] {
            tx.add(&pool, at..at + 8).unwrap();
            poke(&pool, at, &[value; 8]);
        }
        if loses {
            seam.lost.store(true, Ordering::SeqCst);
            pool.poison(by_order("read"));
        } else {
            seam.good_fences.store(0, Ordering::SeqCst);
            first.commit(&pool).unwrap_err();
        }
        assert!(matches!(second.abort(&pool), Err(Error::Poisoned)));
        assert_eq!(peek(&pool, root + 64..root + 72), [2; 8], "nothing was stored");
        drop(pool);
        let next =
            DirectPool::open_in(Box::new(TestMemory::from_image(seam.memory.current())), &options(Mode::InPlace));
        assert_eq!(peek(&next.unwrap(), root..root + 128), [0; 128], "both are taken back");
    }
}

/// A recovery that could not read all of the log changes nothing: what is missing looked like its
/// end.
#[test]
fn a_recovery_that_has_lost_something_stores_nothing() {
    for mode in [Mode::WorkingCopy, Mode::InPlace] {
        let memory = TestMemory::new(1 << 19);
        let pool = DirectPool::create_in(Box::new(memory.clone()), &options(mode)).unwrap();
        let root = zeroed_root(&pool);
        let mut open = pool.begin().unwrap();
        open.add(&pool, root..root + 8).unwrap();
        poke(&pool, root, &[1; 8]);
        std::mem::forget((open, pool));
        let seam = Seam::new(TestMemory::from_image(memory.current()));
        seam.lost.store(true, Ordering::SeqCst);
        let refused = DirectPool::open_in(Box::new(seam.clone()), &options(mode)).map(drop);
        assert!(matches!(refused, Err(Error::System { .. })), "{refused:?}");
        assert!(seam.memory.current() == memory.current(), "{mode:?}: something was stored");
        seam.lost.store(false, Ordering::SeqCst);
        let pool = DirectPool::open_in(Box::new(seam), &options(mode)).unwrap();
        assert_eq!(peek(&pool, root..root + 128), [0; 128]);
    }
}
