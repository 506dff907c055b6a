//! What the channel allows at best: the ceilings that measured cards are compared with.

use std::fmt;

use nearpm_interface::geometry::LINE;

use super::{Config, Ddr4, WriteBeat};
use crate::core::Medium;

/// Beats of the bursts that the streams use.
const BURST: usize = 16;
/// Bytes that a stream goes over before it starts again.
const SPAN: u64 = 8 << 20;
/// Lines that a stream moves: several refresh intervals.
const STREAM_LINES: usize = 24_000;

/// State of the bank that an idle read meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// Its row is open.
    Hit,
    /// No row is open.
    Closed,
    /// Another row is open.
    Conflict,
}

/// Card cycles from the address handshake of a read of one line to its data on the port, on an idle
/// channel.
pub fn idle_read_cycles(config: Config, card_mhz: u64, row: Row) -> u64 {
    let mut ddr4 = Ddr4::new(config, card_mhz, Medium::blank(1 << 20));
    match row {
        Row::Closed => {}
        Row::Hit => drop(read_line(&mut ddr4, 0)),
        Row::Conflict => drop(read_line(&mut ddr4, 128 << 10)),
    }
    read_line(&mut ddr4, 0)
}

/// Card cycles from the data handshake of a write of one line to its answer on the port, on an idle
/// channel.
pub fn idle_write_cycles(config: Config, card_mhz: u64) -> u64 {
    let mut ddr4 = Ddr4::new(config, card_mhz, Medium::blank(4096));
    ddr4.push_write(0, 0, &[LINE_OF_ONES]);
    let start = ddr4.cycle();
    while ddr4.take_write_answer().is_none() {
        ddr4.tick();
    }
    ddr4.cycle() - start
}

/// Sustained rate of a read stream, refresh included, in bytes per second.
pub fn read_bandwidth(config: Config, card_mhz: u64) -> f64 {
    let mut ddr4 = Ddr4::new(config, card_mhz, Medium::blank(2 << 20));
    let (mut asked, mut got) = (0, 0);
    while got < STREAM_LINES {
        got += ddr4.take_read_beat().is_some() as usize;
        if asked < STREAM_LINES && ddr4.can_read() {
            ddr4.push_read(0, (asked * LINE) as u64 % (2 << 20), BURST);
            asked += BURST;
        }
        ddr4.tick();
    }
    bytes_per_second(&ddr4, got, card_mhz)
}

/// Sustained rate of a write stream, refresh included, in bytes per second.
pub fn write_bandwidth(config: Config, card_mhz: u64) -> f64 {
    let mut ddr4 = Ddr4::new(config, card_mhz, Medium::blank(2 << 20));
    let (mut sent, mut done) = (0, 0);
    while done < STREAM_LINES {
        done += BURST * ddr4.take_write_answer().is_some() as usize;
        if ddr4.can_write() {
            ddr4.push_write(0, (sent * LINE) as u64 % (2 << 20), &[LINE_OF_ONES; BURST]);
            sent += BURST;
        }
        ddr4.tick();
    }
    bytes_per_second(&ddr4, done, card_mhz)
}

/// How source and destination of a copy lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Banks {
    /// Always in different banks.
    Apart,
    /// Always in different rows of the same banks: each change of direction reopens them.
    Shared,
}

/// [`copy_rate`] with source and destination in different banks: the best there is.
pub fn copy_bandwidth(config: Config, card_mhz: u64, batch: usize, room: usize) -> f64 {
    copy_rate(config, card_mhz, Banks::Apart, batch, room)
}

