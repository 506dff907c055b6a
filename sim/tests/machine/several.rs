//! Several cards in one computer: windows of their own, one power cord, and cards that do not come
//! back.

use crate::flat::{Flat, IDLE};
use nearpm_driver::pci::{Caching, Mapping, PciError, PciFunction};
use nearpm_interface::geometry::{PM_BAR, REGISTER_BAR};
use nearpm_sim::core::Medium;
use nearpm_sim::host::{Cut, Parameters, Peers};
use nearpm_sim::machine::{Machine, PowerCut, Socket, until_power_cut};

const BYTES: usize = 1 << 18;

fn card(medium: Medium) -> Box<dyn nearpm_sim::core::CardCore> {
    Flat::boxed(medium, IDLE)
}

fn machine(cards: usize, parameters: Parameters) -> Machine {
    let machine = Machine::with_cards(parameters, Peers::default(), &card, vec![Medium::blank(BYTES); cards]);
    enable(&machine);
    machine
}

fn enable(machine: &Machine) {
    machine.functions().iter().for_each(|function| function.config_write(4, &[6, 0]).unwrap());
}

fn view(machine: &Machine, card: usize, caching: Caching) -> Box<dyn Mapping> {
    machine.function_of(card).map(PM_BAR, 0..BYTES as u64, caching).unwrap()
}

fn word(medium: &Medium, offset: usize) -> u64 {
    u64::from_le_bytes(medium.bytes[offset..offset + 8].try_into().unwrap())
}

fn load(view: &dyn Mapping, offset: u64) -> u64 {
    let mut word = [0; 8];
    view.load(offset, &mut word);
    u64::from_le_bytes(word)
}

/// Stores a different number in every card, at the same place and at the ends of the window.
fn store_everywhere(machine: &Machine, caching: Caching) {
    for card in 0..machine.cards() {
        let view = view(machine, card, caching);
        for offset in [0, 4096, BYTES as u64 - 64] {
            view.store(offset, &(1000 * (card as u64 + 1) + offset).to_le_bytes());
            view.write_back(offset, 8);
        }
        view.fence();
    }
}

#[test]
fn each_card_has_its_own_memory() {
    for cards in [1, 2, 4, 8] {
        for (caching, parameters) in [
            (Caching::WriteBack, Parameters::default()),
            (Caching::WriteCombining, Parameters::default()),
            (Caching::Uncached, Parameters::default()),
            (Caching::WriteBack, Parameters::default().adversarial(cards as u64)),
            (Caching::WriteCombining, Parameters::default().adversarial(cards as u64)),
        ] {
            let m = machine(cards, parameters);
            store_everywhere(&m, caching);
            for card in 0..cards {
                let value = load(&*view(&m, card, caching), 4096);
                assert_eq!(value, 1000 * (card as u64 + 1) + 4096, "{caching:?}");
            }
            m.settle();
            m.cut_now(1);
            for card in 0..cards {
                for offset in [0, 4096, BYTES - 64] {
                    let value = m.look_at_medium_of(card, |medium| word(medium, offset)).unwrap();
                    assert_eq!(value, 1000 * (card as u64 + 1) + offset as u64, "{caching:?}");
                }
            }
        }
    }
}

#[test]
fn counters_are_kept_for_each_card_and_add_up() {
    let m = machine(3, Parameters::default());
    let views: Vec<_> = (0..3).map(|card| view(&m, card, Caching::WriteBack)).collect();
    for (card, view) in views.iter().enumerate() {
        (0..=card as u64).for_each(|i| _ = load(&**view, 128 * i));
        view.fence();
    }
    let misses: Vec<u64> = (0..3).map(|card| m.statistics_of(card).load_misses).collect();
    assert_eq!(misses, [1, 2, 3]);
    let all = m.statistics();
    assert_eq!((all.load_misses, all.loads, all.fences, m.statistics_of(0).fences), (6, 6, 3, 0));
}

