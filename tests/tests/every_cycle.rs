//! Power cuts at every clock cycle of the RTL. One test, because a process that makes copies of
//! itself keeps to one thread.

use std::time::Instant;

use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_tests::cuts::catalogue;
use nearpm_tests::cuts::copies::keep_panics;
use nearpm_tests::cuts::striped;
use nearpm_tests::cuts::subject::Settings;
use nearpm_tests::cuts::tally::Tally;
use nearpm_tests::rig::{rtl_cards, thorough};

#[test]
fn a_cut_at_any_cycle_loses_nothing_that_was_accepted() {
    let cards = rtl_cards(MemoryPorts::One);
    keep_panics();
    let (one_card, settings) =
        if thorough() { (catalogue::all(), Settings::THOROUGH) } else { (catalogue::fast(), Settings::FAST) };
    assert!(!thorough() || one_card.len() >= 100, "{} scenarios", one_card.len());
    let (several, few) = if thorough() { (striped::all(), settings) } else { (striped::fast(), Settings::SAMPLES) };
    let settings = std::iter::repeat_n(settings, one_card.len()).chain(std::iter::repeat(few));
    let (start, mut all) = (Instant::now(), Tally::default());
    for (subject, settings) in catalogue::together(one_card, several).iter().zip(settings) {
        let found = subject.explore(&cards, settings);
        assert_eq!(found.failure, None, "{}: {}", subject.name(), found.failure.as_ref().expect("there is one"));
        all.add(&found.tally);
    }
    println!("{}", all.report(start.elapsed()));
    // A campaign that meets nothing shows nothing.
    assert!(all.cuts.iter().all(|cuts| *cuts > 100), "{all:?}");
    assert!(all.with_commands.min(all.with_stores) > all.cuts[0] / 20 && all.torn > 100 && all.losses > 100, "{all:?}");
    assert!(all.decided > 10, "{all:?}");
    assert!(!thorough() || all.cycles >= 100_000_000, "{} cycles", all.cycles);
}
