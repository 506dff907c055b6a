//! Takes what the card writes to host memory.

use std::collections::VecDeque;

use nearpm_interface::geometry::LINE;
use nearpm_verilate::{Error, Port};

use super::pins::{Bit, Pins, optional, tie};
use crate::core::DmaWrite;

/// Cycles from the last data beat to its answer: the PCIe block takes the packet into its buffer.
const ANSWER_CYCLES: u64 = 4;
/// Writes that the PCIe block buffers before it stops the card.
const BUFFERED: usize = 32;

/// The port `m_axi_cpl`.
pub struct Completions {
    awid: Option<Port>,
    awaddr: Port,
    awlen: Option<Port>,
    awvalid: Port,
    awready: Bit,
    wdata: Port,
    wstrb: Port,
    wvalid: Port,
    wready: Bit,
    bid: Option<Port>,
    bvalid: Bit,
    bready: Port,
    addresses: VecDeque<(u64, u64)>,
    beats: VecDeque<([u8; LINE], u64)>,
    /// Identifier and cycle of each answer that is due.
    answers: VecDeque<(u64, u64)>,
    out: VecDeque<DmaWrite>,
}

impl Completions {
    /// Resolves the ports.
    pub fn new(pins: &mut Pins) -> Result<Self, Error> {
        let name = |signal: &str| format!("m_axi_cpl_{signal}");
        tie(pins, name("bresp"), 0);
        let [awready, wready, bvalid] =
            ["awready", "wready", "bvalid"].map(|signal| Bit::new(pins, &name(signal), false));
        let port = |signal: &str| pins.model.port(&name(signal));
        Ok(Completions {
            awid: optional(pins, name("awid")),
            awaddr: port("awaddr")?,
            awlen: optional(pins, name("awlen")),
            awvalid: port("awvalid")?,
            awready: awready?,
            wdata: port("wdata")?,
            wstrb: port("wstrb")?,
            wvalid: port("wvalid")?,
            wready: wready?,
            bid: optional(pins, name("bid")),
            bvalid: bvalid?,
            bready: port("bready")?,
            addresses: VecDeque::new(),
            beats: VecDeque::new(),
            answers: VecDeque::new(),
            out: VecDeque::new(),
        })
    }

    /// Takes the oldest write.
    pub fn take(&mut self) -> Option<DmaWrite> {
        self.out.pop_front()
    }

    /// Whether nothing is half done.
    pub fn is_quiet(&self) -> bool {
        self.addresses.is_empty() && self.beats.is_empty() && self.answers.is_empty()
    }

    /// Before cycle `cycle`: shows room and the answer that is due.
    #[inline]
    pub fn drive(&mut self, pins: &mut Pins, cycle: u64) {
        self.awready.drive(pins, self.addresses.len() < BUFFERED);
        self.wready.drive(pins, self.beats.len() < BUFFERED);
        let due = self.answers.front().filter(|(_, at)| *at <= cycle).map(|(id, _)| *id);
        if let (Some(port), Some(id)) = (self.bid, due) {
            pins.set(port, id);
        }
        self.bvalid.drive(pins, due.is_some());
    }

    /// Before the edge that ends cycle `cycle`: takes what is handed over.
    #[inline]
    pub fn sample(&mut self, pins: &Pins, cycle: u64) {
        if self.awready.value() && pins.is_high(self.awvalid) {
            let beats = self.awlen.map_or(0, |port| pins.get(port)) + 1;
            assert_eq!(beats, 1, "completion records are single beats");
            let id = self.awid.map_or(0, |port| pins.get(port));
            self.addresses.push_back((id, pins.get(self.awaddr)));
        }
        if self.wready.value() && pins.is_high(self.wvalid) {
            self.beats.push_back((pins.line(self.wdata), pins.get(self.wstrb)));
        }
        if self.bvalid.value() && pins.is_high(self.bready) {
            self.answers.pop_front();
        }
        if !self.addresses.is_empty() && !self.beats.is_empty() {
            let (id, address) = self.addresses.pop_front().expect("not empty");
            let (data, strobes) = self.beats.pop_front().expect("not empty");
            self.answers.push_back((id, cycle + ANSWER_CYCLES));
            self.out.push_back(DmaWrite { bus_address: address & !(LINE as u64 - 1), data, strobes, cycle });
        }
    }
}
