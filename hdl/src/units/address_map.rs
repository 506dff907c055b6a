//! The address mapping table: (pool, thread) to where the pool lies.

use crate::bundles::MapEntry;
use crate::cells::{index_of, zeroed};
use crate::dut::Ports;
use crate::sizes::Sizes;
use nearpm_interface::geometry::{ADDRESS_BITS, LINE_U64};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Bit of `MapEntry::flags`: the entry is in use.
pub const IN_USE: u64 = 1;
/// Bit of `MapEntry::flags`: a log failed, or memory refused a store to the pool; logs and commits
/// are refused.
pub const LATCHED: u64 = 2;
/// Bit of `MapEntry::flags`: an unmap was numbered; new commands are refused.
pub const CLOSING: u64 = 4;

/// 16 entries in the full card, looked up by (pool, thread).
///
/// Guarantees: a lookup answers two cycles after its pool and thread were there, with the table as
/// it stood one cycle before the answer. Updates take effect at the next edge; of two updates of
/// one entry in a cycle, the later in the list of ports wins for what both change. An entry into
/// whose pool a lost store fell shows as latched from the next cycle on.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct AddressMap {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: no entry is in use.
    pub reset: Signal<In, Bit>,

    /// Pool to look up.
    pub lookup_pool: Signal<In, Bits<32>>,
    /// Thread to look up.
    pub lookup_thread: Signal<In, Bits<16>>,
    /// Two cycles later: an entry in use has this pool and thread.
    pub found: Signal<Out, Bit>,
    /// Its index.
    pub found_index: Signal<Out, Bits<4>>,
    /// Its contents; 0 if none was found.
    pub entry: Signal<Out, MapEntry>,
    /// Some entry is free.
    #[default(Signal::new_with_default(true))]
    pub any_free: Signal<Out, Bit>,
    /// The lowest free entry.
    pub free_index: Signal<Out, Bits<4>>,

    /// Write a whole entry.
    pub write_valid: Signal<In, Bit>,
    /// Which.
    pub write_index: Signal<In, Bits<4>>,
    /// What.
    pub write_entry: Signal<In, MapEntry>,
    /// Raise the committed transaction of an entry to `txid`.
    pub commit_valid: Signal<In, Bit>,
    /// Latch an entry.
    pub latch_valid: Signal<In, Bit>,
    /// Memory refused a store: every entry whose pool it fell into is latched.
    pub lost_valid: Signal<In, Bit>,
    /// Its line address.
    pub lost_line: Signal<In, Bits<34>>,
    /// Free an entry.
    pub free_valid: Signal<In, Bit>,
    /// Entry of commit, latch and free.
    pub retire_index: Signal<In, Bits<4>>,
    /// Transaction of commit.
    pub txid: Signal<In, Bits<64>>,
    /// Mark an entry as closing.
    pub close_valid: Signal<In, Bit>,
    /// Which.
    pub close_index: Signal<In, Bits<4>>,

    /// Raise what an entry has reached to `reach_txid`.
    pub reach_valid: Signal<In, Bit>,
    /// Which.
    pub reach_index: Signal<In, Bits<4>>,
    /// Transaction of reach.
    pub reach_txid: Signal<In, Bits<64>>,
    /// Mark an entry as not closing any more, unless it is an orphan.
    pub reopen_valid: Signal<In, Bit>,
    /// Which.
    pub reopen_index: Signal<In, Bits<4>>,
    /// Free these entries, a bit each.
    pub drop: Signal<In, Bits<16>>,
    /// Free all entries but those in `keep`, which become orphans: closing, not latched.
    pub clear: Signal<In, Bit>,
    /// Entries with commands that wait for other devices, a bit each.
    pub keep: Signal<In, Bits<16>>,

    /// Another pool to look up.
    pub peer_pool: Signal<In, Bits<32>>,
    /// Another thread to look up.
    pub peer_thread: Signal<In, Bits<16>>,
    /// Two cycles later: an entry in use has them.
    pub peer_found: Signal<Out, Bit>,
    /// Its index.
    pub peer_index: Signal<Out, Bits<4>>,
    /// Entry whose `reached` is wanted.
    pub shown_index: Signal<In, Bits<4>>,
    /// It, one cycle later.
    pub shown_reached: Signal<Out, Bits<64>>,

    /// Entry to read out for a save; 0 comes for one that is not there.
    pub save_index: Signal<In, Bits<4>>,
    /// Its contents, one cycle later.
    pub saved: Signal<Out, MapEntry>,
    /// Entries in use, a bit each.
    pub mapped: Signal<Out, Bits<16>>,
    /// Entries that are latched, a bit each.
    pub latched: Signal<Out, Bits<16>>,
    /// Entries whose unmap was numbered, a bit each, and orphans.
    pub closing: Signal<Out, Bits<16>>,
    /// Entries in use that a function-level reset left to their commands, a bit each.
    pub orphans: Signal<Out, Bits<16>>,

    #[default(vec![MapEntry::default(); Sizes::FULL.map_entries])]
    _entries: Vec<MapEntry>,
    _hits: u16,
    _peer_hits: u16,
    _struck: u16,
}

