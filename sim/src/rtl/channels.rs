//! The memory behind the card: a DDR4 channel behind each memory port that the design has.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nearpm_interface::geometry::LINE;
use nearpm_interface::memory_ports::{INTERLEAVE, MemoryPorts, on_device, on_port};
use nearpm_verilate::Error;

use super::memory::{Handover, Memory};
use super::pins::{Pins, optional};
use crate::core::{Activity, Medium};
use crate::ddr4::{Config, Ddr4};

/// The memory ports with their channels.
pub struct Channels {
    memories: Vec<Memory>,
    /// What was handed over in the cycle that ends, by port.
    handovers: Vec<Handover>,
}

impl Channels {
    /// Resolves the ports, and gives each its part of the medium.
    pub fn new(pins: &mut Pins, config: Config, card_mhz: u64, medium: Medium) -> Result<Self, Error> {
        let parts = match optional(pins, "m_axi_mem1_araddr".into()) {
            None => vec![medium],
            Some(_) => apart(&medium).into(),
        };
        let memories: Result<Vec<_>, _> = parts
            .into_iter()
            .enumerate()
            .map(|(port, part)| Memory::new(pins, &format!("m_axi_mem{port}"), Ddr4::new(config, card_mhz, part)))
            .collect();
        Ok(Channels { memories: memories?, handovers: Vec::new() })
    }

    /// Whether every burst has been answered.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.memories.iter().all(|memory| memory.ddr4.is_quiet())
    }

    /// What is durable, where one channel holds all of it.
    pub fn medium(&self) -> Option<&Medium> {
        match &self.memories[..] {
            [only] => Some(only.ddr4.medium()),
            _ => None,
        }
    }

    /// What is durable, of all channels.
    pub fn contents(&self) -> Cow<'_, Medium> {
        match &self.memories[..] {
            [first, second] => Cow::Owned(together([first.ddr4.medium(), second.ddr4.medium()])),
            several => Cow::Borrowed(several[0].ddr4.medium()),
        }
    }

    /// Write bursts that have become durable since power-up.
    pub fn durable_bursts(&self) -> u64 {
        self.memories.iter().map(|memory| memory.ddr4.durable_bursts()).sum()
    }

    /// Whether a power cut may drop or tear something.
    pub fn owes_writes(&self) -> bool {
        self.memories.iter().any(|memory| memory.ddr4.owes_writes())
    }

    /// The lines, by their device addresses, that [`Channels::power_fail`] would change, and what
    /// they would hold.
    pub fn lines_after_power_fail(&self, seed: u64) -> BTreeMap<u64, [u8; LINE]> {
        let lines =
            self.memories.iter().zip(seeds(seed)).map(|(memory, seed)| memory.ddr4.lines_after_power_fail(seed));
        if self.memories.len() == 1 {
            return lines.flatten().collect();
        }
        let on_device = |(port, lines): (usize, BTreeMap<_, _>)| {
            lines.into_iter().map(move |(at, line)| (on_device(port, at), line))
        };
        lines.enumerate().flat_map(on_device).collect()
    }

    /// Makes a line of the device's memory answer with an error from now on.
    pub fn plant_error(&mut self, address: u64) {
        match &mut self.memories[..] {
            [only] => only.ddr4.plant_error(address),
            several => {
                let (port, there) = on_port(address);
                several[port].ddr4.plant_error(there);
            }
        }
    }

    /// Before the cycle: shows the channels' side.
    #[inline]
    pub fn drive(&mut self, pins: &mut Pins) {
        self.memories.iter_mut().for_each(|memory| memory.drive(pins));
    }

    /// Before the edge: sees the handshakes.
    #[inline]
    pub fn sample(&mut self, pins: &Pins) {
        self.handovers.extend(self.memories.iter().map(|memory| memory.sample(pins)));
    }

    /// What the handshakes that were seen show of the card.
    pub fn activities(&self) -> impl Iterator<Item = Activity> {
        self.handovers.iter().flat_map(Handover::activities)
    }

    /// After the edge: applies the handshakes and lets the cycle pass.
    #[inline]
    pub fn step(&mut self) {
        for (memory, handover) in self.memories.iter_mut().zip(self.handovers.drain(..)) {
            memory.step(handover);
        }
    }

    /// Cuts the power; each channel drops or tears what it has not answered.
    pub fn power_fail(self, seed: u64) -> Medium {
        let mut parts: Vec<_> =
            self.memories.into_iter().zip(seeds(seed)).map(|(memory, seed)| memory.ddr4.power_fail(seed)).collect();
        match &parts[..] {
            [first, second] => together([first, second]),
            _ => parts.swap_remove(0),
        }
    }
}

/// The seed of each channel.
fn seeds(seed: u64) -> impl Iterator<Item = u64> {
    (0..).map(move |port| seed.wrapping_add(port))
}

/// Bytes of a piece of the memory that lies behind one port.
const PIECE: usize = INTERLEAVE as usize;
const PORTS: usize = MemoryPorts::Two.count();
const _: () = assert!(PIECE.is_multiple_of(LINE));

/// The device address of each piece behind a port, in the order of the port's own addresses.
fn pieces(port: usize, bytes: usize) -> impl Iterator<Item = usize> {
    assert!(bytes.is_multiple_of(PORTS * PIECE), "memory behind {PORTS} ports is whole pieces of each");
    (0..bytes / PORTS).step_by(PIECE).map(move |there| on_device(port, there as u64) as usize)
}

/// What lies behind each port.
fn apart(medium: &Medium) -> [Medium; PORTS] {
    std::array::from_fn(|port| {
        let pieces = pieces(port, medium.bytes.len());
        Medium { bytes: pieces.flat_map(|at| &medium.bytes[at..at + PIECE]).copied().collect() }
    })
}

/// The memory that lies behind the ports.
fn together(parts: [&Medium; PORTS]) -> Medium {
    let mut bytes = vec![0; parts.iter().map(|part| part.bytes.len()).sum()];
    for (port, part) in parts.into_iter().enumerate() {
        for (at, piece) in pieces(port, bytes.len()).zip(part.bytes.chunks_exact(PIECE)) {
            bytes[at..at + PIECE].copy_from_slice(piece);
        }
    }
    Medium { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_medium_behind_two_ports_is_the_same_medium() {
        let medium =
            Medium { bytes: (0..64 << 10).map(|at: u32| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect() };
        let parts = apart(&medium);
        for (address, byte) in medium.bytes.iter().enumerate() {
            let (port, there) = on_port(address as u64);
            assert_eq!(parts[port].bytes[there as usize], *byte);
        }
        assert!(together(parts.each_ref()) == medium);
    }
}