/// Sustained rate of a copy inside the channel in bytes copied per second, where the card asks for
/// `batch` lines of reads and then for `batch` lines of writes, with at most `room` lines read and
/// not yet handed over as write data.
///
/// # Panics
/// If `batch` is no multiple of a burst (16), or above `room`.
pub fn copy_rate(config: Config, card_mhz: u64, banks: Banks, batch: usize, room: usize) -> f64 {
    assert!(batch.is_multiple_of(BURST) && batch <= room, "a batch is whole bursts and fits in the room");
    let distance = match banks {
        Banks::Apart => SPAN + (64 << 10),
        Banks::Shared => SPAN,
    };
    let mut ddr4 = Ddr4::new(config, card_mhz, Medium::blank((SPAN + distance) as usize));
    let (mut asked, mut got, mut given, mut done) = (0, 0, 0, 0);
    let mut reading = true;
    let mut side = 0;
    while done < STREAM_LINES {
        got += ddr4.take_read_beat().is_some() as usize;
        done += BURST * ddr4.take_write_answer().is_some() as usize;
        if reading && ddr4.can_read() && asked - given + BURST <= room {
            ddr4.push_read(0, stream_address(asked), BURST);
            asked += BURST;
            side += BURST;
        } else if !reading && ddr4.can_write() && got >= given + BURST {
            ddr4.push_write(0, distance + stream_address(given), &[LINE_OF_ONES; BURST]);
            given += BURST;
            side += BURST;
        }
        if side == batch {
            reading = !reading;
            side = 0;
        }
        ddr4.tick();
    }
    bytes_per_second(&ddr4, done, card_mhz)
}

/// The figures of one configuration at one clock of the card.
pub struct Ceilings {
    /// Clock of the card.
    pub card_mhz: u64,
    /// Idle read of a closed row, an open row and a row in the way of another, in nanoseconds.
    pub read_ns: [f64; 3],
    /// Idle write to its answer, in nanoseconds.
    pub write_ns: f64,
    /// Read stream, in bytes per second.
    pub read: f64,
    /// Write stream, in bytes per second.
    pub write: f64,
    /// Copy by lines per direction, in bytes copied per second, with the banks apart and shared.
    pub copy: Vec<(usize, [f64; 2])>,
}

impl Ceilings {
    /// Measures them.
    pub fn measure(config: Config, card_mhz: u64) -> Self {
        let ns = |cycles: u64| cycles as f64 * 1000.0 / card_mhz as f64;
        let copy =
            |batch| [Banks::Apart, Banks::Shared].map(|banks| copy_rate(config, card_mhz, banks, batch, 2 * batch));
        Ceilings {
            card_mhz,
            read_ns: [Row::Closed, Row::Hit, Row::Conflict].map(|row| ns(idle_read_cycles(config, card_mhz, row))),
            write_ns: ns(idle_write_cycles(config, card_mhz)),
            read: read_bandwidth(config, card_mhz),
            write: write_bandwidth(config, card_mhz),
            copy: [16, 32, 64, 128].map(|batch| (batch, copy(batch))).to_vec(),
        }
    }
}

impl fmt::Display for Ceilings {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let [closed, hit, conflict] = self.read_ns;
        writeln!(f, "card at {} MHz", self.card_mhz)?;
        writeln!(f, "  idle read        {closed:.1} ns (row open {hit:.1}, conflict {conflict:.1})")?;
        writeln!(f, "  idle write       {:.1} ns to its answer", self.write_ns)?;
        writeln!(f, "  read stream      {:.2} GB/s", self.read / 1e9)?;
        writeln!(f, "  write stream     {:.2} GB/s", self.write / 1e9)?;
        for (batch, [apart, shared]) in &self.copy {
            writeln!(f, "  copy, {batch:3} lines  {:.2} GB/s (shared banks {:.2})", apart / 1e9, shared / 1e9)?;
        }
        Ok(())
    }
}

const LINE_OF_ONES: WriteBeat = WriteBeat { data: [1; LINE], strobes: u64::MAX };

fn stream_address(line: usize) -> u64 {
    (line * LINE) as u64 % SPAN
}

fn read_line(ddr4: &mut Ddr4, address: u64) -> u64 {
    let start = ddr4.cycle();
    ddr4.push_read(0, address, 1);
    while ddr4.take_read_beat().is_none() {
        ddr4.tick();
    }
    ddr4.cycle() - start
}

fn bytes_per_second(ddr4: &Ddr4, lines: usize, card_mhz: u64) -> f64 {
    (lines * LINE) as f64 * card_mhz as f64 * 1e6 / ddr4.cycle() as f64
}
