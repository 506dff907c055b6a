//! `libpmemobj.so.1` with a simulated card in it: the ordinary library, and what it calls when
//! `NEARPM_CARD=FILE` is set.
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
//! little-endian), for who follows the program (`tests/virtual_time.rs`).
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

use nearpm_pmemobj::place;

use computer::Computer;

fn plug(file: &Path) -> Result<place::Plugged, String> {
    let cut = cut::from_environment()?;
    Computer::start(file, place::CARD, cut).map(|computer| Box::new(computer) as place::Plugged)
}

extern "C" fn provide() {
    place::provide(plug);
}

/// Run by the loader, before the program. The linker is told to keep it, by its name.
#[used]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".init_array")]
#[allow(non_upper_case_globals, reason = "a symbol for the linker")]
pub static nearpm_pmemobj_card: extern "C" fn() = provide;
