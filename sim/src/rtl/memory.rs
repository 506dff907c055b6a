//! Joins a memory port of the card to its DDR4 channel.

use nearpm_interface::geometry::LINE;
use nearpm_interface::memory_ports::INTERLEAVE;
use nearpm_verilate::{Error, Port};

use super::pins::{Bit, Pins};
use crate::core::Activity;
use crate::ddr4::{Ddr4, WriteBeat};

/// Bytes of a beat, as AxSIZE has it.
const SIZE: u64 = 6;
/// AxBURST of an incrementing burst.
const INCR: u64 = 1;
/// BRESP or RRESP of an address without memory.
const DECERR: u64 = 3;

struct Address {
    id: Port,
    address: Port,
    len: Port,
    size: Port,
    burst: Port,
    valid: Port,
    ready: Bit,
}

impl Address {
    fn new(pins: &mut Pins, bus: &str, channel: &str) -> Result<Self, Error> {
        let name = |signal: &str| format!("{bus}_{channel}{signal}");
        let port = |signal: &str| pins.model.port(&name(signal));
        Ok(Address {
            id: port("id")?,
            address: port("addr")?,
            len: port("len")?,
            size: port("size")?,
            burst: port("burst")?,
            valid: port("valid")?,
            ready: Bit::new(pins, &name("ready"), false)?,
        })
    }

    /// The burst that is handed over in this cycle: identifier, address, beats.
    fn handshake(&self, pins: &Pins) -> Option<(u8, u64, usize)> {
        if !(self.ready.value() && pins.is_high(self.valid)) {
            return None;
        }
        let kind = (pins.get(self.size), pins.get(self.burst));
        assert_eq!(kind, (SIZE, INCR), "the card's bursts are incrementing lines");
        let (address, beats) = (pins.get(self.address), pins.get(self.len) as usize + 1);
        // Also with one port: what holds there is what the second port rests on.
        let end = (address % INTERLEAVE) as usize + beats * LINE;
        assert!(end <= INTERLEAVE as usize, "{beats} beats at {address:#x} leave their piece of the memory");
        Some((pins.get(self.id) as u8, address, beats))
    }
}

/// The port and the channel.
pub struct Memory {
    pub ddr4: Ddr4,
    ar: Address,
    aw: Address,
    rid: Port,
    rdata: Port,
    rresp: Port,
    rlast: Port,
    rvalid: Bit,
    rready: Port,
    wdata: Port,
    wstrb: Port,
    wlast: Port,
    wvalid: Port,
    wready: Bit,
    bid: Port,
    bresp: Port,
    bvalid: Bit,
    bready: Port,
    /// A beat that came before its address.
    early: Option<(WriteBeat, bool)>,
}

/// What was handed over in a cycle.
#[derive(Default)]
pub struct Handover {
    read: Option<(u8, u64, usize)>,
    write: Option<(u8, u64, usize)>,
    beat: Option<(WriteBeat, bool)>,
    read_taken: bool,
    answer_taken: bool,
}

impl Handover {
    /// What it shows of the card.
    pub fn activities(&self) -> impl Iterator<Item = Activity> + use<> {
        let issued = self.read.is_some() || self.write.is_some();
        let durable = self.answer_taken.then_some(Activity::Durable);
        issued.then_some(Activity::Issued).into_iter().chain(durable)
    }
}

impl Memory {
    /// Resolves the ports of `bus`.
    pub fn new(pins: &mut Pins, bus: &str, ddr4: Ddr4) -> Result<Self, Error> {
        let name = |signal: &str| format!("{bus}_{signal}");
        let (ar, aw) = (Address::new(pins, bus, "ar")?, Address::new(pins, bus, "aw")?);
        let [rvalid, wready, bvalid] =
            ["rvalid", "wready", "bvalid"].map(|signal| Bit::new(pins, &name(signal), false));
        let port = |signal: &str| pins.model.port(&name(signal));
        Ok(Memory {
            ddr4,
            ar,
            aw,
            rid: port("rid")?,
            rdata: port("rdata")?,
            rresp: port("rresp")?,
            rlast: port("rlast")?,
            rvalid: rvalid?,
            rready: port("rready")?,
            wdata: port("wdata")?,
            wstrb: port("wstrb")?,
            wlast: port("wlast")?,
            wvalid: port("wvalid")?,
            wready: wready?,
            bid: port("bid")?,
            bresp: port("bresp")?,
            bvalid: bvalid?,
            bready: port("bready")?,
            early: None,
        })
    }

    /// Before the cycle: shows the channel's side.
    #[inline]
    pub fn drive(&mut self, pins: &mut Pins) {
        self.ar.ready.drive(pins, self.ddr4.can_read());
        self.aw.ready.drive(pins, self.ddr4.can_write());
        let room = self.ddr4.can_write_beat() || (self.early.is_none() && !self.ddr4.lacks_data());
        self.wready.drive(pins, room);
        let beat = self.ddr4.read_beat();
        if let Some(beat) = beat {
            pins.set(self.rid, beat.id as u64);
            pins.set_line(self.rdata, &beat.data);
            pins.set(self.rlast, beat.last as u64);
            pins.set(self.rresp, if beat.error { DECERR } else { 0 });
        }
        self.rvalid.drive(pins, beat.is_some());
        let answer = self.ddr4.write_answer();
        if let Some(answer) = answer {
            pins.set(self.bid, answer.id as u64);
            pins.set(self.bresp, if answer.error { DECERR } else { 0 });
        }
        self.bvalid.drive(pins, answer.is_some());
    }

    /// Before the edge: sees the handshakes.
    #[inline]
    pub fn sample(&self, pins: &Pins) -> Handover {
        let beat = self.wready.value() && pins.is_high(self.wvalid);
        Handover {
            read: self.ar.handshake(pins),
            write: self.aw.handshake(pins),
            beat: beat.then(|| {
                let beat = WriteBeat { data: pins.line(self.wdata), strobes: pins.get(self.wstrb) };
                (beat, pins.is_high(self.wlast))
            }),
            read_taken: self.rvalid.value() && pins.is_high(self.rready),
            answer_taken: self.bvalid.value() && pins.is_high(self.bready),
        }
    }

    /// After the edge: applies the handshakes and lets the cycle pass.
    #[inline]
    pub fn step(&mut self, handover: Handover) {
        if handover.read_taken {
            self.ddr4.take_read_beat();
        }
        if handover.answer_taken {
            self.ddr4.take_write_answer();
        }
        if let Some((id, address, beats)) = handover.read {
            self.ddr4.push_read(id, address, beats);
        }
        if let Some((id, address, beats)) = handover.write {
            self.ddr4.push_write_address(id, address, beats);
        }
        if handover.beat.is_some() {
            assert!(self.early.is_none(), "one beat at most comes before its address");
            self.early = handover.beat;
        }
        if self.ddr4.lacks_data()
            && let Some((beat, last)) = self.early.take()
        {
            let ends = self.ddr4.push_write_beat(beat);
            assert_eq!(ends, last, "WLAST marks the last beat of its burst");
        }
        self.ddr4.tick();
    }
}
