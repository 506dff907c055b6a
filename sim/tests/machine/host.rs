//! The host model against the smallest card: costs, caches, order, power cuts.

use crate::flat::{Flat, IDLE, Latency};
use nearpm_driver::pci::{Caching, Mapping, PciFunction, Work};
use nearpm_interface::command::Command;
use nearpm_interface::geometry::{COMMAND_BAR, PM_BAR};
use nearpm_sim::core::Medium;
use nearpm_sim::host::{Cut, Event, Parameters};
use nearpm_sim::machine::{Function, Machine, PowerCut, run_on_core, until_power_cut};

const BYTES: usize = 1 << 20;

fn machine_with(parameters: Parameters, latency: Latency) -> Machine {
    let machine = Machine::new(parameters, &move |medium| Flat::boxed(medium, latency), Medium::blank(BYTES));
    enable(&machine.function());
    machine
}

fn machine(parameters: Parameters) -> Machine {
    machine_with(parameters, IDLE)
}

fn enable(function: &Function) {
    function.config_write(4, &[6, 0]).unwrap();
}

fn map(machine: &Machine, caching: Caching) -> Box<dyn Mapping> {
    machine.function().map(PM_BAR, 0..BYTES as u64, caching).unwrap()
}

fn load(view: &dyn Mapping, offset: u64) -> u64 {
    let mut word = [0; 8];
    view.load(offset, &mut word);
    u64::from_le_bytes(word)
}

fn store(view: &dyn Mapping, offset: u64, value: u64) {
    view.store(offset, &value.to_le_bytes());
}

/// The medium after everything that is under way has arrived; what is in caches is lost.
fn settled_medium(machine: &Machine) -> Medium {
    machine.settle();
    machine.cut_now(0);
    machine.medium().unwrap()
}

fn word(medium: &Medium, offset: usize) -> u64 {
    u64::from_le_bytes(medium.bytes[offset..offset + 8].try_into().unwrap())
}

fn nanoseconds(machine: &Machine, work: impl FnOnce()) -> f64 {
    let start = machine.now_ps();
    work();
    (machine.now_ps() - start) as f64 / 1000.0
}

fn copy_command(source: u64, destination: u64, bus: u64) -> [u8; 64] {
    Command { source, destination, length: 64, tag: 77, auxiliary: bus, ..Command::default() }.encode()
}

#[test]
fn a_load_costs_what_the_paper_measured() {
    let m = machine(Parameters::default());
    let cached = map(&m, Caching::WriteBack);
    m.settle();
    let miss = nanoseconds(&m, || _ = load(&*cached, 4096));
    assert!((miss - 436.0).abs() < 5.0, "{miss}");
    let hit = nanoseconds(&m, || _ = load(&*cached, 4104));
    assert!(hit <= 2.0, "{hit}");
    for lines in [1, 4, 16, 256] {
        m.settle();
        let mut data = vec![0; lines * 64];
        let took = nanoseconds(&m, || cached.load(65536 + lines as u64 * 1024, &mut data));
        let fit = f64::max(436.0, lines as f64 * 436.0 / 4.2);
        // The answers share the link: 11.4 ns each, as far as they come together.
        assert!((fit - 5.0..fit + 50.0).contains(&took), "{lines} lines: {took}, fit {fit}");
    }
    let uncached = map(&m, Caching::Uncached);
    let word = nanoseconds(&m, || _ = load(&*uncached, 0));
    assert!((word - 430.0).abs() < 8.0, "{word}");
}

#[test]
fn posting_a_line_with_its_fence_is_cheap_and_bounded_by_the_link() {
    let m = machine(Parameters::default());
    let commands = m.function().map(COMMAND_BAR, 0..4096, Caching::WriteCombining).unwrap();
    let line = copy_command(0, 64, 0);
    let took = nanoseconds(&m, || {
        for _ in 0..1000 {
            commands.store_line(0, &line);
            commands.fence();
        }
    });
    assert!((30.0..100.0).contains(&(took / 1000.0)), "{took}");
    let flood = nanoseconds(&m, || (0..1000).for_each(|_| commands.store_line(0, &line)));
    // 90 bytes a packet at 7.877 GB/s.
    assert!((flood / 1000.0 - 11.4).abs() < 0.3, "{flood}");
}

