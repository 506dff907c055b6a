//! For each live item the items that it has to wait for.

use crate::cells::{low_bits, widened};
use crate::dut::Ports;
use crate::sizes::Sizes;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// A row of bits for each item, 96 of 96 in the full card: row = item that waits, column = item
/// that it waits for. Request slots first, host lines from the number of slots on.
///
/// Guarantees: an item is `ready` when its row has been completed (`set_end`) and every bit that
/// was set has been cleared by a retirement; one cycle after the event, and at once where nothing
/// was named to it. Entering an item clears its row and takes `ready` away at the same edge. A
/// failed slot's column is cleared in the rows of commands and stays in those of host lines until
/// it is let go; a host line that waits for one, or for an item that does, is held: nothing but
/// letting go will make it ready. A chain of n such items is known n cycles later. A command that
/// waits for a kept line is blocked: it would wait as long.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct DependencyMatrix {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: no row is complete.
    pub reset: Signal<In, Bit>,
    /// An item is entered: its row starts anew.
    pub enter_valid: Signal<In, Bit>,
    /// The item.
    pub enter_row: Signal<In, Bits<7>>,
    /// Add bits to a row.
    pub set_valid: Signal<In, Bit>,
    /// The row.
    pub set_row: Signal<In, Bits<7>>,
    /// The bits.
    pub set_bits: Signal<In, Bits<96>>,
    /// The row is complete.
    pub set_end: Signal<In, Bit>,
    /// A slot retires.
    pub retire_slot_valid: Signal<In, Bit>,
    /// Which.
    pub retire_slot: Signal<In, Bits<5>>,
    /// It failed and stays in the rows of host lines.
    pub retire_failed: Signal<In, Bit>,
    /// Failed slots that are let go, a bit each.
    pub let_go: Signal<In, Bits<32>>,
    /// A host line retires: its write was answered.
    pub retire_write_valid: Signal<In, Bit>,
    /// Which.
    pub retire_write: Signal<In, Bits<6>>,
    /// A host line retires: its data is here.
    pub retire_read_valid: Signal<In, Bit>,
    /// Which.
    pub retire_read: Signal<In, Bits<6>>,
    /// Held stores that stay until what holds them is let go, a bit each.
    pub kept_lines: Signal<In, Bits<64>>,
    /// Complete rows without a bit: commands.
    pub ready_slots: Signal<Out, Bits<32>>,
    /// Complete rows without a bit: host lines.
    pub ready_lines: Signal<Out, Bits<64>>,
    /// Complete rows that wait for a failed slot, directly or through other items: host lines.
    pub held_lines: Signal<Out, Bits<64>>,
    /// Complete rows that wait for a kept line: commands.
    pub blocked_slots: Signal<Out, Bits<32>>,
    /// Pulse, two cycles later: a row was completed with at least one bit, by a command.
    pub held_command: Signal<Out, Bit>,
    /// Pulse, two cycles later: a row was completed with at least one bit, by a host access.
    pub held_host: Signal<Out, Bit>,
    #[default(Sizes::FULL)]
    _sizes: Sizes,
    #[default(vec![0; Sizes::FULL.slots + Sizes::FULL.lines])]
    _rows: Vec<u128>,
    _complete: u128,
    /// Items to which something was named since they were entered.
    _told: u128,
    _ready: u128,
    _failed: u64,
    _held: u128,
    _blocked: u32,
    _any: bool,
    /// What was set in the cycle before: with bits, completely, by a command.
    _set: Option<(bool, bool, bool)>,
}

impl DependencyMatrix {
    /// With as many rows as slots and lines.
    pub fn new(sizes: &Sizes) -> Self {
        Self { _sizes: *sizes, _rows: vec![0; sizes.slots + sizes.lines], ..Self::default() }
    }

    /// Columns that are cleared in this cycle: (for commands, for host accesses).
    fn cleared(&self) -> (u128, u128) {
        let slot = u128::from(self.retire_slot_valid.val()) << self.retire_slot.val().index();
        let write = u128::from(self.retire_write_valid.val()) << (self._sizes.slots + self.retire_write.val().index());
        let read = u128::from(self.retire_read_valid.val()) << (self._sizes.slots + self.retire_read.val().index());
        let others = write | read | u128::from(self.let_go.val().to_u64());
        let for_hosts = if self.retire_failed.val() { 0 } else { slot };
        (others | slot, others | for_hosts)
    }

    /// Items that wait for a failed slot or for a held item, by what the registers showed. What
    /// retires in this very cycle counts still, so that no retirement has to pass through all rows:
    /// the cycle in which it is waited for is its last, as it is for `ready`.
    fn held(&self) -> u128 {
        let blockers = self._held | u128::from(self._failed);
        let waits = |row: &usize| self._complete >> row & 1 == 1 && self._rows[*row] & blockers != 0;
        (0..self._rows.len()).filter(waits).fold(0, |mask, row| mask | 1 << row)
    }

