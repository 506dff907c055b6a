//! `nearpm card` on the cards that are simulated in its own process.

use nearpm_cli::card::{CardArgument, CardCommand, report};

/// What a command says on a card.
fn said(card: &str, command: impl Fn(CardArgument) -> CardCommand) -> String {
    let argument = CardArgument { card: card.parse().unwrap() };
    report(&command(argument)).unwrap_or_else(|error| panic!("{card}: {error:#}"))
}

#[test]
fn each_command_works_on_the_model_and_on_the_rtl() {
    let crc = format!("{:08x}", nearpm_firmware::standard().crc());
    for card in ["model", "rtl"] {
        for (text, expected) in [
            (said(card, CardCommand::Info), "orders host accesses"),
            (said(card, CardCommand::Registers), "0x314d504e"),
            (said(card, |card| CardCommand::Firmware { card, load: None }), &crc),
            (said(card, |card| CardCommand::Bench { card, count: 20 }), "simulated time"),
            (said(card, |card| CardCommand::List { card: vec![card.card] }), "20 MiB"),
        ] {
            assert!(text.contains(expected), "{expected} on {card}:\n{text}");
        }
        let text = said(card, CardCommand::Selftest);
        assert_eq!(text.matches("pass").count(), 6, "{card}:\n{text}");
    }
}