impl AddressMap {
    /// With as many entries.
    pub fn new(sizes: &Sizes) -> Self {
        Self { _entries: vec![MapEntry::default(); sizes.map_entries], ..Self::default() }
    }

    fn flag(&self, bit: u64) -> u16 {
        let has = |e: &MapEntry| e.flags.to_u64() & bit != 0;
        self._entries.iter().enumerate().fold(0, |mask, (i, e)| mask | u16::from(has(e)) << i)
    }

    /// Entries in use with a pool and thread.
    fn hits(&self, pool: Bits<32>, thread: Bits<16>) -> u16 {
        let hit = |e: &MapEntry| e.flags.to_u64() & IN_USE != 0 && e.pool == pool && e.thread == thread;
        self._entries.iter().enumerate().fold(0, |hits, (i, e)| hits | u16::from(hit(e)) << i)
    }

    /// Frees an entry at a function-level reset, or leaves it to the commands that wait.
    fn leave(entry: &mut MapEntry, kept: bool) {
        entry.orphan = kept;
        entry.flags = if kept { (IN_USE | CLOSING).into() } else { 0.into() };
    }

    /// Entries in use whose pool holds a line.
    fn struck(&self, line: u64) -> u16 {
        let start = line * LINE_U64;
        let holds = |e: &MapEntry| {
            let place = start.wrapping_sub(e.base.to_u64()) & ((1 << ADDRESS_BITS) - 1);
            e.flags.to_u64() & IN_USE != 0 && place < e.bytes.to_u64()
        };
        self._entries.iter().enumerate().fold(0, |mask, (i, e)| mask | u16::from(holds(e)) << i)
    }

    /// Latched entries, with those that a lost store strikes.
    fn latches(&self) -> u16 {
        self.flag(LATCHED) | self._struck
    }

    fn edge(&mut self) {
        let used = self.flag(IN_USE);
        let struck = if self.lost_valid.val() { self.struck(self.lost_line.val().to_u64()) } else { 0 };
        self.saved.next = self._entries.get(self.save_index.val().index()).copied().unwrap_or_default();
        let hit = (0..self._entries.len()).rev().find(|&i| self._hits >> i & 1 == 1);
        self.found.next = hit.is_some();
        self.found_index.next = (hit.unwrap_or(0) as u64).into();
        self.entry.next = hit.map(|i| self._entries[i]).unwrap_or_default();
        self._hits = self.hits(self.lookup_pool.val(), self.lookup_thread.val());
        self.peer_found.next = self._peer_hits != 0;
        self.peer_index.next = u64::from(self._peer_hits.trailing_zeros() & 15).into();
        self._peer_hits = self.hits(self.peer_pool.val(), self.peer_thread.val());
        self.shown_reached.next = self._entries[self.shown_index.val().index()].reached;
        let retire = self.retire_index.val().index();
        let with = |entry: &mut MapEntry, bit: u64| entry.flags = (entry.flags.to_u64() | bit).into();
        for (i, entry) in self._entries.iter_mut().enumerate().filter(|(i, _)| self._struck >> i & 1 == 1) {
            debug_assert!(used >> i & 1 == 1, "an entry in use was struck");
            with(entry, LATCHED);
        }
        self._struck = struck;
        if self.write_valid.val() {
            self._entries[self.write_index.val().index()] = self.write_entry.val();
        }
        if self.commit_valid.val() {
            self._entries[retire].committed = self.txid.val();
        }
        if self.latch_valid.val() {
            with(&mut self._entries[retire], LATCHED);
        }
        if self.close_valid.val() {
            with(&mut self._entries[self.close_index.val().index()], CLOSING);
        }
        if self.reopen_valid.val() {
            let entry = &mut self._entries[self.reopen_index.val().index()];
            if !entry.orphan {
                entry.flags = (entry.flags.to_u64() & !CLOSING).into();
            }
        }
        if self.reach_valid.val() {
            self._entries[self.reach_index.val().index()].reached = self.reach_txid.val();
        }
        if self.free_valid.val() {
            self._entries[retire].flags = 0.into();
        }
        let (drop, keep) = (self.drop.val().to_u64(), self.keep.val().to_u64());
        let dropped = self._entries.iter_mut().enumerate().filter(|(i, _)| drop >> i & 1 == 1);
        dropped.for_each(|(_, e)| e.flags = 0.into());
        if self.clear.val() {
            let entries = self._entries.iter_mut().enumerate();
            entries.for_each(|(i, e)| Self::leave(e, (keep & u64::from(used)) >> i & 1 == 1));
        }
        if self.reset.val() {
            self._entries.iter_mut().for_each(|e| e.flags = 0.into());
            self._hits = 0;
            self._peer_hits = 0;
            self._struck = 0;
        }
    }
}

