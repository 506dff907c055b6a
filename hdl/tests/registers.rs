//! The register block over its AXI4-Lite port.

use nearpm_hdl::bundles::Lost;
use nearpm_hdl::dut::{Dut, PortValue, on_both_back_ends};
use nearpm_hdl::units::multi_device::Brief;
use nearpm_hdl::units::registers::Registers;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::INTERFACE_VERSION;
use nearpm_interface::registers::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rust_hdl::prelude::{Logic, Verilog};
use std::collections::VecDeque;

fn write_bytes(dut: &mut dyn Dut, offset: u32, data: u32, strobes: u64) {
    dut.set("axi$awaddr", u64::from(offset));
    dut.set("axi$awvalid", true);
    dut.run_until("axi$awready", 10);
    dut.cycle();
    dut.set("axi$awvalid", false);
    dut.set("axi$wdata", u64::from(data));
    dut.set("axi$wstrb", strobes);
    dut.set("axi$wvalid", true);
    dut.run_until("axi$wready", 10);
    dut.cycle();
    dut.set("axi$wvalid", false);
}

fn finish(dut: &mut dyn Dut) {
    dut.run_until("axi$bvalid", 10);
    // The answer stands until it is taken.
    dut.run(2);
    assert!(dut.get_bool("axi$bvalid") && dut.get_u64("axi$bresp") == 0);
    dut.set("axi$bready", true);
    dut.cycle();
    dut.set("axi$bready", false);
    assert!(!dut.get_bool("axi$bvalid"), "one answer a write");
}

fn write(dut: &mut dyn Dut, offset: u32, data: u32) {
    write_bytes(dut, offset, data, 15);
    finish(dut);
}

fn read(dut: &mut dyn Dut, offset: u32) -> u32 {
    dut.set("axi$araddr", u64::from(offset));
    dut.set("axi$arvalid", true);
    dut.run_until("axi$arready", 10);
    dut.cycle();
    dut.set("axi$arvalid", false);
    dut.run_until("axi$rvalid", 10);
    // The answer stands until it is taken.
    dut.run(2);
    assert!(dut.get_bool("axi$rvalid"));
    let value = dut.get_u64("axi$rdata") as u32;
    dut.set("axi$rready", true);
    dut.cycle();
    dut.set("axi$rready", false);
    value
}

#[test]
fn constants_and_status_read_as_the_interface_says() {
    on_both_back_ends::<Registers>(|dut| {
        dut.reset();
        dut.set("pm_bytes", 0x12_3456_0000u64);
        dut.set("state", u64::from(state::OPEN));
        dut.set("generation", 7u64);
        dut.set("latched", 0x8001u64);
        dut.set("mapped", 0x8011u64);
        dut.set("firmware_status", u64::from(firmware_status::OK));
        dut.set("firmware_slot", 1u64);
        dut.set("firmware_crc", 0xdead_beefu64);
        for (offset, value) in [
            (ID, ID_VALUE),
            (VERSION, INTERFACE_VERSION),
            (CAPABILITIES, capability::HOST_ORDERED | capability::COMPLETION_RECORDS | capability::POWER_FAIL_SAFE),
            (GEOMETRY, 4 | 32 << 8 | 64 << 16 | 16 << 24),
            (PM_BYTES_LO, 0x3456_0000),
            (PM_BYTES_HI, 0x12),
            (STATE, state::OPEN),
            (GENERATION, 7),
            (LATCHED, 0x8001),
            (MAPPED, 0x8011),
            (FIRMWARE_STATUS, firmware_status::OK | 1 << 8),
            (FIRMWARE_CRC, 0xdead_beef),
            (CONTROL, 0),
            (0xffc, 0),
        ] {
            assert_eq!(read(dut, offset), value, "offset {offset:#x}");
        }
        let thread = 3u64.into();
        let shown =
            Brief { thread, opcode: 4.into(), participants: 5.into(), txid: 0x6_0000_0007.into(), ..Brief::default() };
        dut.set("shown_command", Brief { pool: 2.into(), ..shown }.to_value());
        dut.set("shown_reached", 9u64);
        dut.set("parked", 0x8000_0001u64);
        let registers = [PARKED, PARKED_POOL, PARKED_THREAD, PARKED_TXID_LO, PARKED_TXID_HI, PARKED_REACHED];
        assert_eq!(registers.map(|offset| read(dut, offset)), [0x8000_0001, 2, 0x0504_0003, 7, 6, 9]);
        dut.set("load_refused", true);
        assert_eq!(read(dut, FIRMWARE_STATUS), firmware_status::NOT_IDLE | 1 << 8);
        dut.set("load_waits", true);
        assert_eq!(read(dut, FIRMWARE_STATUS), firmware_status::BUSY | 1 << 8);
        // An image that is in force before the card has opened is not shown so; another outcome is.
        dut.set("load_refused", false);
        dut.set("load_waits", false);
        for (now, shown) in [
            (state::BOOTING, firmware_status::BUSY),
            (state::REPLAYING, firmware_status::BUSY),
            (state::OPEN, firmware_status::OK),
            (state::LOSS, firmware_status::OK),
        ] {
            dut.set("state", u64::from(now));
            assert_eq!(read(dut, FIRMWARE_STATUS), shown | 1 << 8, "state {now}");
        }
        dut.set("state", u64::from(state::BOOTING));
        dut.set("firmware_status", u64::from(firmware_status::BAD_CRC));
        assert_eq!(read(dut, FIRMWARE_STATUS), firmware_status::BAD_CRC | 1 << 8);
        let lost = Lost { count: 0xfedc_ba98.into(), first: 0x2_1234_5678.into(), last: 0x3_8765_4321.into() };
        dut.set("lost", lost.to_value());
        let named = [STORES_LOST, LOST_FIRST_LO, LOST_FIRST_HI, LOST_LAST_LO, LOST_LAST_HI];
        let (first, last) = (0x2_1234_5678u64 << 6, 0x3_8765_4321u64 << 6);
        let wanted = [0xfedc_ba98, first as u32, (first >> 32) as u32, last as u32, (last >> 32) as u32];
        assert_eq!(named.map(|offset| read(dut, offset)), wanted);
    });
}

