//! Drives a slave port of the card.

use std::collections::VecDeque;

use nearpm_verilate::{Instance, Port};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{line, port, set_line};

/// The data of a beat, and which of its bytes are written.
pub type Beat = ([u8; 64], u64);

/// A read or write of one port.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Byte address.
    pub address: u64,
    /// Beats less one.
    pub len: u8,
    /// Data of a write; empty for a read.
    pub data: Vec<Beat>,
}

impl Transfer {
    /// A read of so many beats.
    pub fn read(address: u64, beats: u8) -> Self {
        Transfer { address, len: beats - 1, data: Vec::new() }
    }

    /// A write.
    pub fn write(address: u64, data: Vec<Beat>) -> Self {
        Transfer { address, len: data.len() as u8 - 1, data }
    }

    /// Whether it writes.
    pub fn is_write(&self) -> bool {
        !self.data.is_empty()
    }
}

/// A transfer that was answered.
pub struct Done {
    /// What was asked.
    pub transfer: Transfer,
    /// Lines of a read, whole where none was refused.
    pub lines: Vec<[u8; 64]>,
    /// A beat was answered with an error.
    pub error: bool,
}

/// A transfer, the lines that were read, and whether one of them was bad.
type OnItsWay = (Transfer, Vec<[u8; 64]>, bool);

/// An address channel.
struct Address {
    id: Option<Port>,
    address: Port,
    len: Option<Port>,
    valid: Port,
    ready: Port,
    offered: bool,
    taken: bool,
    /// What is on its way, by identifier.
    open: Vec<Option<OnItsWay>>,
}

impl Address {
    fn new(model: &mut Instance, bus: &str, channel: &str) -> Self {
        let name = |signal: &str| format!("{bus}_{channel}{signal}");
        for (signal, value) in [("size", 6), ("burst", 1)] {
            if let Ok(port) = model.port(&name(signal)) {
                model.set_u64(port, value);
            }
        }
        let id = model.port(&name("id")).ok();
        let open = (0..id.map_or(1, |id| 1 << model.info(id).bits)).map(|_| None).collect();
        let [address, valid, ready] = ["addr", "valid", "ready"].map(|s| port(model, bus, &format!("{channel}{s}")));
        Address { id, address, len: model.port(&name("len")).ok(), valid, ready, offered: false, taken: false, open }
    }

    /// A free identifier.
    fn free(&self, rng: &mut ChaCha8Rng) -> Option<usize> {
        let first = rng.random_range(0..self.open.len());
        (first..first + self.open.len()).map(|id| id % self.open.len()).find(|id| self.open[*id].is_none())
    }

    fn offer(&mut self, model: &mut Instance, id: usize, transfer: Transfer) {
        model.set_u64(self.address, transfer.address);
        for (port, value) in [(self.id, id as u64), (self.len, transfer.len.into())] {
            port.into_iter().for_each(|port| model.set_u64(port, value));
        }
        model.set_u64(self.valid, 1);
        self.offered = true;
        self.open[id] = Some((transfer, Vec::new(), false));
    }

    fn withdraw(&mut self, model: &mut Instance) {
        if std::mem::take(&mut self.taken) {
            self.offered = false;
            model.set_u64(self.valid, 0);
        }
    }
}

/// The port.
pub struct Slave {
    write: Address,
    read: Address,
    wdata: Port,
    wstrb: Port,
    wlast: Option<Port>,
    wvalid: Port,
    wready: Port,
    /// Beats that are still to be sent.
    beats: VecDeque<Beat>,
    beat_taken: bool,
    beat_offered: bool,
    answers: [(Option<Port>, Port, Port, Port); 2],
    rdata: Port,
    rlast: Option<Port>,
    listens: [bool; 2],
}

impl Slave {
    /// Resolves the ports of a bus.
    pub fn new(model: &mut Instance, bus: &str) -> Self {
        let answers = ["b", "r"].map(|channel| {
            let of = |signal: &str| port(model, bus, &format!("{channel}{signal}"));
            (model.port(&format!("{bus}_{channel}id")).ok(), of("resp"), of("valid"), of("ready"))
        });
        let [wdata, wstrb, wvalid, wready, rdata] =
            ["wdata", "wstrb", "wvalid", "wready", "rdata"].map(|s| port(model, bus, s));
        let [wlast, rlast] = ["wlast", "rlast"].map(|s| model.port(&format!("{bus}_{s}")).ok());
        let (write, read) = (Address::new(model, bus, "aw"), Address::new(model, bus, "ar"));
        let beats = VecDeque::new();
        Slave {
            write,
            read,
            wdata,
            wstrb,
            wlast,
            wvalid,
            wready,
            beats,
            beat_taken: false,
            beat_offered: false,
            answers,
            rdata,
            rlast,
            listens: [false; 2],
        }
    }

