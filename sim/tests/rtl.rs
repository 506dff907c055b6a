//! The Verilated side against the smallest design that has the card's ports. Needs Verilator.

use nearpm_driver::pci::{Caching, PciFunction};
use nearpm_interface::command::Command;
use nearpm_interface::geometry::{COMMAND_BAR, LINE, PM_BAR, REGISTER_BAR};
use nearpm_sim::core::{Access, Activity, CardCore, Medium};
use nearpm_sim::host::Parameters;
use nearpm_sim::machine::Machine;
use nearpm_sim::rng::Rng;
use nearpm_sim::rtl::{Options, RtlCards};

const BYTES: usize = 1 << 20;
const LIMIT: u64 = 1000;

fn cards(options: Options) -> RtlCards {
    RtlCards::build("mini_card", include_str!("rtl/mini_card.v"), options).unwrap()
}

fn write(address: u64, value: u8) -> Access {
    Access::PmWrite { address, data: [value; LINE], strobes: u64::MAX }
}

fn command(bus: u64, tag: u32) -> [u8; LINE] {
    Command { auxiliary: bus, tag, ..Command::default() }.encode()
}

#[test]
fn every_port_carries_its_accesses() {
    let mut card = cards(Options::default()).card(Medium::blank(BYTES)).unwrap();
    let register = card.submit(Access::RegisterWrite { offset: 8, value: 0x1234_5678 });
    card.wait(register, LIMIT);
    let register = card.submit(Access::RegisterRead { offset: 8 });
    assert_eq!(card.wait(register, LIMIT).data[..4], 0x1234_5678u32.to_le_bytes());

    let posted = card.submit(Access::CommandWrite { offset: 64, data: command(0x1_0000_0040, 9), strobes: u64::MAX });
    card.wait(posted, LIMIT);
    let status = card.submit(Access::CommandRead { page: 2 });
    let status = card.wait(status, LIMIT).data;
    assert_eq!((status[0], u32::from_le_bytes(status[4..8].try_into().unwrap())), (1, 0x2000));
    let record = card.take_dma().unwrap();
    assert_eq!((record.bus_address, record.strobes, record.data[0]), (0x1_0000_0040, 0xf, 9));

    let stored = card.submit(Access::PmWrite { address: 640, data: [5; LINE], strobes: 0xff00 });
    let loaded = card.submit(Access::PmRead { address: 640 });
    assert_eq!(card.wait(loaded, LIMIT).data[6..18], [0, 0, 5, 5, 5, 5, 5, 5, 5, 5, 0, 0]);
    assert!(!card.wait(stored, LIMIT).error);
    let beyond = card.submit(Access::PmRead { address: BYTES as u64 });
    assert!(card.wait(beyond, LIMIT).error);
}

#[test]
fn accesses_are_delivered_in_order_and_one_a_cycle() {
    let mut card = cards(Options::default()).card(Medium::blank(BYTES)).unwrap();
    let writes: Vec<_> = (0..100).map(|i| card.submit(write(64 * i, i as u8))).collect();
    let read = card.submit(Access::PmRead { address: 99 * 64 });
    let start = card.cycle();
    let answered: Vec<_> = writes.into_iter().map(|ticket| card.wait(ticket, LIMIT).cycle).collect();
    assert!(answered.is_sorted());
    // The memory's write queue takes a line a cycle: the port is not what limits.
    assert!(answered[99] - start < 130, "{answered:?}");
    let read = card.wait(read, LIMIT);
    assert_eq!(read.data[0], 99);
    assert!(read.cycle > answered[99], "a read is delivered after every write's answer");
}

#[test]
fn it_is_the_memory_behind_a_random_load_at_every_clock() {
    for mhz in [300, 250, 200] {
        let mut card = cards(Options { mhz, ..Options::default() }).card(Medium::blank(BYTES)).unwrap();
        let mut oracle = Medium::blank(BYTES);
        let mut rng = Rng::new(mhz);
        let mut expected = Vec::new();
        for _ in 0..3000 {
            let address = rng.below(256) * 64;
            if rng.one_in(2) {
                let (data, strobes) = ([rng.bits() as u8; LINE], rng.bits());
                oracle.write_line(address, &data, strobes);
                card.submit(Access::PmWrite { address, data, strobes });
            } else {
                let ticket = card.submit(Access::PmRead { address });
                expected.push((ticket, oracle.bytes[address as usize..][..LINE].to_vec()));
                // In order, so that the design without an ordering point is still a memory.
                if rng.one_in(4) {
                    card.wait(ticket, 100_000);
                    expected.pop();
                }
            }
            for (ticket, data) in expected.drain(..) {
                assert_eq!(card.wait(ticket, 100_000).data[..], data);
            }
        }
    }
}