/// A master that sends address and data in any order, and takes answers when it likes: each access
/// is answered once, and in order.
#[test]
fn accesses_overlap_and_every_channel_may_stall() {
    on_both_back_ends::<Registers>(scenarios::accesses_overlap_and_every_channel_may_stall);
}

#[test]
fn every_register_behaves_as_its_access_says() {
    on_both_back_ends::<Registers>(|dut| {
        dut.reset();
        for register in ALL.iter().filter(|r| r.offset != CYCLES) {
            let before = read(dut, register.offset);
            write(dut, register.offset, 0x1234_5678);
            let after = read(dut, register.offset);
            let kept = match register.offset {
                DEVICE_NUMBER => 8,
                _ if register.access == Access::ReadWrite => 0x1234_5678,
                _ => before,
            };
            assert_eq!(after, kept, "{}", register.name);
        }
        write_bytes(dut, COMPLETION2_LO, 0xaabb_ccdd, 0b0101);
        finish(dut);
        assert_eq!(read(dut, COMPLETION2_LO), 0x12bb_56dd);
        assert_eq!(dut.get_u64("ring_base$1"), 0x1234_5678_1234_5678);
        assert_eq!(dut.get_u64("ring_size$1"), 8);
        dut.set("clear", true);
        dut.cycle();
        dut.set("clear", false);
        assert_eq!(read(dut, COMPLETION2_LO), 0);
        assert_eq!(dut.get_u64("ring_base$1"), 0);
        assert_eq!((read(dut, DEVICE_NUMBER), dut.get_u64("device_number")), (8, 8));
        // A replay brings back the number of before.
        dut.set("device_restore", 5u64);
        dut.set("device_restore_valid", true);
        dut.cycle();
        dut.set("device_restore_valid", false);
        assert_eq!((read(dut, DEVICE_NUMBER), dut.get_u64("select")), (5, 0x1234_5678));
    });
}

