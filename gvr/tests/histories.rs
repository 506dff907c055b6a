//! Every element's history is linearizable, under any order of what was not flushed; and unsafe
//! orders are found.

use nearpm_gvr::array::Fault;
use nearpm_gvr::campaign::history::{Covered, Program, play};
use nearpm_gvr::{Access, Protocol};

fn program(seed: u64) -> Program {
    Program { seed, protocol: Some(Protocol::Batched), access: Access::Rma, fault: None }
}

#[test]
fn histories_of_logs_are_linearizable() {
    let mut covered = Covered::default();
    for seed in 0..1500 {
        covered += play(&program(seed)).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
    assert!(covered.moved > 100, "the sample has to clean logs: {covered:?}");
}

#[test]
fn histories_of_flat_arrays_are_linearizable() {
    for seed in 0..200 {
        play(&Program { protocol: None, ..program(seed) }).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

#[test]
fn histories_by_messages_are_linearizable() {
    for seed in 0..120 {
        for protocol in [Some(Protocol::Batched), None] {
            play(&Program { protocol, access: Access::Message, ..program(seed) })
                .unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        }
    }
}

/// Whether a fault is found, and by what: a history that no order gives, or, where ranks would wait
/// for ever, an error.
fn found(fault: Option<Fault>, protocol: Protocol, by: &str) -> bool {
    let wrong = |seed| play(&Program { fault, protocol: Some(protocol), ..program(seed) }).err();
    (0..1500).filter_map(wrong).any(|wrong| wrong.contains(by))
}

#[test]
fn unsafe_orders_are_found() {
    for fault in [Fault::PointerBeforeData, Fault::NoFlush, Fault::NoEpochs, Fault::NoEdges] {
        assert!(found(Some(fault), Protocol::Batched, "no order gives"), "{fault:?} was not found");
    }
    assert!(found(Some(Fault::StaleClaims), Protocol::Batched, "has not published"));
}

#[test]
fn the_order_that_the_paper_prints_is_found() {
    assert!(found(None, Protocol::Paper, "no order gives"));
}
