//! A child of `fork` has the pools of its parent before it, and can change nothing of them.

#![cfg(target_os = "linux")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nearpm::direct::{DirectPool, Mode};
use nearpm::{Error, Options, Pool, Problem, Survives, cards};
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::{Card, CardOptions};

/// Held by each test: another one's threads may hold locks of the system's library at a fork, for
/// ever in the child.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a check in a child, which ends without running anything of the test harness.
fn in_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child is one thread, and what it calls waits for no lock that another thread of
    // the parent may hold.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(i32::from(check())),
            child => {
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 1
            }
        }
    }
}

fn is_refused<T>(done: Result<T, Error>) -> bool {
    matches!(done, Err(Error::Forked))
}

#[test]
fn a_child_changes_nothing_of_a_direct_pool() {
    let _turn = turn();
    for mode in [Mode::WorkingCopy, Mode::InPlace] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool");
        let location = path.to_str().unwrap();
        let options = Options::new().mode(mode).survives(Survives::ProcessCrash);
        let pool = DirectPool::create(location, 4 << 20, &options).unwrap();
        let mut open = pool.begin().unwrap();
        let object = open.alloc(&pool, 64).unwrap().offset;
        open.set_root(object);
        open.commit(&pool).unwrap();
        let mut begun = pool.begin().unwrap();
        begun.add(&pool, object..object + 8).unwrap();
        let before = std::fs::read(&path).unwrap();
        // The child's own copies of all of these; the parent goes on with what it had.
        let mut parts = Some((pool, begun));
        assert!(in_child(|| {
            let (pool, mut begun) = parts.take().unwrap();
            is_refused(pool.begin())
                && is_refused(pool.reserve(64))
                && is_refused(pool.persist(std::slice::from_ref(&(object..object + 8))))
                && is_refused(pool.wait_durable())
                && is_refused(pool.tx(|_| Ok(())))
                && is_refused(pool.read(|_| Ok(())))
                && is_refused(pool.locked(&[]).tx(|_| Ok(())))
                && is_refused(begun.add(&pool, object + 8..object + 16))
                && is_refused(begun.commit(&pool))
                && pool.close().is_ok()
        }));
        assert_eq!(std::fs::read(&path).unwrap(), before, "{mode:?}");
        let (pool, begun) = parts.take().unwrap();
        // SAFETY: the transaction has added these bytes of an object of the pool.
        unsafe { pool.base().add(object as usize).write(7) };
        begun.commit(&pool).unwrap();
        pool.close().unwrap();
        let pool = DirectPool::open(location, &options).unwrap();
        // SAFETY: the object is there.
        assert_eq!(unsafe { pool.base().add(object as usize).read() }, 7);
    }
}

#[test]
fn a_child_changes_nothing_of_a_pool() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let location = path.to_str().unwrap();
    let options = Options::new().survives(Survives::ProcessCrash);
    let pool = options.create(location, 4 << 20).unwrap();
    let object = pool.tx(|tx| tx.alloc(64)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let mut parent = Some(pool);
    assert!(in_child(|| {
        let pool: Pool = parent.take().unwrap();
        is_refused(pool.tx(|tx| tx.write(object, &[1; 8])))
            && is_refused(pool.persist())
            && is_refused(pool.objects())
            && pool.close().is_ok()
    }));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let pool = parent.take().unwrap();
    pool.tx(|tx| tx.write(object, &[2; 8])).unwrap();
    pool.close().unwrap();
}

/// A pool on a card stays open, and claimed, when a child closes what it has of it.
#[test]
fn a_child_gives_no_pool_of_a_card_back() {
    let _turn = turn();
    let mock = MockCard::new(MockOptions { pm_bytes: 4 << 20, ..MockOptions::default() });
    let card = Arc::new(Card::open(Arc::new(mock), CardOptions::default()).unwrap());
    let name = cards::Registered::new(card);
    let (location, options) = (name.pool("p"), Options::new());
    let mut parent = Some(DirectPool::create(&location, 512 << 10, &options).unwrap());
    assert!(in_child(|| {
        let closed = parent.take().unwrap().close().is_ok();
        let again = DirectPool::open(&location, &options).map(drop);
        closed && matches!(again, Err(Error::Pool { problem: Problem::InUse { .. }, .. }))
    }));
    parent.take().unwrap().close().unwrap();
    DirectPool::open(&location, &options).unwrap().close().unwrap();
}