#[test]
fn writes_that_act_act_once() {
    on_both_back_ends::<Registers>(|dut| {
        dut.reset();
        let pulses = [
            "shut_down",
            "acknowledge_loss",
            "function_reset",
            "load_request",
            "ring_start$3",
            "numbered",
            "act_valid",
        ];
        for (offset, data, pulse) in [
            (CONTROL, control::SHUT_DOWN, "shut_down"),
            (CONTROL, control::ACKNOWLEDGE_LOSS, "acknowledge_loss"),
            (CONTROL, control::FUNCTION_RESET, "function_reset"),
            (FIRMWARE_LOAD, 1, "load_request"),
            (COMPLETION3_SIZE, 5, "ring_start$3"),
            (DEVICE_NUMBER, 3, "numbered"),
            (PARKED_ACT, 0x0211, "act_valid"),
        ] {
            write_bytes(dut, offset, data, 15);
            dut.set("axi$bready", true);
            let mut seen = [0; 7];
            for _ in 0..10 {
                for (count, name) in seen.iter_mut().zip(pulses) {
                    *count += u32::from(dut.get_bool(name));
                }
                if dut.get_bool("load_request") {
                    assert_eq!(dut.get_u64("load_slot"), 1);
                }
                if dut.get_bool("act_valid") {
                    assert_eq!((dut.get_u64("act_place"), dut.get_u64("act_action")), (0x11, 2));
                }
                dut.cycle();
            }
            dut.set("axi$bready", false);
            let wanted: Vec<_> = pulses.iter().map(|p| u32::from(*p == pulse)).collect();
            assert_eq!(seen.to_vec(), wanted, "{pulse}");
        }
        // Without its lowest byte a register does not act.
        write_bytes(dut, CONTROL, control::SHUT_DOWN, 0b1110);
        for _ in 0..10 {
            assert!(!dut.get_bool("shut_down"));
            dut.cycle();
        }
    });
}

#[test]
fn each_counter_counts_the_cycles_of_its_event() {
    on_both_back_ends::<Registers>(|dut| {
        dut.reset();
        // The bridge counts poisoned requests, and answers for them.
        let counters: Vec<_> = ALL.iter().filter(|r| r.offset > CYCLES && r.offset != TLPS_POISONED).collect();
        for (index, counter) in counters.iter().enumerate() {
            dut.set(&counter.name.to_lowercase(), true);
            dut.run(index as u64 + 2);
            dut.set(&counter.name.to_lowercase(), false);
        }
        for (index, counter) in counters.iter().enumerate() {
            assert_eq!(read(dut, counter.offset), index as u32 + 2, "{}", counter.name);
        }
        let before = read(dut, CYCLES);
        dut.run(100);
        assert!(read(dut, CYCLES) - before > 100);
    });
}

/// What planted faults are seen by, too.
mod scenarios {
    use super::*;