impl Logic for AddressMap {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.edge();
        }
        let mapped = self.flag(IN_USE);
        self.mapped.next = u64::from(mapped).into();
        self.latched.next = u64::from(self.latches()).into();
        self.closing.next = u64::from(self.flag(CLOSING)).into();
        let orphan = |(i, e): (usize, &MapEntry)| u64::from(e.orphan && e.flags.to_u64() & IN_USE != 0) << i;
        self.orphans.next = self._entries.iter().enumerate().map(orphan).sum::<u64>().into();
        let free = Some(mapped.trailing_ones() as usize).filter(|free| *free < self._entries.len());
        self.any_free.next = free.is_some();
        self.free_index.next = (free.unwrap_or(0) as u64).into();
    }

    fn connect(&mut self) {
        self.found.connect();
        self.found_index.connect();
        self.entry.connect();
        self.any_free.connect();
        self.free_index.connect();
        self.saved.connect();
        self.mapped.connect();
        self.latched.connect();
        self.closing.connect();
        self.orphans.connect();
        self.peer_found.connect();
        self.peer_index.connect();
        self.shown_reached.connect();
    }

    fn hdl(&self) -> Verilog {
        // A `MapEntry`, first field lowest: flags 3, thread 16, pool 32, then the rest up to
        // `committed`, `reached`, 64 each, and `orphan`.
        let bits = MapEntry::BITS;
        let (reached, committed) = (bits - 65, bits - 129);
        let last = self._entries.len() - 1;
        Verilog::Custom(format!(
            "reg [2:0] flags [0:{last}];\n\
             reg [47:0] key [0:{last}];\n\
             reg [{middle}:0] place [0:{last}];\n\
             reg [63:0] committed [0:{last}];\n\
             reg [63:0] reached [0:{last}];\n\
             reg [{last}:0] orphan;\n\
             reg [{last}:0] hits;\n\
             reg [{last}:0] peer_hits;\n\
             reg [{last}:0] struck;\n\
             reg [{last}:0] holds; reg [{last}:0] free; reg [{last}:0] lowest; reg [{last}:0] written;\n\
             reg [39:0] offset;\n\
             integer start; integer n; integer j; integer i;\n\
             initial begin hits = 0; peer_hits = 0; struck = 0; orphan = 0; for (start = 0; start <= {last}; start = start + 1) begin flags[start] = 0; key[start] = 0; place[start] = 0; committed[start] = 0; reached[start] = 0; end end\n\
             always @(*) begin\n\
             \x20   {none}\n\
             \x20   for (n = {last}; n >= 0; n = n - 1) begin\n\
             \x20       free[n] = ~flags[n][0]; mapped[n] = flags[n][0]; latched[n] = flags[n][1] | struck[n]; closing[n] = flags[n][2]; orphans[n] = flags[n][0] & orphan[n];\n\
             \x20   end\n\
             \x20   written = write_valid ? {entries}'d1 << write_index : {entries}'d0;\n\
             \x20   any_free = |free; lowest = free & (~free + {entries}'d1); free_index = {{ {free_index} }};\n\
             end\n\
             always @(*) begin\n\
             \x20   for (j = 0; j <= {last}; j = j + 1) begin\n\
             \x20       offset = {{lost_line, 6'd0}} - place[j][39:0];\n\
             \x20       holds[j] = flags[j][0] & (offset < place[j][79:40]);\n\
             \x20   end\n\
             end\n\
             always @(posedge clock) begin\n\
             \x20   saved <= {there}{{orphan[save_index], reached[save_index], committed[save_index], place[save_index], key[save_index], flags[save_index]}};\n\
             \x20   shown_reached <= reached[shown_index];\n\
             \x20   peer_found <= |peer_hits; peer_index <= 4'd0;\n\
             \x20   found <= |hits; found_index <= 4'd0; entry <= {bits}'d0;\n\
             \x20   for (i = 0; i <= {last}; i = i + 1) begin\n\
             \x20       hits[i] <= flags[i][0] && key[i] == {{lookup_pool, lookup_thread}};\n\
             \x20       if (hits[i]) begin found_index <= i[3:0]; entry <= {{orphan[i], reached[i], committed[i], place[i], key[i], flags[i]}}; end\n\
             \x20       peer_hits[i] <= flags[i][0] && key[i] == {{peer_pool, peer_thread}};\n\
             \x20       if (peer_hits[i]) peer_index <= i[3:0];\n\
             \x20   end\n\
             \x20   for (i = 0; i <= {last}; i = i + 1) if (struck[i]) flags[i][1] <= 1'b1;\n\
             \x20   struck <= lost_valid ? holds : {entries}'d0;\n\
             \x20   if (write_valid) begin\n\
             \x20       flags[write_index] <= write_entry[2:0]; key[write_index] <= write_entry[50:3];\n\
             \x20       place[write_index] <= write_entry[{place_top}:51]; committed[write_index] <= write_entry[{committed_top}:{committed}];\n\
             \x20       reached[write_index] <= write_entry[{top}:{reached}];\n\
             \x20   end\n\
             \x20   orphan <= (orphan & ~written) | (written & {{{entries}{{write_entry[{orphan}]}}}});\n\
             \x20   if (commit_valid) committed[retire_index] <= txid;\n\
             \x20   if (latch_valid) flags[retire_index][1] <= 1'b1;\n\
             \x20   if (close_valid) flags[close_index][2] <= 1'b1;\n\
             \x20   if (reopen_valid && !orphan[reopen_index]) flags[reopen_index][2] <= 1'b0;\n\
             \x20   if (reach_valid) reached[reach_index] <= reach_txid;\n\
             \x20   if (free_valid) flags[retire_index] <= 3'd0;\n\
             \x20   for (i = 0; i <= {last}; i = i + 1) if (drop[i]) flags[i] <= 3'd0;\n\
             \x20   if (clear) for (i = 0; i <= {last}; i = i + 1) begin\n\
             \x20       orphan[i] <= keep[i] & flags[i][0]; flags[i] <= (keep[i] & flags[i][0]) ? 3'd5 : 3'd0;\n\
             \x20   end\n\
             \x20   if (reset) begin hits <= 0; peer_hits <= 0; struck <= 0; for (i = 0; i <= {last}; i = i + 1) flags[i] <= 3'd0; end\n\
             end\n",
            entries = last + 1,
            free_index = index_of("lowest", last + 1, 4),
            middle = committed - 51 - 1,
            place_top = committed - 1,
            committed_top = reached - 1,
            top = bits - 2,
            orphan = bits - 1,
            there = if last == 15 { String::new() } else { format!("(save_index > 4'd{last}) ? {bits}'d0 : ") },
            none = zeroed(&["mapped", "latched", "closing", "orphans"], last + 1, 16),
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        let inputs = [
            "reset",
            "lookup_pool",
            "lookup_thread",
            "lost_valid",
            "write_valid",
            "commit_valid",
            "save_index",
            "peer_pool",
        ];
        crate::cells::clocked("address_map", &inputs, &["found", "entry", "saved", "peer_found", "shown_reached"])
    }
}
