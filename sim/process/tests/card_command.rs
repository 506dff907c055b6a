//! `nearpm card` on a card of another process.

mod common;

use common::Simulator;
use nearpm_cli::card::{CardArgument, CardCommand, Transport, report};
use nearpm_driver::Waiting;

fn argument(simulator: &Simulator) -> CardArgument {
    CardArgument { card: Transport::vfio_user(simulator.socket()) }
}

fn waiting(simulator: &Simulator, waiting: Waiting) -> CardArgument {
    let address = format!("vfio-user:{},wait={waiting}", simulator.socket().display());
    CardArgument { card: address.parse().expect("an address of a card") }
}

#[test]
fn info_registers_list_and_bench_tell_of_the_card_behind_the_socket() {
    let simulator = Simulator::new("trapping");
    let text = report(&CardCommand::Info(argument(&simulator))).unwrap();
    assert!(text.contains("orders host accesses") && text.contains("4 MiB"), "{text}");
    assert!(text.contains("completion records lie in ordinary pages"), "{text}");
    assert!(text.contains("does so by polling"), "{text}");
    let text = report(&CardCommand::Info(waiting(&simulator, Waiting::Interrupts))).unwrap();
    assert!(text.contains("does so by interrupts"), "{text}");
    let text = report(&CardCommand::Registers(argument(&simulator))).unwrap();
    assert!(text.contains("0x314d504e"), "the identity: {text}");
    assert!(text.contains("STATE") && text.contains("State of the card"), "{text}");
    let text = report(&CardCommand::List { card: vec![argument(&simulator).card] }).unwrap();
    assert!(text.contains("model") && text.contains("open") && text.contains("4 MiB"), "{text}");
    for how in [Waiting::Polling, Waiting::Interrupts] {
        let text = report(&CardCommand::Bench { card: waiting(&simulator, how), count: 500 }).unwrap();
        println!("{text}");
        assert!(text.contains("register read") && text.contains("nothing about a card"), "{text}");
    }
}

#[test]
fn the_selftest_passes_in_both_modes_of_the_window_and_leaves_nothing_behind() {
    let modes = ["trapping", "mapped"].map(|window| [Waiting::Polling, Waiting::Interrupts].map(|how| (window, how)));
    for (window, how) in modes.into_iter().flatten() {
        let simulator = Simulator::new(window);
        let text = report(&CardCommand::Selftest(waiting(&simulator, how))).unwrap();
        assert_eq!(text.matches("pass").count(), 6, "{window}: {text}");
        let text = report(&CardCommand::Info(argument(&simulator))).unwrap();
        assert!(!text.contains("selftest-"), "{window}: {text}");
        assert_eq!(text.contains("orders host accesses"), window == "trapping", "{text}");
    }
}

#[test]
fn a_socket_that_nobody_serves_is_refused_with_what_to_do() {
    let simulator = Simulator::prepared("trapping");
    let error = report(&CardCommand::Info(argument(&simulator))).unwrap_err();
    assert!(format!("{error:#}").contains("start the simulator"), "{error:#}");
}

#[test]
fn firmware_is_told_and_loaded_and_a_file_that_is_none_changes_nothing() {
    let simulator = Simulator::new("trapping");
    let firmware = |load| report(&CardCommand::Firmware { card: argument(&simulator), load });
    let text = firmware(None).unwrap();
    assert!(text.contains("slot 1") && text.contains("ships with this program"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    std::fs::write(&image, nearpm_firmware::standard().bytes()).unwrap();
    let text = firmware(Some(image.clone())).unwrap();
    assert!(text.contains("loaded") && text.contains("in force: slot 0"), "{text}");
    std::fs::write(&image, b"nonsense").unwrap();
    let error = format!("{:#}", firmware(Some(image)).unwrap_err());
    assert!(error.contains("refused"), "{error}");
    assert!(firmware(None).unwrap().contains("slot 0"));
}