    /// Commands that wait for a kept line.
    fn blocked(&self) -> u32 {
        let kept = u128::from(self.kept_lines.val().to_u64()) << self._sizes.slots;
        let waits = |slot: &usize| self._complete >> slot & 1 == 1 && self._rows[*slot] & kept != 0;
        (0..self._sizes.slots).filter(waits).fold(0, |mask, slot| mask | 1 << slot)
    }

    fn edge(&mut self) {
        let (commands, hosts) = self.cleared();
        let slots = self._sizes.slots;
        let clear_of = |row: usize| if row < slots { commands } else { hosts };
        let set = self.set_valid.val().then(|| (self.set_row.val().index(), wide(self.set_bits.val())));
        // What the registers showed is what `ready` follows, one cycle later.
        let ready =
            self._rows.iter().enumerate().fold(0, |mask, (i, row)| mask | u128::from(*row == 0) << i) & self._complete;
        self._ready = ready;
        self._held = if self._held | u128::from(self._failed) == 0 { 0 } else { self.held() };
        self._blocked = self.blocked();
        self._failed &= !self.let_go.val().to_u64();
        if self.retire_slot_valid.val() && self.retire_failed.val() {
            self._failed |= 1 << self.retire_slot.val().index();
        }
        // Who was held is told a cycle later still: only counters listen.
        let held = self._set.is_some_and(|(bits, ..)| bits || self._any);
        let done = self._set.filter(|(_, end, _)| *end && held);
        self.held_command.next = done.is_some_and(|(.., command)| command);
        self.held_host.next = done.is_some_and(|(.., command)| !command);
        if let Some((_, end, _)) = self._set {
            self._any = held && !end;
        }
        self._set = None;
        for (i, row) in self._rows.iter_mut().enumerate() {
            *row &= !clear_of(i);
        }
        if let Some((row, bits)) = set {
            let bits = bits & !clear_of(row);
            self._rows[row] |= bits;
            self._set = Some((bits != 0, self.set_end.val(), row < slots));
            if self.set_valid.val() && wide(self.set_bits.val()) != 0 {
                self._told |= 1 << row;
            }
            if self.set_end.val() {
                self._complete |= 1 << row;
                // What waits for nothing need not be looked for among the rows.
                self._ready |= (1 << row) & !self._told;
            }
        }
        if self.enter_valid.val() {
            let row = self.enter_row.val().index();
            self._rows[row] = 0;
            self._complete &= !(1 << row);
            self._told &= !(1 << row);
            self._ready &= !(1 << row);
            self._held &= !(1 << row);
            self._blocked &= !(1u128 << row) as u32;
        }
        if self.reset.val() {
            (self._complete, self._ready, self._any, self._set) = (0, 0, false, None);
            (self._failed, self._held, self._blocked) = (0, 0, 0);
        }
    }
}

/// Bits of hardware as a number.
fn wide(bits: Bits<96>) -> u128 {
    (0..96).fold(0, |mask, i| mask | u128::from(bits.get_bit(i)) << i)
}

