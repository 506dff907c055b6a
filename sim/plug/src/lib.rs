//! The simulated card in the process of a program that asks for it with `NEARPM_CARD=FILE`: what a
//! library for programs calls when it has one ([`provide`]).
//!
//! FILE is the card's persistent memory. The card is put into a simulated computer when a process
//! opens its first pool on it, and taken out when the last one is closed; between the two nobody
//! else can have it. What a process leaves behind, however it ends, is what a real card would keep:
//!
//! - **Every store that reaches the card is written to FILE at once**, in the order in which they
//!   arrive (C1), before anybody can know that it has arrived, and so is what a command writes,
//!   when the command arrives (`commands.rs`). A process that is killed leaves a prefix of what it
//!   sent, with everything that was acknowledged: as if the computer went on without it.
//! - **A power cut of the card** (`NEARPM_CARD_CUT`) ends the process with FILE as the card's own
//!   power-fail save has left it. The next process boots the card on that, which replays the save,
//!   and shuts it down in order before it goes on.
//! - FILE is always that of a card that was shut down, or whose power has failed; what changes all
//!   of it is written beside it and renamed.
//!
//! Time is virtual: how long a program takes says nothing. `NEARPM_CARD_CLOCK` names a file that
//! holds the virtual time at which an access has arrived last, in picoseconds (eight bytes,
//! little-endian), for who follows the program (`sim/pmemobj-card/tests/virtual_time`).
//!
//! | file | holds |
//! |---|---|
//! | `image.rs` | FILE |
//! | `commands.rs` | what commands write to FILE |
//! | `computer.rs` | the simulated computer with the card |
//! | `cut.rs` | `NEARPM_CARD_CUT` |

#![warn(missing_docs)]

mod commands;
mod computer;
mod cut;
mod image;

use std::path::Path;

use nearpm_place::{CARD, Plugged};

use computer::Computer;

fn plug(file: &Path) -> Result<Plugged, String> {
    let cut = cut::from_environment()?;
    Computer::start(file, CARD, cut).map(|computer| Box::new(computer) as Plugged)
}

/// Says that this process has a simulated card. A library calls it when it is loaded, by a static
/// in `.init_array`.
pub extern "C" fn provide() {
    nearpm_place::provide(plug);
}
