//! The channel's timing against the data sheets, its contents against a power cut.

use nearpm_interface::geometry::LINE;

use super::measure::{self, Ceilings, Row};
use super::{Config, Controller, Ddr4, WriteBeat};
use crate::core::Medium;
use crate::rng::Rng;

const DDR4: Config = Config::DDR4_2400;

fn blank(bytes: usize) -> Ddr4 {
    Ddr4::new(DDR4, 300, Medium::blank(bytes))
}

fn beat(value: u8) -> WriteBeat {
    WriteBeat { data: [value; LINE], strobes: u64::MAX }
}

/// Ticks until the next read beat.
fn next_beat(ddr4: &mut Ddr4) -> super::ReadBeat {
    loop {
        if let Some(beat) = ddr4.take_read_beat() {
            return beat;
        }
        ddr4.tick();
    }
}

fn wait_answer(ddr4: &mut Ddr4) -> super::WriteAnswer {
    loop {
        if let Some(answer) = ddr4.take_write_answer() {
            return answer;
        }
        ddr4.tick();
    }
}

#[test]
fn the_ceilings_are_those_of_the_data_sheets() {
    let c = Ceilings::measure(DDR4, 300);
    println!("{c}");
    println!("{}{}", Ceilings::measure(DDR4, 250), Ceilings::measure(DDR4, 200));
    // Peak 19.2 GB/s less refresh (350 of 7800 ns) and the rows' reopening.
    assert!(c.read > 17.8e9 && c.read < 18.4e9, "{}", c.read);
    assert!(c.write > 17.8e9 && c.write < 18.4e9, "{}", c.write);
    let copy = |batch| c.copy.iter().find(|(b, _)| *b == batch).expect("measured").1;
    assert!(copy(32)[0] > 8.0e9 && copy(64)[0] > copy(16)[0] && copy(128)[0] < 9.0e9, "{:?}", c.copy);
    assert!(c.copy.iter().all(|(_, [apart, shared])| shared < apart), "{:?}", c.copy);
    assert!((83.0..95.0).contains(&c.read_ns[0]), "{:?}", c.read_ns);
}

#[test]
fn a_hit_saves_the_activate_and_a_conflict_costs_the_precharge() {
    let [hit, closed, conflict] =
        [Row::Hit, Row::Closed, Row::Conflict].map(|r| measure::idle_read_cycles(DDR4, 300, r));
    // tRCD = tRP = 17 DRAM clocks = 4.25 cycles.
    assert!((4..=5).contains(&(closed - hit)), "{closed} {hit}");
    assert!((4..=5).contains(&(conflict - closed)), "{conflict} {closed}");
}

#[test]
fn times_in_ns_hardly_depend_on_the_cards_clock() {
    // What a crossing and the sampling at the slower clock add, and nothing else.
    let ns = |mhz: u64| measure::idle_read_cycles(DDR4, mhz, Row::Closed) as f64 * 1000.0 / mhz as f64;
    assert!(ns(250) > ns(300) && ns(250) < ns(300) + 30.0, "{} {}", ns(250), ns(300));
    assert!(ns(200) > ns(300) && ns(200) < ns(300) + 35.0, "{} {}", ns(200), ns(300));
    let same = Config { controller: Controller { crossing: 0, ..DDR4.controller }, ..DDR4 };
    let port_limit = 64.0 * 200e6;
    assert!((measure::read_bandwidth(same, 200) / port_limit) > 0.98, "the slow port is the limit");
}

#[test]
fn each_change_of_direction_costs_the_bus_turnaround() {
    let run = |batch| {
        let lines = 24_000.0;
        lines * 64.0 / measure::copy_bandwidth(DDR4, 300, batch, 2 * batch) * 300e6
    };
    // From 32 to 64 lines a batch, 24000 / 64 fewer rounds. A round switches twice: tRTW - tCCD = 7
    // DRAM clocks, and CWL + burst + tWTR_S or _L - tCCD = 15 to 21, together 5.5 to 7 cycles.
    let round = (run(32) - run(64)) / (24_000.0 / 64.0);
    assert!((5.0..8.0).contains(&round), "{round} cycles a round");
}