#[test]
fn a_watched_card_shows_what_goes_to_memory_and_when_it_is_durable() {
    let mut card = cards(Options::default()).card(Medium::blank(BYTES)).unwrap();
    let unwatched = card.submit(write(0, 1));
    card.wait(unwatched, LIMIT);
    card.advance_to(card.cycle() + 100);
    assert_eq!(card.take_activity(), None);
    card.watch(true);
    let start = card.cycle();
    let watched = card.submit(write(64, 2));
    card.wait(watched, LIMIT);
    card.advance_to(start + 100);
    let shown: Vec<_> = std::iter::from_fn(|| card.take_activity()).collect();
    assert_eq!(shown.iter().map(|(what, _)| *what).collect::<Vec<_>>(), [Activity::Issued, Activity::Durable]);
    assert!(start < shown[0].1 && shown[0].1 < shown[1].1 && shown[1].1 < start + 100, "{shown:?}");
}

#[test]
fn a_power_cut_saves_and_keeps_what_was_answered() {
    for seed in 0..20 {
        let mut card = Box::new(cards(Options::default()).card(Medium::blank(BYTES)).unwrap());
        let durable = card.submit(write(0, 1));
        card.wait(durable, LIMIT);
        card.submit(write(64, 2));
        card.advance_to(card.cycle() + seed);
        let posted = card.submit(Access::CommandWrite { offset: 0, data: command(0, 0), strobes: u64::MAX });
        card.wait(posted, LIMIT);
        let never = card.submit(write(128, 3));
        assert!(card.take(never).is_none());
        let medium = card.power_fail(1000, seed);
        assert_eq!((medium.bytes[0], medium.bytes[128]), (1, 0));
        assert_eq!(medium.bytes[0x10000], 1, "the save counted one command");
    }
    // Without energy there is no save.
    let mut card = Box::new(cards(Options::default()).card(Medium::blank(BYTES)).unwrap());
    let posted = card.submit(Access::CommandWrite { offset: 0, data: command(0, 0), strobes: u64::MAX });
    card.wait(posted, LIMIT);
    assert_eq!(card.power_fail(0, 1).bytes[0x10000], 0);
}

#[test]
fn runs_are_the_same_to_the_cycle() {
    let run = || {
        let cards = cards(Options::default());
        let machine = Machine::new(Parameters::default().adversarial(3), &cards, Medium::blank(BYTES));
        let function = machine.function();
        function.config_write(4, &[6, 0]).unwrap();
        let memory = function.map(PM_BAR, 0..BYTES as u64, Caching::WriteBack).unwrap();
        let commands = function.map(COMMAND_BAR, 0..4096, Caching::WriteCombining).unwrap();
        let registers = function.map(REGISTER_BAR, 0..4096, Caching::Uncached).unwrap();
        let buffer = function.allocate_dma(200 * 64).unwrap();
        registers.store(16, &7u32.to_le_bytes());
        for i in 0..200u64 {
            memory.store(i * 7919 % 4000 * 8, &i.to_le_bytes());
            commands.store_line(i % 16 * 64, &command(buffer.bus_address() + i * 64, i as u32));
            commands.fence();
        }
        memory.write_back(0, 32_000);
        memory.fence();
        machine.settle();
        let mut last = [0; 4];
        buffer.load(199 * 64, &mut last);
        assert_eq!(last, 199u32.to_le_bytes());
        (machine.now_ps(), machine.cycle(), machine.statistics())
    };
    assert_eq!(run(), run());
}

#[test]
fn a_waveform_is_written_for_every_power_up() {
    let folder = std::env::temp_dir().join(format!("nearpm-sim-rtl-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("card.vcd");
    let cards = cards(Options { waveform: Some(path.clone()), ..Options::default() });
    for name in ["card.vcd", "card.1.vcd"] {
        let mut card = cards.card(Medium::blank(BYTES)).unwrap();
        card.advance_to(20);
        drop(card);
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(text.contains("m_axi_mem0_awvalid") && text.contains("#60"), "{name}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// What this side costs; run in release with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed() {
    let mut card = cards(Options::default()).card(Medium::blank(BYTES)).unwrap();
    let start = std::time::Instant::now();
    card.advance_to(3_000_000);
    println!("idle: {:.2} M cycles/s", 3.0 / start.elapsed().as_secs_f64());
    let (start, first) = (std::time::Instant::now(), card.cycle());
    for i in 0..200_000u64 {
        let ticket = card.submit(write(i % 8192 * 64, 1));
        if i % 32 == 31 {
            card.wait(ticket, LIMIT);
        }
    }
    println!("writes: {:.2} M cycles/s", (card.cycle() - first) as f64 / 1e6 / start.elapsed().as_secs_f64());
}
