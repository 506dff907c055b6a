//! The AXI4 port in the card's clock, the contents, and the power cut.

use std::collections::{BTreeMap, VecDeque};

use nearpm_interface::geometry::LINE;

use super::burst::{
    MAX_BEATS, ReadBeat, ReadBurst, ReadSlot, WriteAnswer, WriteBeat, WriteBurst, check_burst, in_memory, spread,
};
use super::channel::Channel;
use super::config::{CONTROLLER_MHZ, Config};
use super::map::DramAddress;
use super::stats::Stats;
use crate::core::{Medium, merge};
use crate::rng::Rng;

/// A memory channel with its contents.
///
/// In each cycle of the card: look at [`Ddr4::read_beat`] and [`Ddr4::write_answer`], take them or
/// not, push what the card offers where there is room, then [`Ddr4::tick`].
pub struct Ddr4 {
    config: Config,
    medium: Medium,
    channel: Channel,
    card_mhz: u64,
    /// Controller cycles owed to the card's clock, times `card_mhz`.
    phase: u64,
    /// Controller cycles that a crossing adds in front and behind.
    crossing: (u64, u64),
    cycle: u64,
    ar: VecDeque<ReadBurst>,
    /// Lines of the first burst of `ar` that have entered.
    ar_done: usize,
    reads: VecDeque<ReadSlot>,
    /// Number of the beat at the front of `reads`.
    first_beat: u64,
    beat: Option<ReadBeat>,
    aw: VecDeque<WriteBurst>,
    /// Data of the bursts of `aw`, oldest first, until they are answered.
    data: VecDeque<WriteBeat>,
    /// Lines on their way to the scheduler, with the controller cycle of their arrival.
    staged: VecDeque<(DramAddress, u64)>,
    answer: Option<WriteAnswer>,
    /// Write bursts that have become durable.
    durable_bursts: u64,
    /// Lines that answer with an error, as a test plants them.
    bad: Vec<u64>,
}

impl Ddr4 {
    /// A channel with contents `medium`, for a card at `card_mhz`.
    ///
    /// # Panics
    /// If the clock is 0 or above 1 GHz.
    pub fn new(config: Config, card_mhz: u64, medium: Medium) -> Self {
        assert!((1..=1000).contains(&card_mhz), "the card's clock is 1 to 1000 MHz");
        let cycles = config.controller.crossing;
        let crossing = match card_mhz == CONTROLLER_MHZ {
            true => (0, 0),
            // In: edges of the controller. Out: edges of the card, counted in the controller's
            // cycles.
            false => (cycles, cycles * CONTROLLER_MHZ / card_mhz),
        };
        let controller = config.controller;
        Ddr4 {
            config,
            medium,
            channel: Channel::new(config),
            card_mhz,
            phase: 0,
            crossing,
            cycle: 0,
            ar: VecDeque::with_capacity(controller.bursts),
            ar_done: 0,
            reads: VecDeque::with_capacity(controller.read_lines),
            first_beat: 0,
            beat: None,
            aw: VecDeque::with_capacity(controller.bursts),
            data: VecDeque::with_capacity(controller.bursts * MAX_BEATS),
            staged: VecDeque::with_capacity(controller.write_lines),
            answer: None,
            durable_bursts: 0,
            bad: Vec::new(),
        }
    }

    /// Makes a line answer with an error from now on. What is stored there is kept all the same.
    pub fn plant_error(&mut self, address: u64) {
        self.bad.push(address);
    }

    /// Whether a read burst would be taken now (ARREADY).
    #[inline]
    pub fn can_read(&self) -> bool {
        self.ar.len() < self.config.controller.bursts
    }

    /// Takes a read burst (AR handshake): `beats` lines from `address`.
    ///
    /// # Panics
    /// If there is no room, or the burst is no aligned INCR burst inside 4 KiB.
    pub fn push_read(&mut self, id: u8, address: u64, beats: usize) {
        assert!(self.can_read(), "the read burst was not accepted");
        check_burst(address, beats);
        let ready = self.channel.now + self.config.controller.read_front + self.crossing.0;
        self.ar.push_back(ReadBurst { id, address, beats, ready });
    }

    /// Whether a write burst's address would be taken now (AWREADY).
    #[inline]
    pub fn can_write(&self) -> bool {
        self.aw.len() < self.config.controller.bursts
    }

    /// Takes the address of a write burst (AW handshake); its data follows by
    /// [`Ddr4::push_write_beat`].
    ///
    /// # Panics
    /// If there is no room, or the burst is no aligned INCR burst inside 4 KiB.
    pub fn push_write_address(&mut self, id: u8, address: u64, beats: usize) {
        assert!(self.can_write(), "the write burst was not accepted");
        check_burst(address, beats);
        self.aw.push_back(WriteBurst { id, address, beats, given: 0, entered: 0, answer: u64::MAX });
    }