#[test]
fn refreshes_come_on_time_and_skipping_is_the_same_as_ticking() {
    let mut rng = Rng::new(5);
    let (mut ticked, mut skipped) = (blank(1 << 20), blank(1 << 20));
    for _ in 0..200 {
        let idle = rng.below(9000);
        (0..idle).for_each(|_| ticked.tick());
        skipped.skip(idle);
        let address = rng.below(1 << 14) * 64;
        for ddr4 in [&mut ticked, &mut skipped] {
            ddr4.push_read(1, address, 1);
            next_beat(ddr4);
            while !ddr4.is_idle() {
                ddr4.tick();
            }
        }
        assert_eq!(ticked.cycle(), skipped.cycle());
        assert_eq!(ticked.stats(), skipped.stats());
    }
    let intervals = ticked.cycle() * 4 / DDR4.timing.refi;
    assert!(intervals.abs_diff(ticked.stats().refreshes) <= 3, "{intervals} {:?}", ticked.stats());
}

#[test]
fn a_read_in_a_refresh_waits_for_its_end() {
    let at = |delay: u64| {
        let mut ddr4 = blank(4096);
        ddr4.skip(DDR4.timing.refi / 4 - 12 + delay);
        ddr4.push_read(0, 0, 1);
        let start = ddr4.cycle();
        next_beat(&mut ddr4);
        ddr4.cycle() - start
    };
    assert!(at(3) > at(2000 - 300) + 90, "105 cycles of tRFC");
}

#[test]
fn what_was_answered_is_read_back_and_reads_return_in_order() {
    let mut ddr4 = blank(1 << 20);
    let beats: Vec<_> = (0..16).map(beat).collect();
    ddr4.push_write(3, 4096, &beats);
    assert_eq!(wait_answer(&mut ddr4), super::WriteAnswer { id: 3, error: false });
    // The read meets its line in the write queue: the writes are served first.
    ddr4.push_read(9, 4096 + 3 * 64, 13);
    ddr4.push_read(2, 128 << 10, 1);
    for value in 3..16 {
        let got = next_beat(&mut ddr4);
        assert_eq!((got.id, got.data[0], got.last), (9, value, value == 15));
    }
    assert_eq!(next_beat(&mut ddr4).id, 2);
    assert!(ddr4.stats().write_lines >= 13);
}

#[test]
fn strobes_select_bytes_and_beyond_the_memory_nothing_is_written() {
    let mut ddr4 = blank(8192);
    ddr4.push_write(0, 0, &[WriteBeat { data: [7; LINE], strobes: 0x81 }]);
    wait_answer(&mut ddr4);
    assert_eq!(ddr4.medium().bytes[..8], [7, 0, 0, 0, 0, 0, 0, 7]);
    ddr4.push_write(0, 8192, &[beat(1)]);
    assert!(wait_answer(&mut ddr4).error);
    ddr4.push_read(0, 8192, 1);
    assert!(next_beat(&mut ddr4).error);
}

#[test]
fn a_full_write_queue_holds_the_data_back() {
    let mut ddr4 = blank(1 << 20);
    let (mut sent, mut longest, mut stall) = (0, 0, 0);
    for _ in 0..4000 {
        ddr4.take_write_answer();
        if ddr4.can_write() {
            // All in one bank, each in another row: the slowest there is.
            ddr4.push_write_address(0, (sent % 8) << 17, 1);
        }
        if ddr4.can_write_beat() {
            ddr4.push_write_beat(beat(1));
            sent += 1;
            stall = 0;
        }
        stall += 1;
        longest = longest.max(stall);
        ddr4.tick();
    }
    let row_cycle = (DDR4.timing.rcd + DDR4.timing.cwl + 4 + DDR4.timing.wr + DDR4.timing.rp) / 4;
    assert!(longest >= row_cycle && longest < 200, "{longest}");
}