    pub fn accesses_overlap_and_every_channel_may_stall(dut: &mut dyn Dut) {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        dut.reset();
        let registers = [COMPLETION0_LO, COMPLETION1_HI, COMPLETION2_LO, PARKED_SELECT];
        let mut kept = [0u32; 4];
        // Writes that have come and may not have acted: they have when their answer shows.
        let (mut acting, mut stands) = (VecDeque::<(usize, u32)>::new(), false);
        // Writes of which not both parts are taken; those without an answer; the value that a read
        // may see, from its address to its data.
        let (mut addresses, mut data) = (VecDeque::new(), VecDeque::new());
        let (mut open, mut reads) = (0u32, VecDeque::<(usize, Vec<u32>)>::new());
        let (mut asks, mut shown): ([Option<(usize, u32)>; 3], Option<u64>) = ([None; 3], None);
        let (mut answered, mut read) = (0, 0);
        for cycle in 0..4000 {
            let pace = [0.9, 0.5, 0.15][cycle / 100 % 3];
            for ask in &mut asks {
                if ask.is_none() && rng.random_bool(pace) && cycle < 3900 {
                    *ask = Some((rng.random_range(0..4), rng.random()));
                }
            }
            // As many addresses as data.
            let ahead = addresses.len() as i64 - data.len() as i64;
            let offers = [asks[0].filter(|_| ahead < 2), asks[1].filter(|_| ahead > -2), asks[2]];
            for ((channel, value), offer) in ["aw", "w", "ar"].iter().zip(["addr", "data", "addr"]).zip(offers) {
                dut.set(&format!("axi${channel}valid"), offer.is_some());
                let Some((which, word)) = offer else { continue };
                let value_of = if *channel == "w" { word } else { registers[which] };
                dut.set(&format!("axi${channel}{value}"), u64::from(value_of));
            }
            dut.set("axi$wstrb", 15u64);
            let takes = [rng.random_bool(pace), rng.random_bool(pace)];
            dut.set("axi$bready", takes[0]);
            dut.set("axi$rready", takes[1]);
            let ready = ["aw", "w", "ar"].map(|channel| dut.get_bool(&format!("axi${channel}ready")));
            if dut.get_bool("axi$bvalid") {
                assert!(open > 0, "an answer is due");
                if !std::mem::replace(&mut stands, !takes[0]) {
                    let (which, word) = acting.pop_front().expect("a write has come");
                    kept[which] = word;
                }
                if takes[0] {
                    (open, answered) = (open - 1, answered + 1);
                }
            }
            let value = dut.get_bool("axi$rvalid").then(|| dut.get_u64("axi$rdata"));
            assert!(shown.is_none() || value == shown, "an answer changed before it was taken");
            shown = value.filter(|_| !takes[1]);
            if let (Some(value), true) = (value, takes[1]) {
                let (which, may) = reads.pop_front().expect("a read is due");
                assert!(may.contains(&(value as u32)), "register {which} reads {value:#x}, not one of {may:x?}");
                read += 1;
            }
            for channel in 0..3 {
                let Some((which, word)) = offers[channel].filter(|_| ready[channel]) else { continue };
                asks[channel] = None;
                match channel {
                    0 => addresses.push_back(which),
                    1 => data.push_back(word),
                    _ => {
                        let later = acting.iter().filter(|(acts, _)| *acts == which).map(|(_, word)| *word);
                        reads.push_back((which, [kept[which]].into_iter().chain(later).collect()));
                    }
                }
            }
            if let (Some(&which), Some(&word)) = (addresses.front(), data.front()) {
                addresses.pop_front();
                data.pop_front();
                acting.push_back((which, word));
                open += 1;
                reads.iter_mut().filter(|(read, _)| *read == which).for_each(|(_, may)| may.push(word));
            }
            assert!(open <= 2 && reads.len() <= 1, "{open} writes and {} reads are open", reads.len());
            dut.cycle();
        }
        assert_eq!((open, reads.len()), (0, 0), "something was never answered");
        assert!(answered > 300 && read > 300, "{answered} writes, {read} reads");
        // A read that comes when the reset ends is answered.
        dut.set("axi$arvalid", true);
        dut.reset();
        dut.run_until("axi$rvalid", 10);
    }
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "an answer to a write is lost where it is not taken at once",
        edits: &[Edit::Text("if (axi$bvalid & axi$bready)", "if (axi$bvalid & (axi$bready | FAULT))", 1)],
        scenario: scenarios::accesses_overlap_and_every_channel_may_stall,
        seen: "writes and",
    },
    UnitFault {
        module: "",
        what: "an answer to a read is lost where it is not taken at once",
        edits: &[Edit::Text("if (axi$rvalid & axi$rready)", "if (axi$rvalid & (axi$rready | FAULT))", 1)],
        scenario: scenarios::accesses_overlap_and_every_channel_may_stall,
        seen: "changed before it was taken",
    },
    UnitFault {
        module: "",
        what: "a write acts while the answer to the one before it waits",
        edits: &[Edit::Text("& ~axi$bvalid;", "& (~axi$bvalid | FAULT);", 1)],
        scenario: scenarios::accesses_overlap_and_every_channel_may_stall,
        seen: "writes and",
    },
];

#[test]
fn planted_faults_are_seen_by_the_unit_s_own_tests() {
    each_is_seen::<Registers>("Registers", FAULTS);
}

/// The simulator leaves out cycles that change only these counters (`nearpm_sim::rtl::RtlCards`):
/// they count up, software reads them, and nothing else in the card depends on them.
#[test]
fn counters_do_nothing_but_count() {
    let Verilog::Custom(text) = Registers::default().hdl() else { panic!("the unit is written in Verilog") };
    let words = |line: &str| -> Vec<String> {
        let all = line.split(|c: char| !(c.is_ascii_alphanumeric() || "_$".contains(c)));
        all.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let named = |name: &str| text.lines().filter(|line| words(line).iter().any(|word| word == name)).count();
    let mut counters = 0;
    for register in ALL {
        let name = format!("r_{}", register.name.to_lowercase());
        if !text.contains(&format!("{name} <= {name} + 32'd1;\n")) {
            continue;
        }
        counters += 1;
        assert!(
            text.contains(&format!("reg [31:0] {name};\n")) && text.contains(&format!("{name} <= 32'd0; ")),
            "{name}"
        );
        assert!(text.contains(&format!(": shown = {name};\n")), "{name} is not read");
        // Declared, reset, counted, read.
        assert_eq!(named(&name), 4, "{name} is used for something else");
    }
    assert!(counters >= 17 && text.matches(" + 32'd1").count() == counters, "{counters} counters");
    // What is read goes to the port, in a cycle that ends the reading.
    let read = "if (reading) begin\n            axi$rvalid <= 1'b1;\n            axi$rdata <= shown;\n            reading <= 1'b0;\n";
    let into_shown = text.matches(" shown = ").count();
    assert!(text.contains(read) && named("shown") == into_shown + 2, "what is read is used for something else");
}
