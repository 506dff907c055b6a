//! Each leaf cell against a plain model of it, on both back ends.

use nearpm_hdl::cells::{
    AsyncRam, ByteRam, Concat, Crc32cBlock, Fifo, PriorityPick, Register, Reorder, RoundRobin, Widen,
};
use nearpm_hdl::dut::{Value, on_both_back_ends, on_both_back_ends_with};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use rust_hdl::prelude::*;
use std::collections::VecDeque;

/// Random numbers that are the same in each run.
fn random() -> StdRng {
    StdRng::seed_from_u64(0x6e65_6172)
}

fn random_bytes(rng: &mut StdRng, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    rng.fill_bytes(&mut bytes);
    bytes
}

#[test]
fn register_takes_and_resets() {
    let make = || Box::new(Register::<Bits<40>>::new(0x12_3456_789au64.into()));
    on_both_back_ends_with(make, |dut| {
        assert_eq!(dut.get("q"), 0x12_3456_789au64);
        dut.set("d", 7u64);
        dut.cycle();
        assert_eq!(dut.get("q"), 0x12_3456_789au64, "not enabled");
        dut.set("enable", true);
        assert_eq!(dut.get("q"), 0x12_3456_789au64, "not before the edge");
        dut.cycle();
        assert_eq!(dut.get("q"), 7u64);
        dut.set("reset", true);
        dut.cycle();
        assert_eq!(dut.get("q"), 0x12_3456_789au64, "reset is stronger than enable");
        assert_eq!(dut.cycles(), 3);
    });
}

#[test]
fn register_of_one_bit() {
    on_both_back_ends_with(
        || Box::new(Register::<Bit>::new(true)),
        |dut| {
            assert!(dut.get_bool("q"));
            dut.set("enable", true);
            dut.cycle();
            assert!(!dut.get_bool("q"));
        },
    );
}

#[test]
fn byte_ram_writes_bytes_and_reads_old_data() {
    on_both_back_ends::<ByteRam<512, 64, 4>>(|dut| {
        let mut rng = random();
        let mut model = vec![vec![0u8; 64]; 16];
        let mut shown = vec![0u8; 64];
        for step in 0..300 {
            assert_eq!(dut.get("read_data").to_bytes(64), shown, "step {step}");
            let (to, from) = (rng.random_range(0..16usize), rng.random_range(0..16usize));
            let data = random_bytes(&mut rng, 64);
            let strobe = if rng.random_bool(0.5) { rng.random::<u64>() } else { 0 };
            let enable = rng.random_bool(0.7);
            dut.set("write_address", to as u64);
            dut.set("write_data", Value::from_bytes(&data));
            dut.set("write_strobe", strobe);
            dut.set("read_address", from as u64);
            dut.set("read_enable", enable);
            dut.cycle();
            if enable {
                shown.clone_from(&model[from]);
            }
            for lane in (0..64).filter(|lane| strobe >> lane & 1 == 1) {
                model[to][lane] = data[lane];
            }
        }
    });
}

#[test]
fn async_ram_reads_within_the_cycle() {
    for depth in [8, 4] {
        async_ram_of_depth(depth);
    }
}

/// Addresses repeat after the depth.
fn async_ram_of_depth(depth: usize) {
    on_both_back_ends_with(
        || Box::new(AsyncRam::<Bits<37>, 3, 2>::of_depth(depth)),
        |dut| {
            let mut rng = random();
            let mut model = [0u64; 8];
            for _ in 0..300 {
                let to = rng.random_range(0..8usize);
                let data = rng.random_range(0..1u64 << 37);
                let write = rng.random::<bool>();
                dut.set("write_address", to as u64);
                dut.set("write_data", data);
                dut.set("write_enable", write);
                for port in 0..2 {
                    let from = rng.random_range(0..8usize);
                    dut.set(&format!("read_address${port}"), from as u64);
                    assert_eq!(dut.get(&format!("read_data${port}")), model[from % depth]);
                }
                dut.cycle();
                if write {
                    model[to % depth] = data;
                }
            }
        },
    );
}