#[test]
fn a_dirty_line_reaches_the_card_only_by_write_back() {
    for (write_back, expected) in [(false, 0), (true, 5)] {
        let m = machine(Parameters::default());
        let cached = map(&m, Caching::WriteBack);
        store(&*cached, 128, 5);
        assert_eq!(load(&*cached, 128), 5, "a core sees its own store");
        if write_back {
            cached.write_back(128, 8);
            cached.fence();
        }
        assert_eq!(word(&settled_medium(&m), 128), expected);
    }
}

#[test]
fn a_store_to_part_of_a_line_keeps_the_rest() {
    let m = machine(Parameters::default());
    let (cached, uncached) = (map(&m, Caching::WriteBack), map(&m, Caching::Uncached));
    for i in 0..8 {
        store(&*uncached, 8 * i, 100 + i);
    }
    cached.store(13, &[9]);
    cached.write_back(0, 64);
    cached.fence();
    let medium = settled_medium(&m);
    assert_eq!(word(&medium, 8), 101 | 9 << 40);
    assert!((2..8).all(|i| word(&medium, 8 * i) == 100 + i as u64));
}

#[test]
fn a_line_that_was_fetched_ahead_is_not_waited_for() {
    let machine = machine(Parameters::default());
    let view = map(&machine, Caching::WriteBack);
    let part_of_a_line = |offset: u64, ahead: bool| {
        if ahead {
            view.prefetch(offset, 8);
        }
        machine.function().relax(1000);
        nanoseconds(&machine, || {
            store(&*view, offset, 7);
            view.write_back(offset, 8);
            view.fence();
        })
    };
    let (waited, not) = (part_of_a_line(0x1000, false), part_of_a_line(0x2000, true));
    assert!(not + 300.0 < waited, "{not} and {waited} ns");
    assert_eq!(machine.statistics().prefetches, 1);
    let medium = settled_medium(&machine);
    assert_eq!((word(&medium, 0x1000), word(&medium, 0x2000)), (7, 7));
}

#[test]
fn a_small_cache_evicts_the_least_recently_used_line() {
    let m = machine(Parameters { cache_lines: 32, ..Parameters::default() });
    let cached = map(&m, Caching::WriteBack);
    store(&*cached, 0, 7);
    (1..32).for_each(|line| _ = load(&*cached, 64 * line));
    assert_eq!(m.statistics().evictions, 0);
    load(&*cached, 64 * 32);
    assert_eq!(m.statistics().evictions, 1);
    assert_eq!(load(&*cached, 0), 7, "from the card");
}

#[test]
fn posted_writes_arrive_in_order_so_a_cut_leaves_a_prefix() {
    let mut lengths = std::collections::HashSet::new();
    for cycle in (10..400).step_by(7) {
        let m = machine(Parameters::default());
        let uncached = map(&m, Caching::Uncached);
        m.arm_cut(Cut::AtCycle(cycle), 1);
        let outcome = until_power_cut(|| {
            (0..64).for_each(|i| store(&*uncached, 8 * i, i + 1));
            m.settle();
            m.compute(10_000);
        });
        assert_eq!(outcome, Err(PowerCut));
        let medium = m.medium().unwrap();
        let survived = (0..64).take_while(|i| word(&medium, 8 * i) == *i as u64 + 1).count();
        assert!((survived..64).all(|i| word(&medium, 8 * i) == 0), "not a prefix");
        lengths.insert(survived);
    }
    assert!(lengths.contains(&0) && lengths.contains(&64) && lengths.len() > 10, "{lengths:?}");
}

