//! Typed transactions on several threads.

#![allow(clippy::unit_arg, reason = "a closure that checks something and gives nothing ends so")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nearpm::direct::Mode;
use nearpm::memory::TestMemory;
use nearpm::prelude::*;

/// Miri runs a ten-thousandth as fast.
const ROUNDS: u64 = if cfg!(miri) { 3 } else { 300 };
const ACCOUNTS: usize = 6;
const BYTES: usize = if cfg!(miri) { 1 << 18 } else { 1 << 20 };

/// Halves of one word, so that neighbours are stored to by different threads.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Bank {
    locks: [PLock; ACCOUNTS],
    balances: [u32; ACCOUNTS],
    names: [PVec<u8>; ACCOUNTS],
}

fn pool(mode: Mode) -> (TestMemory, DirectPool, Ptr<Bank>) {
    let memory = TestMemory::new(BYTES);
    let options = Options::new().mode(mode).id(5);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &options).unwrap();
    let bank = pool
        .tx(|tx| {
            let bank = tx.root_or_zeroed::<Bank>()?;
            tx.set(bank.balances(), [1000; ACCOUNTS])?;
            Ok(bank)
        })
        .unwrap();
    (memory, pool, bank)
}

/// Moves money, and notes it in texts of both accounts.
fn transfer(tx: &mut Tx<'_>, bank: Ptr<Bank>, from: usize, to: usize) -> Result<(), Error> {
    tx.update(bank.balances().at(from), |balance| balance - 1)?;
    tx.update(bank.balances().at(to), |balance| balance + 1)?;
    for account in [from, to] {
        let name = bank.names().at(account);
        if name.len(tx)? > 40 { name.clear(tx)? } else { name.push(tx, account as u8)? }
    }
    Ok(())
}

fn check(from: &impl Load, bank: Ptr<Bank>) -> Result<(), Error> {
    assert_eq!(from.get(bank.balances())?.iter().sum::<u32>(), 1000 * ACCOUNTS as u32);
    for (account, name) in bank.names().each().enumerate() {
        assert!(name.to_vec(from)?.iter().all(|&byte| usize::from(byte) == account));
    }
    Ok(())
}

fn several_threads(mode: Mode) {
    let (memory, pool, bank) = pool(mode);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..ROUNDS as usize {
                    let (from, to) = ((thread + round) % ACCOUNTS, (thread * 2 + round * 5 + 1) % ACCOUNTS);
                    if from == to {
                        continue;
                    }
                    // In either order: the library takes them in its own.
                    let locks = [bank.locks().at(from), bank.locks().at(to)];
                    let done = match round % 5 {
                        0 => pool.tx(|tx| transfer(tx, bank, from, to)),
                        1 => {
                            let aborted = pool.locked(&locks).tx(|tx| {
                                transfer(tx, bank, from, to)?;
                                Err::<(), _>(Error::abort("no"))
                            });
                            assert!(matches!(aborted, Err(Error::Aborted(_))));
                            Ok(())
                        }
                        2 => pool.read(|from| check(from, bank)),
                        _ => pool.locked(&locks).tx(|tx| transfer(tx, bank, from, to)),
                    };
                    done.unwrap();
                }
            });
        }
    });
    pool.read(|from| check(from, bank)).unwrap();
    std::mem::forget(pool);
    let options = Options::new().mode(mode).id(5);
    let pool = DirectPool::open_in(Box::new(TestMemory::from_image(memory.durable())), &options).unwrap();
    pool.read(|from| check(from, bank)).unwrap();
}

#[test]
fn nothing_is_lost_between_threads_in_a_working_copy() {
    several_threads(Mode::WorkingCopy);
}

#[test]
fn nothing_is_lost_between_threads_in_place() {
    several_threads(Mode::InPlace);
}

/// Two threads that wait for each other while both are inside of what `enter` gives.
fn meet(enter: impl Fn(usize, &mut dyn FnMut()) + Sync) {
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (enter, barrier) = (&enter, &barrier);
            scope.spawn(move || {
                enter(thread, &mut || {
                    barrier.wait();
                });
            });
        }
    });
}

#[test]
fn readers_run_beside_each_other_and_so_do_holders_of_different_locks() {
    let (_, pool, bank) = pool(Mode::WorkingCopy);
    meet(|_, meet| pool.read(|_| Ok(meet())).unwrap());
    meet(|thread, meet| pool.locked(&[bank.locks().at(thread)]).tx(|_| Ok(meet())).unwrap());
    meet(|_, meet| pool.locked(&[bank.locks().at(0)]).read(|_| Ok(meet())).unwrap());
    meet(|thread, meet| {
        let locks = [bank.locks().at(thread)];
        let locked = pool.locked(&locks);
        if thread == 0 { locked.read(|_| Ok(meet())).unwrap() } else { locked.tx(|_| Ok(meet())).unwrap() }
    });
}

/// Whoever comes in by `enter` finds that `hold`, which runs what it is given inside, has ended.
fn keeps_out(hold: impl Fn(&dyn Fn()) + Sync, enter: &(dyn Fn() -> Result<(), Error> + Sync)) {
    let left = AtomicBool::new(false);
    let begun = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            hold(&|| {
                begun.wait();
                std::thread::sleep(Duration::from_millis(20));
                left.store(true, Ordering::SeqCst);
            });
        });
        begun.wait();
        enter().unwrap();
        assert!(left.load(Ordering::SeqCst));
    });
}

#[test]
fn a_writer_keeps_all_others_out() {
    let (_, pool, bank) = pool(Mode::WorkingCopy);
    let locks = [bank.locks().at(0)];
    let enter: [&(dyn Fn() -> Result<(), Error> + Sync); 4] =
        [&|| pool.tx(|_| Ok(())), &|| pool.read(|_| Ok(())), &|| pool.locked(&locks).tx(|_| Ok(())), &|| {
            pool.locked(&locks).read(|_| Ok(()))
        }];
    for enter in enter {
        keeps_out(|inside| pool.tx(|_| Ok(inside())).unwrap(), enter);
    }
}

#[test]
fn a_holder_of_a_lock_keeps_others_out_who_want_it() {
    let (_, pool, bank) = pool(Mode::WorkingCopy);
    let locks = [bank.locks().at(0)];
    let alone = || pool.locked(&locks).tx(|_| Ok(()));
    let shared = || pool.locked(&locks).read(|_| Ok(()));
    keeps_out(|inside| pool.locked(&locks).tx(|_| Ok(inside())).unwrap(), &alone);
    keeps_out(|inside| pool.locked(&locks).tx(|_| Ok(inside())).unwrap(), &shared);
    keeps_out(|inside| pool.locked(&locks).read(|_| Ok(inside())).unwrap(), &alone);
}