    /// Whether a beat of write data would be taken now (WREADY): its address is there, and the beat
    /// before it has gone through.
    #[inline]
    pub fn can_write_beat(&self) -> bool {
        let open = |burst: &&WriteBurst| burst.given < burst.beats || burst.entered < burst.given;
        self.aw.iter().find(open).is_some_and(|burst| burst.given == burst.entered)
    }

    /// Whether an address has been taken whose data is not complete.
    #[inline]
    pub fn lacks_data(&self) -> bool {
        self.aw.iter().any(|burst| burst.given < burst.beats)
    }

    /// Takes the next beat of write data (W handshake), of the oldest burst that lacks some; true
    /// if it was its last.
    ///
    /// # Panics
    /// If no burst lacks data.
    pub fn push_write_beat(&mut self, beat: WriteBeat) -> bool {
        let burst = self.aw.iter_mut().find(|b| b.given < b.beats).expect("write data follows its address");
        burst.given += 1;
        self.data.push_back(beat);
        burst.given == burst.beats
    }

    /// Takes a whole write burst; its beats go through the port one a cycle, as if offered without
    /// a gap.
    ///
    /// # Panics
    /// If there is no room, data of an earlier burst is missing, or the burst is no aligned INCR
    /// burst inside 4 KiB.
    pub fn push_write(&mut self, id: u8, address: u64, beats: &[WriteBeat]) {
        assert!(self.aw.iter().all(|b| b.given == b.beats), "an earlier burst lacks data");
        self.push_write_address(id, address, beats.len());
        self.aw.back_mut().expect("just pushed").given = beats.len();
        self.data.extend(beats);
    }

    /// The read beat on the port (R valid).
    #[inline]
    pub fn read_beat(&self) -> Option<&ReadBeat> {
        self.beat.as_ref()
    }

    /// Takes the read beat (R handshake).
    #[inline]
    pub fn take_read_beat(&mut self) -> Option<ReadBeat> {
        self.beat.take()
    }

    /// The write answer on the port (B valid).
    #[inline]
    pub fn write_answer(&self) -> Option<WriteAnswer> {
        self.answer
    }

    /// Takes the write answer (B handshake).
    #[inline]
    pub fn take_write_answer(&mut self) -> Option<WriteAnswer> {
        self.answer.take()
    }

    /// Lets one cycle of the card pass.
    #[inline]
    pub fn tick(&mut self) {
        self.cycle += 1;
        self.phase += CONTROLLER_MHZ;
        if !self.aw.is_empty() {
            self.enter_write_beat();
        }
        while self.phase >= self.card_mhz {
            self.phase -= self.card_mhz;
            self.step();
        }
        if self.beat.is_none() && !self.reads.is_empty() {
            self.present_read();
        }
        if self.answer.is_none() && !self.aw.is_empty() {
            self.present_answer();
        }
    }

    /// Lets cycles pass while nothing is in flight; the same as that many [`Ddr4::tick`]s.
    ///
    /// # Panics
    /// If something is in flight.
    pub fn skip(&mut self, cycles: u64) {
        assert!(self.is_idle(), "time is skipped only while nothing is in flight");
        self.cycle += cycles;
        self.phase += cycles * CONTROLLER_MHZ;
        self.channel.skip(self.phase / self.card_mhz);
        self.phase %= self.card_mhz;
    }