#[test]
fn write_combining_stores_wait_for_the_fence_and_half_a_command_is_nothing() {
    let m = machine(Parameters::default());
    let commands = m.function().map(COMMAND_BAR, 0..4096, Caching::WriteCombining).unwrap();
    let uncached = map(&m, Caching::Uncached);
    store(&*uncached, 0, 42);
    let line = copy_command(0, 512, 0);
    commands.store(64, &line[..32]);
    m.settle();
    assert_eq!(m.statistics().command_writes, 0, "still in its buffer");
    commands.fence();
    m.settle();
    assert_eq!(m.statistics().command_writes, 4, "a partial buffer leaves in words");
    assert_eq!(load(&*uncached, 512), 0);
    commands.store(96, &line[32..]);
    commands.fence();
    assert_eq!(load(&*uncached, 512), 42);
}

/// Posts a command that logs the line at 0, then stores to it; gives what the log holds.
fn log_then_store(seed: u64, post: fn(&dyn Mapping, &[u8; 64]), fenced: bool) -> u64 {
    let m = machine(Parameters::default().adversarial(seed));
    let commands = m.function().map(COMMAND_BAR, 0..4096, Caching::WriteCombining).unwrap();
    let cached = map(&m, Caching::WriteBack);
    store(&*cached, 0, 1);
    cached.invalidate(0, 64);
    cached.fence();
    post(&*commands, &copy_command(0, 4096, 0));
    if fenced {
        commands.fence();
    }
    store(&*cached, 0, 2);
    // Further accesses, during which the line may be evicted.
    (0..20).for_each(|i| store(&*cached, 8192 + 64 * i, 0));
    commands.fence();
    word(&settled_medium(&m), 4096)
}

/// C3: otherwise the store is evicted first and the log captures the new value.
#[test]
fn without_a_fence_behind_the_command_the_log_captures_the_new_value() {
    let posts: [fn(&dyn Mapping, &[u8; 64]); 2] = [|c, line| c.store(0, line), |c, line| c.store_line(0, line)];
    for post in posts {
        assert!((0..200).all(|seed| log_then_store(seed, post, true) == 1), "with the fence");
        assert!((0..200).any(|seed| log_then_store(seed, post, false) == 2), "without it");
    }
}

/// Lets the card copy line 64 * 64 over line 0, of which the cache may hold an old copy; gives what
/// a load then sees.
fn load_after_command(seed: u64, invalidated_before: bool, invalidated_after: bool) -> u64 {
    let m = machine(Parameters::default().adversarial(seed));
    let commands = m.function().map(COMMAND_BAR, 0..4096, Caching::WriteCombining).unwrap();
    let (cached, uncached) = (map(&m, Caching::WriteBack), map(&m, Caching::Uncached));
    store(&*uncached, 4096, 9);
    load(&*cached, 0);
    if invalidated_before {
        cached.invalidate(0, 64);
        cached.fence();
    }
    // Time passes, in which the line may be prefetched again.
    (0..20).for_each(|i| _ = load(&*cached, 64 + i));
    commands.store_line(0, &copy_command(4096, 0, 0));
    commands.fence();
    m.settle();
    if invalidated_after {
        cached.invalidate(0, 64);
        cached.fence();
    }
    load(&*cached, 0)
}

/// C9: lines that a command writes are flushed before it is issued and again after its completion.
#[test]
fn without_an_invalidation_after_the_command_a_load_sees_the_old_line() {
    assert!((0..200).all(|seed| load_after_command(seed, true, true) == 9));
    assert!((0..200).any(|seed| load_after_command(seed, true, false) == 0), "prefetched again in between");
    let m = (0..200).filter(|seed| load_after_command(*seed, false, false) == 0).count();
    assert!(m > 60, "often still cached: {m}");
}

