//! Several cores that take turns: each meets link and card at its own time, whatever the others
//! wait for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use crate::flat::{Flat, IDLE, Latency};
use nearpm_driver::pci::{Caching, Mapping, PciFunction};
use nearpm_interface::geometry::{COMMAND_BAR, PM_BAR};
use nearpm_sim::core::Medium;
use nearpm_sim::host::{Cut, Parameters};
use nearpm_sim::machine::{Machine, PowerCut, until_power_cut};

const BYTES: usize = 1 << 20;
/// Bytes that a core has for itself.
const SHARE: u64 = BYTES as u64 / 16;

fn machine() -> Machine {
    machine_of(IDLE)
}

fn machine_of(latency: Latency) -> Machine {
    let power = move |medium| Flat::boxed(medium, latency);
    let machine = Machine::new(Parameters::default(), &power, Medium::blank(BYTES));
    machine.function().config_write(4, &[6, 0]).unwrap();
    machine.settle();
    machine
}

fn map(machine: &Machine, caching: Caching) -> Box<dyn Mapping> {
    machine.function().map(PM_BAR, 0..BYTES as u64, caching).unwrap()
}

fn load(view: &dyn Mapping, offset: u64) -> u64 {
    let mut word = [0; 8];
    view.load(offset, &mut word);
    u64::from_le_bytes(word)
}

/// Does the same on so many cores, each of which is told its number; gives how long each takes, in
/// nanoseconds.
fn on_cores(machine: &Machine, cores: usize, work: impl Fn(u64) + Sync) -> Vec<f64> {
    let work = &work;
    let timed = |core: usize| {
        move || {
            let start_ps = machine.now_ps();
            work(core as u64);
            (machine.now_ps() - start_ps) as f64 / 1000.0
        }
    };
    machine.on_cores((0..cores).map(timed).collect())
}

/// Loads that wait for each other, through the cache and around it, stores to parts of lines,
/// write-backs that wait for the rest of the line, fences.
fn mixed(cached: &dyn Mapping, uncached: &dyn Mapping, core: u64) {
    for i in 0..20 {
        let at = core * SHARE + 64 * 64 * (i % 16);
        let mut lines = [0; 20 * 64];
        cached.load(at, &mut lines);
        let next = load(uncached, at + 2048 + 8 * i) + 1;
        cached.store(at + 1536 + 8 * i, &next.to_le_bytes());
        cached.write_back(at + 1536, 512);
        cached.fence();
    }
}

#[test]
fn loads_of_cores_overlap() {
    for caching in [Caching::Uncached, Caching::WriteBack] {
        let chain = |cores| {
            let m = machine();
            let view = map(&m, caching);
            on_cores(&m, cores, |core| (0..100).for_each(|i| _ = load(&*view, core * SHARE + 64 * i)))
        };
        let alone = chain(1)[0];
        assert!((alone / 100.0 - 432.0).abs() < 10.0, "{alone}");
        for cores in [2, 8, 16] {
            // Sixteen loads of 436 ns at once are one in 27 ns, of which the link needs 11.4 for
            // the answer.
            let slowest = chain(cores).into_iter().fold(0.0, f64::max);
            assert!(slowest < alone * 1.05, "{caching}, {cores} cores: {slowest} ns, one alone {alone}");
        }
    }
}

