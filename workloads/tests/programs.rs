//! The nine programs, with both inputs, under every mechanism, against their models; then with a
//! power cut at many moments.

mod cuts;

use cuts::{Survivor, survivors};
use nearpm::memory::{TestMemory, VolatileMemory};
use nearpm::{Durability, Mechanism, Options, Pool};
use nearpm_workloads::check;
use nearpm_workloads::programs::ycsb::Mix;
use nearpm_workloads::programs::{Inputs, Program, Setup, Workload};
use nearpm_workloads::run::{self, Progress};
use nearpm_workloads::store::{Bare, Store};

const RING_BYTES: u32 = 256 << 10;

fn setup(inputs: Inputs, mix: Mix, seed: u64, count: usize) -> Setup {
    Setup { inputs, seed, count, share: 1000, mix }
}

fn options(mechanism: Mechanism) -> Options {
    Options::new().mechanism(mechanism).lanes(1).ring_bytes(RING_BYTES).epoch_ops(0)
}

fn pool_bytes(program: &dyn Workload) -> usize {
    (2 * program.bytes() + 2 * u64::from(RING_BYTES)).next_multiple_of(1 << 20) as usize
}

fn fresh(memory: &TestMemory, mechanism: Mechanism, program: &dyn Workload) -> Pool {
    let pool = options(mechanism).create_in(Box::new(memory.clone())).expect("the pool fits");
    program.create(&pool).expect("the program's data fits");
    pool.cut().expect("an epoch ends");
    pool
}

fn run_all(pool: &Pool, program: &dyn Workload, progress: &Progress) {
    let root = pool.root().unwrap();
    let all = 0..program.count();
    run::transactions(pool, all, 16, progress, |_| {}, |tx, n| program.apply(tx, root, n)).expect("it fits");
}

/// Every combination that differs in what a program does.
fn cases(seed: u64, count: usize) -> Vec<(String, Box<dyn Workload>)> {
    let mut cases = Vec::new();
    for program in Program::ALL {
        let serves = matches!(program, Program::Memcached | Program::Redis);
        for mix in if serves { &Mix::ALL[..] } else { &[Mix::W1] } {
            for inputs in if serves { &[Inputs::Corrected][..] } else { &Inputs::ALL[..] } {
                let what = format!("{} {} {}", program.name(), inputs.name(), mix.name());
                cases.push((what, program.make(&setup(*inputs, *mix, seed, count))));
            }
        }
    }
    cases
}

#[test]
fn programs_do_what_their_models_say() {
    for (what, program) in cases(11, 120) {
        for mechanism in Mechanism::ALL {
            let pool = fresh(&TestMemory::new(pool_bytes(&*program)), mechanism, &*program);
            let found = check::rows(&pool, &*program).unwrap_or_else(|e| panic!("{what}, {mechanism:?}: {e}"));
            assert!(found.unwrap() == program.initial(), "{what}, {mechanism:?}: at the beginning");
            run_all(&pool, &*program, &Progress::default());
            let found = check::rows(&pool, &*program).unwrap_or_else(|e| panic!("{what}, {mechanism:?}: {e}"));
            assert!(found.unwrap() == program.after(program.count()), "{what}, {mechanism:?}: at the end");
        }
    }
}

#[test]
fn programs_do_the_same_on_bare_memory() {
    for (what, program) in cases(12, 150) {
        let bare = Bare::new(VolatileMemory::new(pool_bytes(&*program)));
        program.create(&bare).unwrap();
        let mut found = None;
        for n in 0..program.count() {
            bare.transaction(&mut |tx| {
                let root = tx.root()?;
                program.apply(tx, root, n)
            })
            .unwrap();
        }
        bare.transaction(&mut |tx| {
            let root = tx.root()?;
            found = Some(program.contents(tx, root));
            Ok(())
        })
        .unwrap();
        let found = found.unwrap().unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(found == program.after(program.count()), "{what}");
    }
}

#[test]
fn inputs_differ_where_the_released_code_differs_from_the_text() {
    for program in Program::ALL {
        let make = |inputs| program.make(&setup(inputs, Mix::W1, 3, 50)).after(50);
        let same = make(Inputs::Corrected) == make(Inputs::Released);
        let should = matches!(program, Program::Memcached | Program::Redis | Program::Pmemkv);
        assert_eq!(same, should, "{}", program.name());
    }
}

fn survives_cuts(what: &str, mechanism: Mechanism, seed: u64, program: &dyn Workload, cuts: u64) {
    let prepare = |memory: &TestMemory| fresh(memory, mechanism, program);
    let run = |pool: &Pool, progress: &Progress| run_all(pool, program, progress);
    let made = survivors(seed, cuts, pool_bytes(program), prepare, run);
    for (i, Survivor { image, acknowledged, started }) in made.into_iter().enumerate() {
        let pool = options(mechanism)
            .open_in(Box::new(TestMemory::from_image(image)))
            .unwrap_or_else(|e| panic!("{what} under {mechanism:?}, cut {i}: {e}"));
        check::prefix_of_program(&pool, program, acknowledged, started, Durability::Durable)
            .unwrap_or_else(|e| panic!("{what} under {mechanism:?}, seed {seed}, cut {i}: {e}"));
    }
}

#[test]
fn power_cuts_leave_a_prefix_of_the_transactions() {
    let thorough = nearpm_tier::thorough();
    for seed in 0..if thorough { 12 } else { 1 } {
        for (what, program) in cases(seed, 60) {
            for mechanism in Mechanism::ALL {
                survives_cuts(&what, mechanism, seed, &*program, if thorough { 60 } else { 12 });
            }
        }
    }
}

/// The check finds what it is there for.
#[test]
fn a_state_between_two_cuts_is_refused() {
    for (what, program) in cases(5, 60) {
        let pool = fresh(&TestMemory::new(pool_bytes(&*program)), Mechanism::Undo, &*program);
        let root = pool.root().unwrap();
        let half = 0..30;
        run::transactions(&pool, half, 16, &Progress::default(), |_| {}, |tx, n| program.apply(tx, root, n)).unwrap();
        let judge =
            |acknowledged, started, commits| check::prefix_of_program(&pool, &*program, acknowledged, started, commits);
        // Reads leave the state as it was, so that an earlier number may be given.
        let kept = judge(30, 30, Durability::Durable).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(kept, 30);
        assert!(judge(20, 60, Durability::Asynchronous).is_ok(), "{what}");
        if program.after(20) != program.after(30) && program.after(30) != program.after(58) {
            assert!(judge(20, 60, Durability::Durable).is_err(), "{what}");
        }
        if program.after(32) != program.after(30) {
            assert!(judge(32, 40, Durability::Asynchronous).is_err(), "{what}: what was acknowledged is lost");
        }
    }
}