#[test]
fn one_cord_cuts_all_cards_in_the_same_cycle_and_the_same_way_again() {
    let run = || {
        let m = machine(4, Parameters::default().adversarial(5));
        m.arm_cut(Cut::AtCycle(900), 7);
        let outcome = until_power_cut(|| {
            for i in 0.. {
                let view = view(&m, i % 4, Caching::WriteBack);
                view.store(64 * (i as u64 % 1000), &(i as u64 + 1).to_le_bytes());
                view.write_back(64 * (i as u64 % 1000), 8);
                view.fence();
            }
        });
        assert_eq!(outcome, Err(PowerCut));
        assert_eq!(m.last_cut().unwrap().cycle, 900);
        (0..4).map(|card| m.look_at_medium_of(card, |medium| medium.bytes.clone()).unwrap()).collect::<Vec<_>>()
    };
    let media = run();
    assert!(media.iter().all(|bytes| bytes.iter().any(|byte| *byte != 0)), "every card had work");
    assert!(media == run());
}

#[test]
fn a_card_that_does_not_come_back_reads_as_ones_and_keeps_what_it_holds() {
    let m = machine(3, Parameters::default());
    store_everywhere(&m, Caching::Uncached);
    m.settle();
    m.cut_now(1);
    m.power_up_each(&[Socket::Card(&card), Socket::Silent, Socket::Absent]);
    enable(&m);
    let identity = |card: usize| {
        let mut word = [0; 4];
        m.function_of(card).config_read(0, &mut word).unwrap();
        u32::from_le_bytes(word)
    };
    assert_eq!((identity(0), identity(2)), (identity(1), u32::MAX));
    assert_eq!(load(&*view(&m, 0, Caching::WriteBack), 4096), 5096);
    for caching in [Caching::WriteBack, Caching::WriteCombining, Caching::Uncached] {
        let silent = view(&m, 1, caching);
        silent.store(4096, &[0; 8]);
        silent.write_back(4096, 8);
        silent.fence();
        assert_eq!(load(&*silent, 4096), u64::MAX, "{caching:?}");
    }
    let registers = m.function_of(1).map(REGISTER_BAR, 0..4096, Caching::Uncached).unwrap();
    let mut word4 = [0; 4];
    registers.load(0, &mut word4);
    assert_eq!(word4, [0xff; 4]);
    let absent = m.function_of(2);
    assert_eq!(absent.bar_bytes(PM_BAR), None);
    let refused = absent.map(PM_BAR, 0..4096, Caching::Uncached).err().expect("there is nothing to map");
    assert!(matches!(refused, PciError::NoBar { .. }), "{refused}");
    m.settle();
    m.cut_now(2);
    m.power_up(&card);
    enable(&m);
    for card in 0..3 {
        assert_eq!(load(&*view(&m, card, Caching::WriteBack), 4096), 1000 * (card as u64 + 1) + 4096);
    }
}

/// Cards on one board have one way to the host between them.
#[test]
fn a_shared_link_is_half_as_fast_for_each_of_two() {
    let flood = |shared_link| {
        // So slow that the way back is what limits two cores.
        let link_bytes_per_us = Parameters::default().link_bytes_per_us / 64;
        let m = machine(2, Parameters { shared_link, link_bytes_per_us, ..Parameters::default() });
        let windows = [0, 1].map(|card| view(&m, card, Caching::WriteCombining));
        m.settle();
        let start_ps = m.now_ps();
        for line in 0..1000 {
            windows.iter().for_each(|window| window.store_line(64 * line, &[7; 64]));
        }
        let down_ps = m.now_ps() - start_ps;
        m.settle();
        let views = [0, 1].map(|card| view(&m, card, Caching::WriteBack));
        let start_ps = m.now_ps();
        let loads =
            views.iter().map(|view| || (0..64_000).step_by(64 * 8).for_each(|at| view.load(at, &mut [0; 64 * 8])));
        m.on_cores(loads.collect());
        (down_ps as f64, (m.now_ps() - start_ps) as f64)
    };
    let ((own_down, own_up), (shared_down, shared_up)) = (flood(false), flood(true));
    assert!((shared_down / own_down - 2.0).abs() < 0.1, "{shared_down} and {own_down} ps");
    assert!((1.8..2.1).contains(&(shared_up / own_up)), "{shared_up} and {own_up} ps");
}
