//! The ports of the top module, by their standard AXI names.

use nearpm_interface::geometry::LINE;
use nearpm_verilate::{Error, Instance, Port};

/// The model, and whether an input has changed since it settled.
pub struct Pins {
    pub model: Instance,
    changed: bool,
}

impl Pins {
    pub fn new(model: Instance) -> Self {
        Pins { model, changed: true }
    }

    /// Reads an output or input.
    #[inline]
    pub fn get(&self, port: Port) -> u64 {
        self.model.get_u64(port)
    }

    /// Reads a bit.
    #[inline]
    pub fn is_high(&self, port: Port) -> bool {
        self.model.get_u64(port) != 0
    }

    /// Sets an input of up to 64 bits.
    #[inline]
    pub fn set(&mut self, port: Port, value: u64) {
        self.model.set_u64(port, value);
        self.changed = true;
    }

    /// Sets an input of 512 bits, or of 32 with the first four bytes.
    pub fn set_line(&mut self, port: Port, line: &[u8; LINE]) {
        self.model.set_words(port, &words(line)[..self.model.info(port).bits as usize / 32]);
        self.changed = true;
    }

    /// Sets an input of any width.
    pub fn set_words(&mut self, port: Port, words: &[u32]) {
        self.model.set_words(port, words);
        self.changed = true;
    }

    /// Reads a port of 512 bits, or one of 32 into the first four bytes.
    pub fn line(&self, port: Port) -> [u8; LINE] {
        let mut words = [0; LINE / 4];
        self.model.get_words(port, &mut words);
        let mut line = [0; LINE];
        for (bytes, word) in line.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        line
    }

    /// Lets the outputs follow the inputs.
    #[inline]
    pub fn settle(&mut self) {
        if std::mem::take(&mut self.changed) {
            self.model.settle();
        }
    }
}

fn words(line: &[u8; LINE]) -> [u32; LINE / 4] {
    std::array::from_fn(|i| u32::from_le_bytes(line[4 * i..4 * i + 4].try_into().expect("four bytes")))
}

/// An input bit that is set only when it changes.
pub struct Bit {
    port: Port,
    value: bool,
}

impl Bit {
    pub fn new(pins: &mut Pins, name: &str, value: bool) -> Result<Self, Error> {
        let port = pins.model.port(name)?;
        pins.set(port, value as u64);
        Ok(Bit { port, value })
    }

    #[inline]
    pub fn drive(&mut self, pins: &mut Pins, value: bool) {
        if self.value != value {
            self.value = value;
            pins.set(self.port, value as u64);
        }
    }

    #[inline]
    pub fn value(&self) -> bool {
        self.value
    }
}

/// A port that a narrower bus (AXI4-Lite, or one without identifiers) does not have.
pub fn optional(pins: &Pins, name: String) -> Option<Port> {
    pins.model.port(&name).ok()
}

/// Sets a constant input, where the port exists.
pub fn tie(pins: &mut Pins, name: String, value: u64) {
    if let Some(port) = optional(pins, name) {
        pins.set(port, value);
    }
}