/// Core 1 dirties word B of a line, core 0 lets the card write word A of it; gives A after the line
/// was written back.
fn shared_line(seed: u64, dirtied_meanwhile: bool) -> u64 {
    let m = machine(Parameters::default().adversarial(seed));
    let commands = m.function().map(COMMAND_BAR, 0..4096, Caching::WriteCombining).unwrap();
    let (cached, uncached) = (map(&m, Caching::WriteBack), map(&m, Caching::Uncached));
    store(&*uncached, 4096, 9);
    cached.invalidate(0, 64);
    cached.fence();
    if dirtied_meanwhile {
        run_on_core(1);
        store(&*cached, 8, 1);
        load(&*cached, 0);
        run_on_core(0);
    }
    commands.store_line(0, &copy_command(4096, 0, 0));
    commands.fence();
    m.settle();
    if !dirtied_meanwhile {
        cached.invalidate(0, 64);
        cached.fence();
        store(&*cached, 8, 1);
    }
    // The end of core 1's transaction, or an eviction at any time.
    cached.write_back(0, 64);
    cached.fence();
    word(&settled_medium(&m), 0)
}

/// C9: thread 2 dirties B in a line in which an apply wrote A, and its eviction restores the old A.
#[test]
fn a_neighbour_that_dirties_the_line_restores_its_old_half() {
    assert!((0..50).all(|seed| shared_line(seed, false) == 9));
    assert!((0..50).any(|seed| shared_line(seed, true) == 0));
}

#[test]
fn after_the_cut_all_reads_ones_and_power_comes_back() {
    let m = machine(Parameters::default());
    let cached = map(&m, Caching::WriteBack);
    let uncached = map(&m, Caching::Uncached);
    store(&*uncached, 0, 1);
    m.settle();
    // Of the three accesses that follow, the second one no longer happens.
    m.arm_cut(Cut::AtAccess(2), 1);
    let mut reached = 0;
    let outcome = until_power_cut(|| {
        for i in 1..4 {
            store(&*cached, 64 * i, 1);
            reached = i;
        }
    });
    assert_eq!((outcome, reached), (Err(PowerCut), 1));
    assert!(!m.is_powered());
    // As destructors see it.
    assert_eq!(load(&*cached, 0), u64::MAX);
    store(&*uncached, 0, 2);
    let mut id = [0; 4];
    m.function().config_read(0, &mut id).unwrap();
    assert_eq!(id, [0xff; 4]);

    m.power_up(&|medium| Flat::boxed(medium, IDLE));
    assert_eq!(load(&*cached, 0), u64::MAX, "a mapping of before the cut is dead");
    let cached = map(&m, Caching::WriteBack);
    assert_eq!(load(&*cached, 0), u64::MAX, "memory is not enabled yet");
    enable(&m.function());
    assert_eq!((load(&*cached, 0), load(&*cached, 64)), (1, 0));
    assert_eq!(m.statistics().cuts, 1);
}

#[test]
fn every_core_learns_of_the_cut() {
    let m = machine(Parameters::default());
    let cached = map(&m, Caching::WriteBack);
    run_on_core(1);
    load(&*cached, 0);
    run_on_core(0);
    m.cut_now(1);
    for core in [0, 1] {
        run_on_core(core);
        assert_eq!(until_power_cut(|| load(&*cached, 0)), Err(PowerCut));
        assert_eq!(until_power_cut(|| load(&*cached, 0)), Ok(u64::MAX));
    }
    run_on_core(0);
}

#[test]
#[should_panic(expected = "a bug of the workload")]
fn other_panics_pass_through() {
    let _ = until_power_cut(|| panic!("a bug of the workload"));
}