impl Logic for DependencyMatrix {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.edge();
        }
        let slots = self._sizes.slots;
        self.ready_slots.next = ((self._ready & ((1 << slots) - 1)) as u64).into();
        self.ready_lines.next = ((self._ready >> slots) as u64).into();
        self.held_lines.next = ((self._held >> slots) as u64).into();
        self.blocked_slots.next = u64::from(self._blocked).into();
    }

    fn connect(&mut self) {
        self.ready_slots.connect();
        self.ready_lines.connect();
        self.held_lines.connect();
        self.blocked_slots.connect();
        self.held_command.connect();
        self.held_host.connect();
    }

    fn hdl(&self) -> Verilog {
        let Sizes { slots, lines, .. } = self._sizes;
        let top = slots + lines - 1;
        Verilog::Custom(format!(
            "reg [{top}:0] rows [0:{top}];\n\
             reg [{top}:0] complete; reg [{top}:0] ready; reg any;\n\
             reg [{ls}:0] failed; reg [{ls}:0] blocked; reg [{top}:0] waits; reg [{top}:0] blockers;\n\
             reg [{top}:0] commands; reg [{top}:0] hosts; reg [{top}:0] mine; reg held; reg clears; reg changed;\n\
             reg [{top}:0] mine_now; reg set_now; reg end_now; reg command_now;\n\
             reg [{ls}:0] gone; reg [{ll}:0] freed; reg [{top}:0] entered; reg [{top}:0] chosen; reg [{top}:0] told; reg [{top}:0] early;\n\
             integer start; integer i;\n\
             initial begin complete = 0; told = 0; ready = 0; any = 0; changed = 0; set_now = 0; failed = 0; blocked = 0; waits = 0; for (start = 0; start <= {top}; start = start + 1) rows[start] = 0; end\n\
             always @(*) begin\n\
             \x20   gone = 0; if (retire_slot_valid) gone = {slots}'d1 << retire_slot;\n\
             \x20   freed = 0;\n\
             \x20   if (retire_write_valid) freed = freed | ({lines}'d1 << retire_write);\n\
             \x20   if (retire_read_valid) freed = freed | ({lines}'d1 << retire_read);\n\
             \x20   commands = {{ freed, {let_go} | gone }};\n\
             \x20   hosts = {{ freed, {let_go} | (gone & {{{slots}{{~retire_failed}}}}) }};\n\
             \x20   entered = 0; if (enter_valid) entered = {n}'d1 << enter_row;\n\
             \x20   chosen = 0; if (set_valid) chosen = {n}'d1 << set_row;\n\
             \x20   early = chosen & ~told & {{{n}{{set_end & ~(|{set_bits})}}}};\n\
             \x20   clears = retire_slot_valid | retire_write_valid | retire_read_valid | (|let_go);\n\
             \x20   mine = {set_bits} & ~((set_row < 7'd{slots}) ? commands : hosts);\n\
             \x20   held = set_now & ((|mine_now) | any);\n\
             \x20   blockers = waits | {{ {lines}'d0, failed}};\n\
             \x20   held_lines = {held_lines};\n\
             \x20   blocked_slots = {blocked};\n\
             \x20   ready_slots = {ready_slots};\n\
             \x20   ready_lines = {ready_lines};\n\
             end\n\
             always @(posedge clock) begin\n\
             \x20   changed <= clears | set_valid | enter_valid | reset;\n\
             \x20   if (changed) ready <= (early | complete & ~{{ {waits} }}) & ~entered; else ready <= (early | ready) & ~entered;\n\
             \x20   if (|failed | (|waits)) begin\n\
             \x20       for (i = 0; i <= {top}; i = i + 1) waits[i] <= complete[i] & (|(rows[i] & blockers)) & ~entered[i];\n\
             \x20   end\n\
             \x20   for (i = 0; i < {slots}; i = i + 1) blocked[i] <= complete[i] & (|(rows[i][{top}:{slots}] & {kept_lines})) & ~entered[i];\n\
             \x20   failed <= failed & ~{let_go};\n\
             \x20   if (retire_slot_valid & retire_failed) failed[retire_slot] <= 1'b1;\n\
             \x20   if (clears) begin\n\
             \x20       for (i = 0; i < {slots}; i = i + 1) rows[i] <= rows[i] & ~commands;\n\
             \x20       for (i = {slots}; i <= {top}; i = i + 1) rows[i] <= rows[i] & ~hosts;\n\
             \x20   end\n\
             \x20   held_command <= held & end_now & command_now;\n\
             \x20   held_host <= held & end_now & ~command_now;\n\
             \x20   set_now <= set_valid;\n\
             \x20   if (set_now) any <= held & ~end_now;\n\
             \x20   if (set_valid) begin\n\
             \x20       mine_now <= mine; end_now <= set_end; command_now <= set_row < 7'd{slots};\n\
             \x20       for (i = 0; i <= {top}; i = i + 1)\n\
             \x20           if (chosen[i]) rows[i] <= (rows[i] & ~((i < {slots}) ? commands : hosts)) | mine;\n\
             \x20   end\n\
             \x20   told <= (told | (chosen & {{{n}{{|{set_bits}}}}})) & ~entered;\n\
             \x20   complete <= (complete | (chosen & {{{n}{{set_end}}}})) & ~entered;\n\
             \x20   if (enter_valid) for (i = 0; i <= {top}; i = i + 1) if (entered[i]) rows[i] <= {n}'d0;\n\
             \x20   if (reset) begin complete <= 0; ready <= 0; any <= 1'b0; set_now <= 1'b0; failed <= 0; blocked <= 0; waits <= 0; end\n\
             end\n",
            ls = slots - 1,
            ll = lines - 1,
            n = slots + lines,
            let_go = low_bits("let_go", 32, slots),
            set_bits = low_bits("set_bits", 96, slots + lines),
            kept_lines = low_bits("kept_lines", 64, lines),
            blocked = widened("blocked", slots, 32),
            held_lines = widened(&format!("waits[{top}:{slots}]"), lines, 64),
            ready_slots = widened(&format!("ready[{}:0]", slots - 1), slots, 32),
            ready_lines = widened(&format!("ready[{top}:{slots}]"), lines, 64),
            waits = (0..slots + lines).rev().map(|i| format!("|rows[{i}]")).collect::<Vec<_>>().join(", "),
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        let inputs = ["reset", "enter_valid", "set_valid", "retire_slot_valid", "retire_write_valid"];
        crate::cells::clocked(
            "dependency_matrix",
            &inputs,
            &["ready_slots", "ready_lines", "held_lines", "blocked_slots"],
        )
    }
}