#[test]
fn one_core_by_turns_is_a_core_alone() {
    let run = |by_turns: bool| {
        let m = machine();
        let (cached, uncached) = (map(&m, Caching::WriteBack), map(&m, Caching::Uncached));
        let start_ps = m.now_ps();
        match by_turns {
            // The second core has nothing to do; it is there so that turns are taken at all.
            true => drop(
                m.on_cores(
                    vec![0, 1]
                        .into_iter()
                        .map(|core| {
                            let (cached, uncached) = (&*cached, &*uncached);
                            move || {
                                if core == 0 {
                                    mixed(cached, uncached, 0)
                                }
                            }
                        })
                        .collect(),
                ),
            ),
            false => mixed(&*cached, &*uncached, 0),
        }
        (m.now_ps() - start_ps, m.statistics())
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn cores_run_the_same_each_time() {
    let run = || {
        let m = machine();
        let (cached, uncached) = (map(&m, Caching::WriteBack), map(&m, Caching::Uncached));
        let took = on_cores(&m, 5, |core| mixed(&*cached, &*uncached, core));
        m.settle();
        m.cut_now(0);
        (took, m.statistics(), m.medium().unwrap().bytes)
    };
    assert!(run() == run());
}

#[test]
fn the_link_is_shared() {
    let flood = |cores| {
        let m = machine();
        let commands = m.function().map(COMMAND_BAR, 0..4096, Caching::WriteCombining).unwrap();
        let stores = |core: u64| (0..1000).for_each(|_| commands.store_line(64 * core, &[0; 64]));
        on_cores(&m, cores, stores).into_iter().fold(0.0, f64::max) / 1000.0
    };
    let (one, four) = (flood(1), flood(4));
    assert!((four / one - 4.0).abs() < 0.2, "{one} and {four} ns a line");
}

/// Packets leave in the order in which they are sent: what a core fetches, loads or writes back
/// later than it has begun to holds up nobody.
#[test]
fn what_a_core_sends_later_holds_no_other_up() {
    const LINES: u64 = 64;
    type Work = fn(&dyn Mapping);
    let beside: [(&str, Work); 3] = [
        ("nothing", |_| ()),
        ("lines that are fetched ahead", |view| view.prefetch(0, 64 * LINES)),
        ("a long load", |view| view.load(0, &mut [0; 64 * LINES as usize])),
    ];
    let took = beside.map(|(what, work)| {
        let m = machine();
        let (cached, uncached) = (map(&m, Caching::WriteBack), map(&m, Caching::Uncached));
        let took = on_cores(&m, 2, |core| if core == 0 { work(&*cached) } else { _ = load(&*uncached, SHARE) });
        let statistics = m.statistics();
        let lines = if what == "nothing" { 0 } else { LINES };
        assert_eq!(statistics.prefetches + statistics.load_misses, lines, "{what}");
        (what, took[1])
    });
    for (what, ns) in took {
        assert!(ns < took[0].1 + 50.0, "beside {what} a load takes {ns} ns, alone {}", took[0].1);
    }
}

/// What a core has stored another one sees, though it waited for the same line at the same time.
#[test]
fn a_line_that_two_cores_wait_for_comes_to_both() {
    let m = machine();
    let view = map(&m, Caching::WriteBack);
    let took = on_cores(&m, 4, |core| {
        view.store(8 * core, &core.to_le_bytes());
        assert_eq!(load(&*view, 32), 0);
    });
    // Nobody has the line before it can be there.
    assert!(took.iter().all(|ns| (400.0..500.0).contains(ns)), "{took:?}");
    assert!((0..4).all(|core| load(&*view, 8 * core) == core));
    assert_eq!(m.statistics().reads_sent, 1);
}

#[test]
fn who_waits_for_a_lock_lets_time_pass() {
    let m = machine();
    let view = map(&m, Caching::Uncached);
    let (lock, function) = (Mutex::new(()), m.function());
    let took = on_cores(&m, 4, |core| {
        let guard = loop {
            match lock.try_lock() {
                Ok(guard) => break guard,
                Err(_) => assert!(function.contended(), "the other core would never go on"),
            }
        };
        (0..10).for_each(|i| _ = load(&*view, core * SHARE + 64 * i));
        drop(guard);
    });
    let mut took = took;
    took.sort_by(f64::total_cmp);
    // One behind the other: ten loads each.
    assert!((0..4).all(|n| (took[n] / (4320.0 * (n + 1) as f64) - 1.0).abs() < 0.05), "{took:?}");
    assert!(!function.contended(), "nobody else is there");
}

/// Who has just given a lock up does not get it again before others ask for it.
#[test]
fn a_lock_goes_to_who_asks_for_it_first() {
    let m = machine();
    let view = map(&m, Caching::Uncached);
    let (lock, function) = (Mutex::new(()), m.function());
    let took = on_cores(&m, 2, |core| {
        for _ in 0..20 {
            m.compute(300);
            m.let_others_catch_up();
            let guard = loop {
                match lock.try_lock() {
                    Ok(guard) => break guard,
                    Err(_) => assert!(function.contended(), "the other core would never go on"),
                }
            };
            load(&*view, core * SHARE);
            drop(guard);
        }
    });
    assert!((took[0] / took[1] - 1.0).abs() < 0.1, "{took:?}");
}

#[test]
fn a_cut_stops_every_core() {
    let m = machine();
    let view = map(&m, Caching::WriteBack);
    m.arm_cut(Cut::AtCycle(m.cycle() + 3000), 1);
    let ends = m.on_cores(
        (0..4)
            .map(|core| {
                let view = &view;
                move || until_power_cut(|| (0..1000).for_each(|i| _ = load(&**view, core * SHARE + 64 * i)))
            })
            .collect(),
    );
    assert_eq!(ends, [Err(PowerCut); 4]);
    assert!(!m.is_powered());
}

/// Loads on two cores until the power is cut; the second one panics before.
#[test]
#[should_panic(expected = "a bug of the workload")]
fn a_cut_does_not_hide_a_panic() {
    let m = machine();
    let view = map(&m, Caching::WriteBack);
    m.arm_cut(Cut::AtCycle(m.cycle() + 3000), 1);
    let ended = until_power_cut(|| {
        on_cores(&m, 2, |core| {
            for i in 0..1000 {
                load(&*view, core * SHARE + 64 * i);
                assert!(core != 1 || i < 5, "a bug of the workload");
            }
        })
    });
    panic!("the bug is taken for {ended:?}");
}

/// One waits for a card that never answers, and the other one ends, or sleeps until it is its turn.
#[test]
fn a_card_that_hangs_stops_every_core() {
    for others in [0, 1, 100] {
        let m = machine_of(Latency { read: 1 << 40, ..IDLE });
        let view = map(&m, Caching::Uncached);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            on_cores(&m, 3, |core| match core {
                0 => _ = load(&*view, 0),
                _ => (0..others).for_each(|_| m.compute(5000)),
            })
        }));
        let payload = ended.expect_err("no answer came");
        let message = payload.downcast_ref::<String>().expect("it says what is wrong");
        assert!(message.contains("no card answered"), "{message}");
    }
}

#[test]
#[should_panic(expected = "a bug of the workload")]
fn a_panic_of_one_comes_through_when_the_others_have_ended() {
    let m = machine();
    let view = map(&m, Caching::WriteBack);
    on_cores(&m, 3, |core| {
        (0..10).for_each(|i| _ = load(&*view, core * SHARE + 64 * i));
        assert!(core != 1, "a bug of the workload");
    });
}
