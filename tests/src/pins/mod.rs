//! The RTL at its pins, with random traffic over the whole space of addresses.
//!
//! What drives the card here has no clock, no host and no link behind it: each port offers and
//! takes when a die says so, identifiers are any that are free, and memory is all that 40 bits
//! name, with answers in any order between identifiers. So it reaches values that no computer of
//! the other tests has the memory or the time for. It is there for the coverage of the RTL, and
//! checks what holds without knowing what each command does: every access is answered once; bursts
//! stay in their piece of the memory and inside it; a line that no pool holds is loaded as it was
//! stored, also behind power cuts with energy; and the card opens, or reports a loss where the
//! energy ended.
//!
//! | module | holds |
//! |---|---|
//! | [`slave`] | drives a slave port of the card |
//! | [`memory`] | the memory behind the card |
//! | [`peripherals`] | completion records and messages of other cards |
//! | [`past`] | what it finds of a long life |
//! | [`foreign`] | firmware and saves of others, whose seals hold |
//! | [`traffic`] | what is done next |
//! | [`session`] | a card from power-up to power cut |
//! | [`life`] | the lives that chance does not bring |
//! | [`lives`] | what chance does not bring: a long life, a full table of commands that wait |

pub mod foreign;
pub mod life;
pub mod lives;
pub mod memory;
pub mod past;
pub mod peripherals;
pub mod session;
pub mod slave;
pub mod traffic;

use nearpm_verilate::{Instance, Port};

/// A port of the card by its name.
///
/// # Panics
/// If the card has none of that name.
pub fn port(model: &Instance, bus: &str, signal: &str) -> Port {
    model.port(&format!("{bus}_{signal}")).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads a line of 64 bytes, or a shorter port into its first bytes.
pub fn line(model: &Instance, port: Port) -> [u8; 64] {
    let mut words = [0_u32; 16];
    model.get_words(port, &mut words);
    let mut line = [0; 64];
    line.chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
    line
}

/// Sets a port of whole words to the first bytes of a line.
pub fn set_line(model: &mut Instance, port: Port, line: &[u8; 64]) {
    let words: [u32; 16] =
        std::array::from_fn(|i| u32::from_le_bytes(line[4 * i..4 * i + 4].try_into().expect("four bytes")));
    let count = model.info(port).bits as usize / 32;
    model.set_words(port, &words[..count]);
}