#[test]
fn a_write_is_never_lost_after_its_answer_and_may_be_before() {
    let mut outcomes = std::collections::HashSet::new();
    for seed in 0..100 {
        let mut ddr4 = blank(4096);
        ddr4.push_write(0, 0, &[beat(1)]);
        wait_answer(&mut ddr4);
        ddr4.push_write(0, 64, &[beat(2)]);
        (0..seed % 6).for_each(|_| ddr4.tick());
        let medium = ddr4.power_fail(seed);
        assert_eq!(medium.bytes[..64], [1; 64], "answered");
        let words: Vec<_> = medium.bytes[64..128].chunks(8).map(|w| w == [2; 8]).collect();
        assert!(medium.bytes[64..128].chunks(8).all(|w| w == [0; 8] || w == [2; 8]), "torn at words only");
        outcomes.insert(match words.iter().filter(|new| **new).count() {
            0 => "dropped",
            8 => "kept",
            _ => "torn",
        });
    }
    assert_eq!(outcomes.len(), 3, "{outcomes:?}");
}

#[test]
fn a_random_load_ends_as_a_memory_would() {
    for mhz in [300, 250, 200] {
        let mut rng = Rng::new(mhz);
        let mut ddr4 = Ddr4::new(DDR4, mhz, Medium::blank(1 << 18));
        let mut oracle = Medium::blank(1 << 18);
        let mut expected = std::collections::VecDeque::new();
        let mut open = std::collections::VecDeque::new();
        for tick in 0..40_000 {
            if let Some(got) = ddr4.take_read_beat() {
                let (id, address): (u8, u64) = expected.pop_front().expect("nobody asked");
                assert_eq!((got.id, &got.data[..]), (id, &oracle.bytes[address as usize..][..64]));
            }
            if ddr4.take_write_answer().is_some() {
                let (address, beats): (u64, Vec<WriteBeat>) = open.pop_front().expect("nobody wrote");
                for (i, beat) in beats.iter().enumerate() {
                    oracle.write_line(address + 64 * i as u64, &beat.data, beat.strobes);
                }
            }
            // Reads and writes in separate phases, so that no unordered pair exists.
            let address = rng.below(1 << 6) * 4096;
            let beats = 1 + rng.below(64) as usize;
            let reading = tick / 1000 % 2 == 0;
            if reading && rng.one_in(8) && ddr4.can_read() && open.is_empty() {
                ddr4.push_read(beats as u8 % 64, address, beats);
                expected.extend((0..beats as u64).map(|i| (beats as u8 % 64, address + 64 * i)));
            } else if !reading && rng.one_in(8) && ddr4.can_write() && expected.is_empty() {
                let data: Vec<_> =
                    (0..beats).map(|_| WriteBeat { data: [rng.bits() as u8; 64], strobes: rng.bits() }).collect();
                ddr4.push_write(0, address, &data);
                open.push_back((address, data));
            }
            ddr4.tick();
        }
        assert!(ddr4.stats().read_lines > 500 && ddr4.stats().write_lines > 500);
    }
}

/// Speed of the model itself; run in release with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed() {
    let start = std::time::Instant::now();
    let rate = measure::copy_bandwidth(DDR4, 300, 64, 128);
    let cycles = 24_000.0 * 64.0 / rate * 300e6;
    println!("copy: {:.2} M ticks/s", cycles / start.elapsed().as_secs_f64() / 1e6);
    let start = std::time::Instant::now();
    measure::read_bandwidth(DDR4, 300);
    println!("read: {:.2} M ticks/s", 25_000.0 / start.elapsed().as_secs_f64() / 1e6);
    let mut ddr4 = blank(4096);
    let start = std::time::Instant::now();
    (0..10_000_000).for_each(|_| std::hint::black_box(&mut ddr4).tick());
    println!("idle: {:.2} M ticks/s", 10.0 / start.elapsed().as_secs_f64());
}
