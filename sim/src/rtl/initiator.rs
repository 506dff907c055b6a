//! One slave port of the card, driven with single-beat accesses.

use nearpm_interface::geometry::LINE;
use nearpm_verilate::{Error, Port};

use super::pins::{Bit, Pins, optional, tie};
use crate::core::Ticket;

/// What a port has answered.
pub struct Response {
    pub ticket: Ticket,
    pub data: [u8; LINE],
    pub error: bool,
    pub is_write: bool,
}

/// Tickets by AXI identifier, of one direction.
struct Identifiers {
    free: u64,
    tickets: [Ticket; 64],
}

impl Identifiers {
    /// All identifiers of that many bits; a bus without identifiers has one transaction at a time.
    fn new(bits: u32) -> Self {
        let count = 1u32 << bits.min(6);
        Identifiers { free: u64::MAX >> (64 - count), tickets: [Ticket(0); 64] }
    }

    fn is_free(&self) -> bool {
        self.free != 0
    }

    fn take(&mut self, ticket: Ticket) -> u64 {
        let id = self.free.trailing_zeros();
        self.free &= !(1 << id);
        self.tickets[id as usize] = ticket;
        id as u64
    }

    fn give_back(&mut self, id: u64) -> Ticket {
        assert!(self.free >> id & 1 == 0, "the card answered identifier {id}, which is not in use");
        self.free |= 1 << id;
        self.tickets[id as usize]
    }
}

/// Address and identifier ports of a channel.
struct Address {
    id: Option<Port>,
    address: Port,
    valid: Bit,
    ready: Port,
}

impl Address {
    fn new(pins: &mut Pins, bus: &str, channel: &str) -> Result<Self, Error> {
        let name = |signal: &str| format!("{bus}_{channel}{signal}");
        // Single beats of the whole bus width, incrementing.
        tie(pins, name("len"), 0);
        tie(pins, name("size"), 6);
        tie(pins, name("burst"), 1);
        Ok(Address {
            id: optional(pins, name("id")),
            address: pins.model.port(&name("addr"))?,
            ready: pins.model.port(&name("ready"))?,
            valid: Bit::new(pins, &name("valid"), false)?,
        })
    }

    fn id_bits(&self, pins: &Pins) -> u32 {
        self.id.map_or(0, |port| pins.model.info(port).bits)
    }

    fn present(&mut self, pins: &mut Pins, id: u64, address: u64) {
        pins.set(self.address, address);
        if let Some(port) = self.id {
            pins.set(port, id);
        }
        self.valid.drive(pins, true);
    }

    /// After the edge: whether the handshake that was seen before it has happened; ends the offer
    /// then.
    fn step(&mut self, pins: &mut Pins, seen: bool) {
        if seen {
            self.valid.drive(pins, false);
        }
    }

    fn handshake(&self, pins: &Pins) -> bool {
        self.valid.value() && pins.is_high(self.ready)
    }
}

/// A slave port.
pub struct Initiator {
    aw: Address,
    wdata: Port,
    wstrb: Port,
    wvalid: Bit,
    wready: Port,
    bid: Option<Port>,
    bresp: Port,
    bvalid: Port,
    ar: Address,
    rid: Option<Port>,
    rdata: Port,
    rresp: Port,
    rvalid: Port,
    writes: Identifiers,
    reads: Identifiers,
    /// Presented and not answered.
    open_writes: usize,
    open_reads: usize,
}

impl Initiator {
    /// Resolves the ports of `bus` and ties down what does not change: responses are always taken.
    pub fn new(pins: &mut Pins, bus: &str) -> Result<Self, Error> {
        let name = |signal: &str| format!("{bus}_{signal}");
        Bit::new(pins, &name("bready"), true)?;
        Bit::new(pins, &name("rready"), true)?;
        tie(pins, name("wlast"), 1);
        let (aw, ar) = (Address::new(pins, bus, "aw")?, Address::new(pins, bus, "ar")?);
        let wvalid = Bit::new(pins, &name("wvalid"), false)?;
        let port = |signal: &str| pins.model.port(&name(signal));
        Ok(Initiator {
            wdata: port("wdata")?,
            wstrb: port("wstrb")?,
            wvalid,
            wready: port("wready")?,
            bid: optional(pins, name("bid")),
            bresp: port("bresp")?,
            bvalid: port("bvalid")?,
            rid: optional(pins, name("rid")),
            rdata: port("rdata")?,
            rresp: port("rresp")?,
            rvalid: port("rvalid")?,
            writes: Identifiers::new(aw.id_bits(pins)),
            reads: Identifiers::new(ar.id_bits(pins)),
            aw,
            ar,
            open_writes: 0,
            open_reads: 0,
        })
    }

    /// Whether a write can be presented: the last handshakes are over and an identifier is free.
    pub fn can_write(&self) -> bool {
        !self.is_presenting() && self.writes.is_free()
    }

    /// Whether a read can be presented.
    pub fn can_read(&self) -> bool {
        !self.is_presenting() && self.reads.is_free()
    }

    /// Whether an address or data handshake is still to come.
    pub fn is_presenting(&self) -> bool {
        self.aw.valid.value() || self.wvalid.value() || self.ar.valid.value()
    }

    /// Whether something is presented or not answered.
    pub fn is_busy(&self) -> bool {
        self.open_writes + self.open_reads > 0
    }

    /// Presents a write.
    pub fn write(&mut self, pins: &mut Pins, ticket: Ticket, address: u64, data: &[u8; LINE], strobes: u64) {
        let id = self.writes.take(ticket);
        self.open_writes += 1;
        self.aw.present(pins, id, address);
        pins.set_line(self.wdata, data);
        pins.set(self.wstrb, strobes);
        self.wvalid.drive(pins, true);
    }

    /// Presents a read.
    pub fn read(&mut self, pins: &mut Pins, ticket: Ticket, address: u64) {
        let id = self.reads.take(ticket);
        self.open_reads += 1;
        self.ar.present(pins, id, address);
    }

    /// Sees the handshakes of this cycle, before the edge. What is set for the next cycle is not
    /// seen by the card until then, so the handshakes are returned and applied by
    /// [`Initiator::step`] after it.
    pub fn sample(&mut self, pins: &Pins, mut answer: impl FnMut(Response)) -> Seen {
        if self.open_writes > 0 && pins.is_high(self.bvalid) {
            let ticket = self.writes.give_back(self.bid.map_or(0, |port| pins.get(port)));
            self.open_writes -= 1;
            answer(Response { ticket, data: [0; LINE], error: pins.get(self.bresp) != 0, is_write: true });
        }
        if self.open_reads > 0 && pins.is_high(self.rvalid) {
            let ticket = self.reads.give_back(self.rid.map_or(0, |port| pins.get(port)));
            self.open_reads -= 1;
            let data = pins.line(self.rdata);
            answer(Response { ticket, data, error: pins.get(self.rresp) != 0, is_write: false });
        }
        Seen {
            aw: self.aw.handshake(pins),
            w: self.wvalid.value() && pins.is_high(self.wready),
            ar: self.ar.handshake(pins),
        }
    }

    /// Ends the offers that were taken at the edge.
    pub fn step(&mut self, pins: &mut Pins, seen: Seen) {
        self.aw.step(pins, seen.aw);
        self.ar.step(pins, seen.ar);
        if seen.w {
            self.wvalid.drive(pins, false);
        }
    }
}

/// Handshakes of one cycle.
#[derive(Clone, Copy, Default)]
pub struct Seen {
    aw: bool,
    w: bool,
    ar: bool,
}
