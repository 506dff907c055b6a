//! A card that another process serves over vfio-user, which a program opens by
//! `NearPM_init_device`, with the ordinary library.

use nearpm_cards::SimulatedCard;
use nearpm_endpoint::server;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_simcard::device::{OneClient, Shared};
use nearpm_simcard::engine::{Engine, WindowMode};
use nearpm_simcard::store::Store;

use crate::rig::{Library, Program, fail, succeed};

#[test]
fn a_program_opens_a_card_of_another_process() {
    let program = Program::compile("sim/c-card/tests/c/served.c");
    let folder = program.folder.path().to_owned();
    let socket = folder.join("card.socket");
    let store = Store::open(&folder.join("pm"), 8 << 20).expect("a file for the card");
    let cards = SimulatedCard::Model.cards(MemoryPorts::One).expect("a model");
    let shared = Shared::new(Engine::start(cards, store, WindowMode::Trapping).expect("the card starts"));
    let runner = shared.clone();
    std::thread::spawn(move || runner.run());
    let at = socket.clone();
    std::thread::spawn(move || server::serve(&OneClient(shared), &at));
    while !socket.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let address = format!("vfio-user:{}", socket.display());
    // Twice: what the first process left is what the second one finds.
    for round in ["1", "2"] {
        succeed(&mut program.plain(Library::Ordinary, &[&address, "card", round]));
    }
    let named = format!("my={address},wait=polling");
    succeed(&mut program.plain(Library::Ordinary, &[&named, "my", "3"]));
}

#[test]
fn a_card_that_is_not_there_is_refused() {
    let program = Program::compile("sim/c-card/tests/c/served.c");
    for (address, code, said) in [
        ("vfio-user:/nowhere/card.socket", 10, "/nowhere/card.socket"),
        ("vfio:ffff:ff:1f.7", 10, "ffff:ff:1f.7"),
        ("vfio:ffff:ff:1f.7,window=fast", 10, "window=fast"),
        ("/dev/nearpm0", 10, "vfio:ADDRESS"),
        ("a/b=vfio:x", 10, "no name of a card"),
    ] {
        let text = fail(&mut program.plain(Library::Ordinary, &[address, "card", "1"]));
        assert!(text.contains(&format!("code {code},")) && text.contains(said), "{address}: {text}");
    }
}