    /// Whether nothing is in flight, in the port or in the queues.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.is_quiet() && self.channel.is_idle() && self.staged.is_empty()
    }

    /// Whether every burst has been answered and its answer taken. Durable writes may still wait
    /// for the DRAM.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.ar.is_empty()
            && self.reads.is_empty()
            && self.beat.is_none()
            && self.aw.is_empty()
            && self.answer.is_none()
    }

    /// Card cycles since power-up.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The contents as reads see them now.
    pub fn medium(&self) -> &Medium {
        &self.medium
    }

    /// Changes the contents behind the controller's back, as a test's setup does.
    pub fn medium_mut(&mut self) -> &mut Medium {
        &mut self.medium
    }

    /// Counters of the channel.
    pub fn stats(&self) -> Stats {
        let stats = self.channel.stats;
        let columns = stats.read_lines + stats.write_lines;
        Stats { row_hits: columns.saturating_sub(stats.row_misses), ..stats }
    }

    /// Write bursts that have become durable since power-up: [`Ddr4::medium`] changes with no other
    /// event.
    pub fn durable_bursts(&self) -> u64 {
        self.durable_bursts
    }

    /// Whether a power cut may drop or tear something: write data was handed over whose burst is
    /// not answered.
    pub fn owes_writes(&self) -> bool {
        !self.data.is_empty()
    }

    /// The lines that a power cut now may change, and what they then hold. Of every write that was
    /// not answered, each beat that was handed over is kept, dropped or torn at 8 bytes, by `seed`.
    pub fn lines_after_power_fail(&self, seed: u64) -> BTreeMap<u64, [u8; LINE]> {
        let mut rng = Rng::new(seed);
        let mut lines = BTreeMap::new();
        let beats = self.aw.iter().flat_map(|burst| (0..burst.given).map(|beat| burst.address + (beat * LINE) as u64));
        for (address, WriteBeat { data, strobes }) in beats.zip(&self.data) {
            let kept = match rng.below(3) {
                0 => 0,
                1 => u64::MAX,
                _ => spread(rng.bits() as u8),
            };
            if in_memory(&self.medium, address, 1) {
                let old = || self.medium.bytes[address as usize..][..LINE].try_into().expect("a line");
                merge(lines.entry(address).or_insert_with(old), data, strobes & kept);
            }
        }
        lines
    }

    /// Cuts the power: what remains is the medium with [`Ddr4::lines_after_power_fail`].
    pub fn power_fail(mut self, seed: u64) -> Medium {
        for (address, line) in self.lines_after_power_fail(seed) {
            self.medium.write_line(address, &line, u64::MAX);
        }
        self.medium
    }

    /// One cycle of the controller.
    #[inline]
    fn step(&mut self) {
        if let Some(issued) = self.channel.step() {
            self.reads[(issued.beat - self.first_beat) as usize].done = issued.done + self.crossing.1;
        }
        let now = self.channel.now;
        if let Some(&(place, ready)) = self.staged.front()
            && ready <= now
        {
            self.staged.pop_front();
            self.channel.push_write(place);
        }
        if let Some(burst) = self.ar.front()
            && burst.ready <= now
            && self.reads.len() < self.config.controller.read_lines
        {
            let (id, beats) = (burst.id, burst.beats);
            let address = burst.address + (self.ar_done * LINE) as u64;
            self.ar_done += 1;
            let last = self.ar_done == beats;
            if last {
                self.ar.pop_front();
                self.ar_done = 0;
            }
            self.channel.push_read(DramAddress::of(address), self.first_beat + self.reads.len() as u64);
            self.reads.push_back(ReadSlot { id, address, last, done: u64::MAX });
        }
    }

    /// Moves one beat of write data from the port towards the scheduler's queue, where there is
    /// room.
    fn enter_write_beat(&mut self) {
        if self.channel.queued_writes() + self.staged.len() >= self.config.controller.write_lines {
            return;
        }
        let Some(burst) = self.aw.iter_mut().find(|b| b.entered < b.beats) else { return };
        if burst.entered == burst.given {
            return;
        }
        let address = burst.address + (burst.entered * LINE) as u64;
        let controller = &self.config.controller;
        let now = self.channel.now + self.crossing.0;
        burst.entered += 1;
        if burst.entered == burst.beats {
            burst.answer = now + controller.write_answer + self.crossing.1;
        }
        self.staged.push_back((DramAddress::of(address), now + controller.write_front));
    }

    fn present_read(&mut self) {
        let slot = self.reads[0];
        if slot.done > self.channel.now {
            return;
        }
        self.reads.pop_front();
        self.first_beat += 1;
        let error = !in_memory(&self.medium, slot.address, 1);
        let mut data = [0; LINE];
        if !error {
            data.copy_from_slice(&self.medium.bytes[slot.address as usize..][..LINE]);
        }
        let error = error || self.bad.contains(&slot.address);
        self.beat = Some(ReadBeat { id: slot.id, data, last: slot.last, error });
    }

    fn present_answer(&mut self) {
        if self.aw[0].answer > self.channel.now {
            return;
        }
        let burst = self.aw.pop_front().expect("looked at above");
        let error = !in_memory(&self.medium, burst.address, burst.beats);
        for beat in 0..burst.beats {
            let WriteBeat { data, strobes } = self.data.pop_front().expect("all its data has entered");
            if !error {
                self.medium.write_line(burst.address + (beat * LINE) as u64, &data, strobes);
            }
        }
        self.durable_bursts += 1;
        let end = burst.address + (burst.beats * LINE) as u64;
        let error = error || self.bad.iter().any(|bad| (burst.address..end).contains(bad));
        self.answer = Some(WriteAnswer { id: burst.id, error });
    }
}
