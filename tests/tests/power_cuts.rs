//! Random power cuts on whole machines, each followed by power-up, recovery and the comparison with
//! the model: `nearpm cuts`.
//!
//! The fast form makes some cuts. With `NEARPM_THOROUGH` set it makes 1 000 on the Verilated RTL
//! with each number of memory ports and 100 000 on the transaction-level card, which takes minutes.

use std::sync::Arc;

use nearpm_cards::{Cards, SimulatedCard};
use nearpm_cuts::campaign::{Campaign, Census, Failure, processors};
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::model::fault::Fault;
use nearpm_sim::model::{Config, ModelCard};
use nearpm_tests::rig::memory_ports;

/// Cuts of the thorough form, or of the fast one.
fn cuts(thorough: u64, fast: u64) -> u64 {
    if nearpm_tier::thorough() { thorough } else { fast }
}

fn campaign(kind: SimulatedCard, cuts: u64) -> Campaign {
    campaign_on(kind, MemoryPorts::One, cuts)
}

fn campaign_on(kind: SimulatedCard, memory_ports: MemoryPorts, cuts: u64) -> Campaign {
    let cards = kind.cards(memory_ports).unwrap_or_else(|error| panic!("{error:#}"));
    Campaign { kind, memory_ports, cards, cuts, seed: 1, threads: processors() }
}

/// The campaign on model cards with one protection switched off.
fn with_fault(fault: Fault, cuts: u64) -> Campaign {
    let cards: Cards = Arc::new(move |medium: Medium| {
        Box::new(ModelCard::with_fault(Config::default(), medium, fault)) as Box<dyn CardCore>
    });
    Campaign { cards, ..campaign(SimulatedCard::Model, cuts) }
}

fn without_violation(campaign: &Campaign) -> Census {
    let census = campaign.run().unwrap_or_else(|failure| panic!("{failure}"));
    println!("{}:\n{census}", campaign.kind.name());
    assert_eq!(census.cuts(), campaign.cuts);
    census
}

#[test]
fn power_cuts_on_the_model_lose_nothing_acknowledged_and_leave_nothing_half_done() {
    let census = without_violation(&campaign(SimulatedCard::Model, cuts(100_000, 400)));
    // A campaign that meets nothing shows nothing.
    for line in [
        "near an accepted command",
        "near an accepted store",
        "near an issue",
        "near a durable write",
        "near a retirement (model only)",
        "in the replay of a save",
        "in the library's recovery",
        "found commands that had not retired",
        "found stores that were not durable",
        "found a transaction to undo or redo",
        "- save torn, and reported as torn",
    ] {
        assert!(100 * census.of(line) >= census.cuts(), "{line}: {} of {} cuts", census.of(line), census.cuts());
    }
}

#[test]
fn power_cuts_on_the_rtl_lose_nothing_acknowledged_and_leave_nothing_half_done() {
    for ports in memory_ports() {
        let census = without_violation(&campaign_on(SimulatedCard::Rtl, *ports, cuts(1_000, 8)));
        assert!(census.of("found commands that had not retired") > 0);
    }
}

#[test]
fn a_campaign_finds_planted_faults_and_prints_what_repeats_them() {
    for fault in [Fault::StorePassesWaitingCommand, Fault::TornSaveFallsBack, Fault::ReplayStartsOver] {
        let campaign = with_fault(fault, 4_000);
        let Err(failure) = campaign.run() else { panic!("{fault:?} is not found") };
        let Failure { error, run, .. } = &*failure;
        assert!(failure.to_string().contains("nearpm run --workload"), "{failure}");
        assert!(!run.power_cut.0.is_empty(), "{fault:?}: {failure}");
        assert_eq!(campaign.repeat(run).as_ref(), Err(error), "{fault:?}");
        // The same run on a sound card.
        assert_eq!(self::campaign(SimulatedCard::Model, 0).repeat(run), Ok(()), "{fault:?}");
    }
}

#[test]
fn a_campaign_does_not_depend_on_the_threads() {
    let run = |threads| Campaign { threads, ..campaign(SimulatedCard::Model, 202) }.run().unwrap();
    assert_eq!(run(1), run(3));
    let found = |threads| {
        let campaign = Campaign { threads, ..with_fault(Fault::TornSaveFallsBack, 4_000) };
        campaign.run().map(drop).unwrap_err().to_string()
    };
    assert_eq!(found(1), found(3));
}