#[test]
fn a_cut_follows_its_event_by_the_cycle() {
    let run = |cut: Option<Cut>| {
        let m = machine_with(Parameters::default(), Latency { read: 40, write: 2 });
        let uncached = map(&m, Caching::Uncached);
        m.record_events(true);
        if let Some(cut) = cut {
            m.arm_cut(cut, 1);
        }
        let outcome = until_power_cut(|| {
            (0..10).for_each(|i| store(&*uncached, 8 * i, i + 1));
            m.settle();
        });
        (m, outcome)
    };
    let (m, outcome) = run(None);
    assert_eq!(outcome, Ok(()));
    let events = m.record_events(false);
    assert_eq!(events.len(), 10);
    assert!(events.iter().all(|e| e.event == Event::WriteAccepted));
    // The fourth answer comes 2 cycles after its arrival; a write arrives every 1.3 cycles.
    for (delay_cycles, survivors) in [(1, 5..=7), (20, 10..=10)] {
        let (m, outcome) = run(Some(Cut::AfterEvent { event: Event::WriteAccepted, count: 4, delay_cycles }));
        assert_eq!(outcome, Err(PowerCut));
        let medium = m.medium().unwrap();
        let count = (0..10).filter(|i| word(&medium, 8 * i) != 0).count();
        assert!(survivors.contains(&count), "{delay_cycles}: {count}");
        let record = m.last_cut().unwrap();
        assert_eq!((record.cycle, record.access), (events[3].cycle + delay_cycles, None));
        assert!(record.since(Event::WriteAccepted).is_some_and(|cycles| cycles <= delay_cycles));
        assert_eq!(record.since(Event::Completion), None);
        let (by_cycle, _) = run(Some(Cut::AtCycle(events[3].cycle + delay_cycles)));
        assert!(by_cycle.medium().unwrap() == medium, "the same cut by its cycle");
    }
}

#[test]
fn a_cut_at_an_access_says_which_one_since_the_power_up() {
    let m = machine(Parameters::default());
    let cached = map(&m, Caching::WriteBack);
    let outcome = until_power_cut(|| {
        store(&*cached, 0, 1);
        m.arm_cut(Cut::AtAccess(3), 1);
        (1..10).for_each(|i| store(&*cached, 64 * i, 1));
    });
    assert_eq!(outcome, Err(PowerCut));
    let first = m.last_cut().unwrap().access.unwrap();
    // Lines of the first store and of the two before the cut.
    assert_eq!(m.dirty_lines(), 3);
    m.power_up(&|medium| Flat::boxed(medium, IDLE));
    assert_eq!(m.dirty_lines(), 0);
    // One access, which is before the cut is armed.
    enable(&m.function());
    let cached = map(&m, Caching::WriteBack);
    m.arm_cut(Cut::AtAccess(first), 1);
    let outcome = until_power_cut(|| (0..10).for_each(|i| store(&*cached, 64 * i, 1)));
    assert_eq!((outcome, m.last_cut().unwrap().access), (Err(PowerCut), Some(first + 1)));
}

#[test]
fn a_card_that_takes_nothing_holds_the_core_back() {
    let slow = machine_with(Parameters::default(), Latency { read: 40, write: 3000 });
    let uncached = map(&slow, Caching::Uncached);
    let took = nanoseconds(&slow, || (0..640).for_each(|i| store(&*uncached, 8 * i, i)));
    // 64 credits: a round of 64 writes takes 3000 cycles of 3.333 ns and the way back.
    assert!((90_000.0..105_000.0).contains(&took), "{took}");
    assert!(slow.statistics().credit_stall_ps > 80_000_000);
}