#[test]
fn widths_add_up() {
    on_both_back_ends::<Widen<8, 100>>(|dut| {
        dut.set("i", 0xa5u64);
        assert_eq!(dut.get("o"), 0xa5u64);
    });
    on_both_back_ends::<Widen<8, 8>>(|dut| {
        dut.set("i", 0xa5u64);
        assert_eq!(dut.get("o"), 0xa5u64);
    });
    on_both_back_ends::<Concat<8, 33, 41>>(|dut| {
        dut.set("high", 0xa5u64);
        dut.set("low", 0x1_0000_0003u64);
        assert_eq!(dut.get("o"), 0xa5u64 << 33 | 0x1_0000_0003);
    });
}

#[test]
#[should_panic(expected = "8 + 8 bits are not 17")]
fn widths_that_do_not_add_up_are_refused() {
    let _ = Concat::<8, 8, 17>::default();
}

#[test]
fn priority_pick_is_the_lowest() {
    on_both_back_ends::<PriorityPick<6, 3>>(|dut| {
        for requests in 0..64u64 {
            dut.set("requests", requests);
            assert_eq!(dut.get_bool("any"), requests != 0);
            let lowest = if requests == 0 { 0 } else { requests.trailing_zeros() };
            assert_eq!(dut.get("index"), u64::from(lowest));
        }
    });
}

#[test]
fn a_pick_among_some_does_not_hear_the_others() {
    on_both_back_ends_with(
        || Box::new(PriorityPick::<6, 3>::among(3)),
        |dut| {
            for requests in 0..64u64 {
                dut.set("requests", requests);
                let heard = requests & 7;
                assert_eq!(dut.get_bool("any"), heard != 0);
                assert_eq!(dut.get("grant"), heard & heard.wrapping_neg());
                let lowest = if heard == 0 { 0 } else { heard.trailing_zeros() };
                assert_eq!(dut.get("index"), u64::from(lowest));
            }
        },
    );
}

#[test]
fn round_robin_follows_the_last_grant() {
    on_both_back_ends::<RoundRobin<5, 3>>(|dut| {
        let mut rng = random();
        let mut next = 0;
        for _ in 0..400 {
            let requests = rng.random_range(0..32u64);
            let take = rng.random_bool(0.7);
            dut.set("requests", requests);
            dut.set("take", take);
            let pick = (next..next + 5).map(|i| i % 5).find(|i| requests >> i & 1 == 1);
            assert_eq!(dut.get_bool("any"), pick.is_some());
            assert_eq!(dut.get("index"), pick.unwrap_or(0));
            assert_eq!(dut.get("grant"), pick.map_or(0, |i| 1 << i));
            dut.cycle();
            if let (true, Some(pick)) = (take, pick) {
                next = (pick + 1) % 5;
            }
        }
        dut.reset();
        dut.set("requests", 0b11111u64);
        assert_eq!(dut.get("index"), 0u64, "reset gives the turn to request 0");
    });
}

#[test]
fn round_robin_of_the_greatest_width() {
    on_both_back_ends::<RoundRobin<64, 6>>(|dut| {
        dut.set("requests", 1u64 << 63 | 1);
        dut.set("take", true);
        for turn in 0..4 {
            assert_eq!(dut.get("index"), if turn % 2 == 0 { 0u64 } else { 63 });
            dut.cycle();
        }
    });
}

#[test]
fn fifo_keeps_order_and_counts() {
    on_both_back_ends::<Fifo<Bits<100>, 2, 3>>(|dut| {
        let mut rng = random();
        let mut model = VecDeque::new();
        for step in 0..600u64 {
            // Phases that mostly fill and mostly drain, so that both ends are reached.
            let filling = step / 50 % 2 == 0;
            let write = rng.random_bool(if filling { 0.8 } else { 0.3 });
            let read = rng.random_bool(if filling { 0.3 } else { 0.8 });
            let reset = rng.random_bool(0.01);
            dut.set("write", write);
            dut.set("read", read);
            dut.set("reset", reset);
            dut.set("data_in", Value::from(step).with_slice(90, 10, step));
            assert_eq!(dut.get("count"), model.len() as u64);
            assert_eq!(dut.get_bool("full"), model.len() == 4);
            assert_eq!(dut.get_bool("empty"), model.is_empty());
            if let Some(oldest) = model.front() {
                assert_eq!(dut.get("data_out"), *oldest);
            }
            dut.cycle();
            let room = model.len() < 4;
            if read {
                model.pop_front();
            }
            if write && room {
                model.push_back(Value::from(step).with_slice(90, 10, step));
            }
            if reset {
                model.clear();
            }
        }
    });
}