    /// Transfers that are not answered.
    pub fn open(&self) -> usize {
        self.write.open.iter().chain(&self.read.open).flatten().count()
    }

    /// Whether any of what is on its way has a line.
    pub fn touches(&self, line: u64) -> bool {
        let has =
            |(t, ..): &(Transfer, Vec<_>, bool)| (t.address / 64..=t.address / 64 + u64::from(t.len)).contains(&line);
        self.write.open.iter().chain(&self.read.open).flatten().any(has)
    }

    /// Whether a transfer of that direction can be offered.
    pub fn has_room(&self, is_write: bool) -> bool {
        let address = if is_write { &self.write } else { &self.read };
        !address.offered && address.open.iter().any(Option::is_none) && (!is_write || self.beats.is_empty())
    }

    /// Offers a transfer; [`Slave::has_room`] said that it can.
    pub fn offer(&mut self, model: &mut Instance, rng: &mut ChaCha8Rng, transfer: Transfer) {
        let address = if transfer.is_write() { &mut self.write } else { &mut self.read };
        let id = address.free(rng).expect("there is room");
        self.beats.extend(&transfer.data);
        address.offer(model, id, transfer);
    }

    /// Before the cycle: ends what was taken, offers a beat, listens for answers. One in `patience`
    /// cycles is a pause.
    pub fn drive(&mut self, model: &mut Instance, rng: &mut ChaCha8Rng, patience: u32) {
        self.write.withdraw(model);
        self.read.withdraw(model);
        if std::mem::take(&mut self.beat_taken) {
            self.beats.pop_front();
            self.beat_offered = false;
            model.set_u64(self.wvalid, 0);
        }
        if !self.beat_offered
            && rng.random_range(0..patience) != 0
            && let Some((data, strobes)) = self.beats.front()
        {
            set_line(model, self.wdata, data);
            let mask = (1_u128 << model.info(self.wstrb).bits) - 1;
            model.set_u64(self.wstrb, strobes & mask as u64);
            self.wlast.into_iter().for_each(|last| model.set_u64(last, u64::from(self.beats.len() == 1)));
            model.set_u64(self.wvalid, 1);
            self.beat_offered = true;
        }
        for (channel, (.., ready)) in self.answers.iter().enumerate() {
            self.listens[channel] = rng.random_range(0..patience) != 0;
            model.set_u64(*ready, self.listens[channel].into());
        }
    }

    /// Before the edge: takes answers and sees what the card takes.
    ///
    /// # Panics
    /// If the card answers what was not asked, or otherwise than it was.
    pub fn sample(&mut self, model: &Instance) -> Vec<Done> {
        for address in [&mut self.write, &mut self.read] {
            address.taken = address.offered && model.get_u64(address.ready) == 1;
        }
        self.beat_taken = self.beat_offered && model.get_u64(self.wready) == 1;
        let mut done = Vec::new();
        for (channel, (id, response, valid, _)) in self.answers.iter().enumerate() {
            if !self.listens[channel] || model.get_u64(*valid) == 0 {
                continue;
            }
            let address = [&mut self.write, &mut self.read][channel].open.as_mut_slice();
            let slot = &mut address[id.map_or(0, |id| model.get_u64(id)) as usize];
            let (transfer, lines, error) = slot.as_mut().expect("the card answers what was asked");
            *error |= model.get_u64(*response) != 0;
            let mut ends = true;
            if channel == 1 {
                lines.push(line(model, self.rdata));
                ends = lines.len() == usize::from(transfer.len) + 1;
                let last = self.rlast.is_none_or(|last| model.get_u64(last) == 1);
                assert_eq!(last, ends, "RLAST marks the last beat of a burst");
            }
            if ends {
                let (transfer, lines, error) = slot.take().expect("it was there");
                done.push(Done { transfer, lines, error });
            }
        }
        done
    }
}