#[test]
fn the_card_writes_host_memory_and_interrupts() {
    let m = machine(Parameters::default());
    let function = m.function();
    let commands = function.map(COMMAND_BAR, 0..4096, Caching::WriteCombining).unwrap();
    let buffer = function.allocate_dma(4096).unwrap();
    assert_eq!(buffer.bus_address() % 4096, 0);
    let tag = || {
        let mut tag = [0; 4];
        buffer.load(64, &mut tag);
        u32::from_le_bytes(tag)
    };
    let post = |bus| {
        commands.store_line(0, &copy_command(0, 64, bus));
        commands.fence();
    };
    let round_trip = nanoseconds(&m, || {
        post(buffer.bus_address() + 64);
        while tag() == 0 {
            function.relax(5);
        }
    });
    assert_eq!(tag(), 77);
    assert!((300.0..450.0).contains(&round_trip), "{round_trip}");
    assert!(function.wait_interrupt(0, 0).unwrap(), "the first completion");
    assert!(!function.wait_interrupt(0, 1000).unwrap());
    post(buffer.bus_address());
    assert!(function.wait_interrupt(0, 1_000_000).unwrap());

    post(0xdead_0000);
    m.settle();
    assert_eq!(m.statistics().dma_faults, 1);
    function.config_write(4, &[2, 0]).unwrap();
    post(buffer.bus_address() + 128);
    m.settle();
    assert_eq!(m.statistics().dma_faults, 2, "the function is no bus master");
}

#[test]
fn a_reset_disables_memory_until_the_driver_enables_it() {
    let m = machine(Parameters::default());
    let uncached = map(&m, Caching::Uncached);
    store(&*uncached, 0, 3);
    m.function().reset().unwrap();
    assert_eq!(load(&*uncached, 0), u64::MAX);
    enable(&m.function());
    assert_eq!(load(&*uncached, 0), 3);
}

#[test]
fn a_seed_is_one_run() {
    let run = |seed: u64| {
        let m = machine(Parameters { cache_lines: 64, ..Parameters::default().adversarial(seed) });
        let cached = map(&m, Caching::WriteBack);
        for i in 0..2000u64 {
            let at = i * 7919 % 1000 * 64;
            store(&*cached, at, i);
            load(&*cached, at * 3 % 65536);
            if i % 17 == 0 {
                cached.write_back(at, 64);
                cached.fence();
            }
        }
        let (statistics, now) = (m.statistics(), m.now_ps());
        (settled_medium(&m), statistics, now)
    };
    let (first, again, other) = (run(1), run(1), run(2));
    assert!(first == again, "the same seed");
    assert!(first.1 != other.1, "another seed");
}

#[test]
fn an_adversarial_cache_is_still_a_memory() {
    for seed in 0..20 {
        let m = machine(Parameters { cache_lines: 64, ..Parameters::default().adversarial(seed) });
        let cached = map(&m, Caching::WriteBack);
        let combining = m.function().map(PM_BAR, 65536..131_072, Caching::WriteCombining).unwrap();
        let mut oracle = vec![0u64; 1024];
        let mut rng = nearpm_sim::rng::Rng::new(seed);
        for i in 0..3000 {
            let at = rng.below(1024);
            let view: &dyn Mapping = if at < 512 { &*cached } else { &*combining };
            if rng.one_in(2) {
                store(view, 8 * at, i);
                oracle[at as usize] = i;
            } else {
                assert_eq!(load(view, 8 * at), oracle[at as usize], "word {at}");
            }
        }
        cached.write_back(0, 4096);
        cached.fence();
        let medium = settled_medium(&m);
        for (at, value) in oracle.iter().enumerate() {
            let base = if at < 512 { 0 } else { 65536 };
            assert_eq!(word(&medium, base + 8 * at), *value, "word {at}");
        }
    }
}

#[test]
fn work_beside_the_card_takes_time() {
    let machine = machine(Parameters::default());
    let view = map(&machine, Caching::WriteBack);
    let cost_ps = |work| {
        let start = machine.now_ps();
        view.charge(work);
        machine.now_ps() - start
    };
    let parameters = Parameters::default();
    assert_eq!(cost_ps(Work::CachedLines(3)), 3 * parameters.hit_ps);
    assert_eq!(cost_ps(Work::Checksum(64)), 8 * parameters.checksum_word_ps);
    assert_eq!(cost_ps(Work::Checksum(4096)), 512 * parameters.checksum_long_word_ps);
}