#[test]
fn reorder_gives_answers_in_the_order_of_asking() {
    on_both_back_ends::<Reorder<Bits<100>, 2>>(|dut| {
        let mut rng = random();
        // The place of each that was asked for, oldest first, and its answer.
        let mut model: VecDeque<(u64, Option<Value>)> = VecDeque::new();
        let (mut next, mut fullest) = (0, 0);
        for step in 0..900u64 {
            let filling = step / 50 % 2 == 0;
            let ask = rng.random_bool(if filling { 0.9 } else { 0.3 });
            let take = rng.random_bool(if filling { 0.2 } else { 0.8 });
            let reset = rng.random_bool(0.01);
            let waiting: Vec<_> = (0..model.len()).filter(|n| model[*n].1.is_none()).collect();
            let comes = !waiting.is_empty() && rng.random_bool(0.5);
            let answer = Value::from(step).with_slice(90, 10, step);
            dut.set("ask", ask);
            dut.set("take", take);
            dut.set("reset", reset);
            dut.set("come", comes);
            let come = if comes { waiting[rng.random_range(0..waiting.len())] } else { 0 };
            if comes {
                dut.set("come_place", model[come].0);
                dut.set("come_data", answer);
            }
            assert_eq!(dut.get("place"), next);
            assert_eq!(dut.get_bool("full"), model.len() == 4);
            assert_eq!(dut.get_bool("empty"), model.is_empty());
            let oldest = model.front().and_then(|(_, answer)| *answer);
            assert_eq!(dut.get_bool("valid"), oldest.is_some());
            if let Some(oldest) = oldest {
                assert_eq!(dut.get("data"), oldest, "step {step}");
            }
            dut.cycle();
            let room = model.len() < 4;
            if comes {
                model[come].1 = Some(answer);
            }
            if take && oldest.is_some() {
                model.pop_front();
            }
            if ask && room {
                model.push_back((next, None));
                next = (next + 1) % 4;
            }
            fullest = fullest.max(model.len());
            if reset {
                model.clear();
                next = 0;
            }
        }
        assert_eq!(fullest, 4);
    });
}

#[test]
fn fifo_of_single_bits() {
    on_both_back_ends::<Fifo<Bit, 1, 2>>(|dut| {
        dut.set("write", true);
        dut.set("data_in", true);
        dut.cycle();
        dut.set("data_in", false);
        dut.cycle();
        assert!(dut.get_bool("full") && dut.get_bool("data_out"));
        dut.set("read", true);
        dut.cycle();
        assert!(!dut.get_bool("data_out") && !dut.get_bool("full"));
    });
}

#[test]
fn crc32c_of_messages() {
    on_both_back_ends::<Crc32cBlock>(|dut| {
        let mut rng = random();
        // What each cycle put in, and the CRC that is due for it three edges later.
        let mut due = VecDeque::from([None, None, None]);
        let mut running = 0;
        for step in 0..300 {
            let expected: Option<u32> = due.pop_front().flatten();
            assert_eq!(dut.get_bool("done"), expected.is_some(), "step {step}");
            if let Some(crc) = expected {
                assert_eq!(dut.get("crc"), u64::from(crc), "step {step}");
                assert_eq!(dut.get("state"), u64::from(!crc), "step {step}");
            }
            let valid = rng.random_bool(0.8);
            let first = step < 3 || rng.random_bool(0.2);
            let block = random_bytes(&mut rng, 64);
            dut.set("valid", valid);
            dut.set("first", first);
            dut.set("block", Value::from_bytes(&block));
            dut.cycle();
            due.push_back(valid.then(|| {
                running = crc32c::crc32c_append(if first { 0 } else { running }, &block);
                running
            }));
        }
    });
}

#[test]
fn crc32c_forgets_blocks_at_reset() {
    on_both_back_ends::<Crc32cBlock>(|dut| {
        dut.set("valid", true);
        dut.set("first", true);
        dut.run(3);
        dut.set("valid", false);
        dut.reset();
        for _ in 0..4 {
            assert!(!dut.get_bool("done"));
            dut.cycle();
        }
    });
}
