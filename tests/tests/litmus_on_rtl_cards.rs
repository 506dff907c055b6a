//! The litmus tests of several cards on Verilated ones: whatever a run shows, the ordering model allows.
//!
//! The power fails at a random moment. `litmus.rs` does the same on transaction-level cards, more often and with links that lose messages.

use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::host::Peers;
use nearpm_tests::litmus::comparison::Comparison;
use nearpm_tests::litmus::{observe_once, runs, tests};
use nearpm_tests::rig::{rtl_cards, thorough};

#[test]
fn what_several_rtl_cards_show_the_model_allows() {
    let each: u64 = if thorough() { 40 } else { 12 };
    let cards = rtl_cards(MemoryPorts::One);
    let power = |medium: Medium| -> Box<dyn CardCore> { Box::new(cards.card(medium).expect("the card powers up")) };
    let tests = tests();
    let mut all = Comparison::default();
    for (name, test) in tests.iter().filter(|(_, test)| runs(test) && test.devices > 1) {
        let shown = (0..each).map(|seed| observe_once(test, &power, Peers::default(), seed)).collect();
        all.take(name, test, &shown);
    }
    let Comparison { tests, allowed, reached, wrong, .. } = all;
    println!("{tests} tests, {each} runs each, {reached} of {allowed} allowed states reached");
    let (runs, violations) = (tests as u64 * each, wrong.len());
    println!(
        r#"{{"counts":{{"tests":{tests},"runs":{runs},"reached":{reached},"allowed":{allowed},"violations":{violations}}}}}"#
    );
    assert_eq!(wrong, Vec::<String>::new(), "shown and not allowed");
    assert!(tests >= 6 && 3 * reached > allowed, "{tests} tests, {reached} of {allowed} states");
}
