//! The ranges of every live item, and which of them a new one conflicts with.

use crate::cells::{low_bits, widened};
use crate::dut::Ports;
use crate::sizes::Sizes;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Ranges of a command: source (read), destination and auxiliary (written).
const RANGES: usize = 3;

/// Compares a range with those of all live items (the in-flight access table, but for waiting items
/// too).
///
/// Guarantees: two cycles after `query_valid` was seen, `hits` has a bit for each item that was
/// live, has not retired since, and touches a line of the query while one of both writes; for a
/// query of an ordered command also each live command of its mapping entry. The row's own bit is 0.
/// An item that is entered in the cycle in which a query is seen is not compared with it. One query
/// a cycle. A failed slot is no longer live for queries of commands.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct RangeTable {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: nothing is live.
    pub reset: Signal<In, Bit>,

    /// Enter a command.
    pub slot_valid: Signal<In, Bit>,
    /// Its slot.
    pub slot_index: Signal<In, Bits<5>>,
    /// Its ranges in use: source, destination, auxiliary.
    pub slot_ranges: [Signal<In, Bit>; RANGES],
    /// First line of each range.
    pub slot_first: [Signal<In, Bits<34>>; RANGES],
    /// Last line of each range.
    pub slot_last: [Signal<In, Bits<34>>; RANGES],
    /// Its mapping entry.
    pub slot_map: Signal<In, Bits<4>>,
    /// Enter a host access.
    pub line_valid: Signal<In, Bit>,
    /// Its host line.
    pub line_index: Signal<In, Bits<6>>,
    /// Its line address.
    pub line_address: Signal<In, Bits<34>>,
    /// It writes.
    pub line_write: Signal<In, Bit>,

    /// Compare a range.
    pub query_valid: Signal<In, Bit>,
    /// First line.
    pub query_first: Signal<In, Bits<34>>,
    /// Last line.
    pub query_last: Signal<In, Bits<34>>,
    /// The range is used at all; where it is not, only the order of a command counts.
    pub query_range: Signal<In, Bit>,
    /// It is written.
    pub query_write: Signal<In, Bit>,
    /// The item is a command.
    pub query_command: Signal<In, Bit>,
    /// The command waits for every earlier one of its mapping entry.
    pub query_ordered: Signal<In, Bit>,
    /// Its mapping entry.
    pub query_map: Signal<In, Bits<4>>,
    /// The item: slot, or number of slots + host line.
    pub query_row: Signal<In, Bits<7>>,
    /// Last query of the item.
    pub query_end: Signal<In, Bit>,

    /// A result is here.
    pub hits_valid: Signal<Out, Bit>,
    /// Items to wait for.
    pub hits: Signal<Out, Bits<96>>,
    /// The item of the query.
    pub hits_row: Signal<Out, Bits<7>>,
    /// Last result of the item.
    pub hits_end: Signal<Out, Bit>,

    /// A slot retires.
    pub retire_slot_valid: Signal<In, Bit>,
    /// Which.
    pub retire_slot: Signal<In, Bits<5>>,
    /// It failed, and what it covers stays held: it is live for host accesses only.
    pub retire_failed: Signal<In, Bit>,
    /// Let the failed slots of a mapping entry go: its unmap is numbered.
    pub close_valid: Signal<In, Bit>,
    /// The entry.
    pub close_map: Signal<In, Bits<4>>,
    /// Let all failed slots go.
    pub close_all: Signal<In, Bit>,
    /// One cycle later: the failed slots that are let go, a bit each.
    pub let_go: Signal<Out, Bits<32>>,
    /// A host line retires: its write was answered.
    pub retire_write_valid: Signal<In, Bit>,
    /// Which.
    pub retire_write: Signal<In, Bits<6>>,
    /// A host line retires: its data is here.
    pub retire_read_valid: Signal<In, Bit>,
    /// Which.
    pub retire_read: Signal<In, Bits<6>>,

    #[default(Sizes::FULL)]
    _sizes: Sizes,
    #[default(Box::new(State::new(&Sizes::FULL)))]
    _state: Box<State>,
}

#[derive(Clone, Copy, Default)]
struct Query {
    valid: bool,
    end: bool,
    row: u64,
    command: bool,
}

/// What the registers of the Verilog hold.
#[derive(Default)]
struct State {
    ranges: Vec<[Option<(u64, u64)>; RANGES]>,
    maps: Vec<u64>,
    lines: Vec<(u64, bool)>,
    live: u128,
    failed: u128,
    stage: Query,
    touched: u128,
    let_go: u128,
}

impl State {
    fn new(sizes: &Sizes) -> Self {
        Self {
            ranges: vec![[None; RANGES]; sizes.slots],
            maps: vec![0; sizes.slots],
            lines: vec![(0, false); sizes.lines],
            ..Self::default()
        }
    }
}

impl RangeTable {
    /// With as many items as slots and lines.
    pub fn new(sizes: &Sizes) -> Self {
        Self { _sizes: *sizes, _state: Box::new(State::new(sizes)), ..Self::default() }
    }
}

/// 96 bits of hardware as a number, and back.
pub(super) fn to_bits(mask: u128) -> Bits<96> {
    mask.to_bits()
}

impl RangeTable {
    /// Items that retire in this cycle.
    fn retiring(&self) -> u128 {
        let slot = u128::from(self.retire_slot_valid.val()) << self.retire_slot.val().index();
        let write = u128::from(self.retire_write_valid.val()) << (self._sizes.slots + self.retire_write.val().index());
        let read = u128::from(self.retire_read_valid.val()) << (self._sizes.slots + self.retire_read.val().index());
        slot | write | read | self._state.let_go
    }

    /// Retiring items that a waiting item of this kind need no longer wait for.
    fn forgotten(&self, command: bool) -> u128 {
        let failed = self.retire_slot_valid.val() && self.retire_failed.val() && !command;
        self.retiring() & !(u128::from(failed) << self.retire_slot.val().index())
    }

    fn compare(&self) -> u128 {
        let s = &self._state;
        let (first, last) = (self.query_first.val().to_u64(), self.query_last.val().to_u64());
        let (write, used) = (self.query_write.val(), self.query_range.val());
        let touches = |f: u64, l: u64| used && first <= l && f <= last;
        let Sizes { slots: count, lines, .. } = self._sizes;
        let slots = (0..count).fold(0, |mask, i| {
            let hit = s.ranges[i]
                .iter()
                .enumerate()
                .any(|(r, range)| range.is_some_and(|(f, l)| touches(f, l) && (write || r > 0)));
            let order = self.query_ordered.val() && s.maps[i] == self.query_map.val().to_u64();
            mask | u128::from(hit || order) << i
        });
        (0..lines).fold(slots, |mask, i| {
            let (line, writes) = s.lines[i];
            mask | u128::from(touches(line, line) && (write || writes)) << (count + i)
        })
    }

    fn edge(&mut self) {
        let stage = self._state.stage;
        let hits = self._state.touched & !self.forgotten(stage.command);
        self.hits_valid.next = stage.valid;
        self.hits.next = to_bits(hits);
        self.hits_row.next = stage.row.into();
        self.hits_end.next = stage.end;

        let query = Query {
            valid: self.query_valid.val(),
            end: self.query_end.val(),
            row: self.query_row.val().to_u64(),
            command: self.query_command.val(),
        };
        let dead = if query.command { self._state.failed } else { 0 };
        let own = 1u128 << query.row;
        let touched = self.compare() & self._state.live & !dead & !own & !self.forgotten(query.command);

        let retiring = self.retiring();
        let fails =
            u128::from(self.retire_slot_valid.val() && self.retire_failed.val()) << self.retire_slot.val().index();
        let (slot, line) = (self.slot_index.val().index(), self.line_index.val().index());
        let ranges: [_; RANGES] = std::array::from_fn(|r| {
            let bounds = (self.slot_first[r].val().to_u64(), self.slot_last[r].val().to_u64());
            self.slot_ranges[r].val().then_some(bounds)
        });
        let enter_slot = self.slot_valid.val().then(|| (slot, ranges, self.slot_map.val().to_u64()));
        let enter_line =
            self.line_valid.val().then(|| (line, (self.line_address.val().to_u64(), self.line_write.val())));
        let reset = self.reset.val();
        let (close, all) = (self.close_valid.val().then(|| self.close_map.val().to_u64()), self.close_all.val());
        let slots = self._sizes.slots;
        let state = &mut self._state;
        let ends = |i: &usize| all || close == Some(state.maps[*i]);
        let let_go = (state.failed & !retiring | fails) & (0..slots).filter(ends).fold(0, |mask, i| mask | 1 << i);
        state.stage = query;
        state.touched = touched;
        state.live = state.live & !retiring | fails;
        state.failed = state.failed & !retiring | fails;
        state.let_go = let_go;
        if let Some((slot, ranges, map)) = enter_slot {
            state.ranges[slot] = ranges;
            state.maps[slot] = map;
            state.live |= 1 << slot;
        }
        if let Some((line, access)) = enter_line {
            state.lines[line] = access;
            state.live |= 1 << (slots + line);
        }
        if reset {
            (state.live, state.failed, state.let_go, state.stage) = (0, 0, 0, Query::default());
        }
    }
}

impl Logic for RangeTable {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.edge();
        }
        self.let_go.next = (self._state.let_go as u64).into();
    }

    fn connect(&mut self) {
        self.hits_valid.connect();
        self.hits.connect();
        self.hits_row.connect();
        self.hits_end.connect();
        self.let_go.connect();
    }

    fn hdl(&self) -> Verilog {
        let Sizes { slots, lines, .. } = self._sizes;
        let (ls, ll, top) = (slots - 1, lines - 1, slots + lines - 1);
        let enter: String = (0..RANGES)
            .map(|r| {
                format!(
                    "        first{r}[slot_index] <= slot_first${r}; last{r}[slot_index] <= slot_last${r}; used{r} <= (used{r} & ~slot_at) | (slot_at & {{{slots}{{slot_ranges${r}}}}});\n"
                )
            })
            .collect();
        let declare: String = (0..RANGES)
            .map(|r| {
                format!(
                    "reg [33:0] first{r} [0:{ls}]; reg [33:0] last{r} [0:{ls}]; reg [{ls}:0] used{r}; reg [{ls}:0] le{r}; reg [{ls}:0] ge{r}; reg [{ls}:0] may{r};\n"
                )
            })
            .collect();
        let compare: String = (0..RANGES)
            .map(|r| {
                let may = if r == 0 { "query_write" } else { "1'b1" };
                format!(
                    "            le{r}[i] <= query_first <= last{r}[i]; ge{r}[i] <= first{r}[i] <= query_last; may{r}[i] <= used{r}[i] & query_range & {may};\n"
                )
            })
            .collect();
        let hit = (0..RANGES).map(|r| format!("(le{r}[n] & ge{r}[n] & may{r}[n])")).collect::<Vec<_>>().join(" | ");
        let hits =
            format!("touched & asked & ~own & ~(retiring & ~{{ {lines}'d0, stage_command ? {slots}'d0 : fails}})");
        Verilog::Custom(format!(
            "{declare}\
             reg [3:0] maps [0:{ls}];\n\
             reg [33:0] address [0:{ll}];\n\
             reg [{ll}:0] writes;\n\
             reg [{top}:0] live;\n\
             reg [{ls}:0] failed;\n\
             reg [{ls}:0] order;\n\
             reg [{ll}:0] line_le; reg [{ll}:0] line_ge; reg [{ll}:0] line_may;\n\
             reg [{top}:0] asked;\n\
             reg stage_valid; reg stage_end; reg stage_command; reg [6:0] stage_row;\n\
             reg [{top}:0] retiring; reg [{ls}:0] fails; reg [{top}:0] touched; reg [{top}:0] own;\n\
             reg [{ls}:0] gone; reg [{ll}:0] freed; reg [{ls}:0] slot_at; reg [{ll}:0] line_at;\n\
             integer start; integer n; integer i;\n\
             initial begin\n\
             \x20   live = 0; failed = 0; stage_valid = 0; stage_end = 0; stage_command = 0; stage_row = 0; asked = 0; writes = 0;\n\
             \x20   for (start = 0; start < {slots}; start = start + 1) maps[start] = 0;\n\
             end\n\
             always @(*) begin\n\
             \x20   own = {total}'d1 << stage_row;\n\
             \x20   gone = 0; if (retire_slot_valid) gone = {slots}'d1 << retire_slot;\n\
             \x20   freed = 0;\n\
             \x20   if (retire_write_valid) freed = freed | ({lines}'d1 << retire_write);\n\
             \x20   if (retire_read_valid) freed = freed | ({lines}'d1 << retire_read);\n\
             \x20   retiring = {{ freed, {let_go} | gone }}; fails = gone & {{{slots}{{retire_failed}}}};\n\
             \x20   slot_at = 0; if (slot_valid) slot_at = {slots}'d1 << slot_index;\n\
             \x20   line_at = 0; if (line_valid) line_at = {lines}'d1 << line_index;\n\
             \x20   for (n = 0; n < {slots}; n = n + 1) touched[n] = {hit} | order[n];\n\
             \x20   for (n = 0; n < {lines}; n = n + 1) touched[{slots} + n] = line_le[n] & line_ge[n] & line_may[n];\n\
             end\n\
             always @(posedge clock) begin\n\
             \x20   hits_valid <= stage_valid; hits_row <= stage_row; hits_end <= stage_end;\n\
             \x20   hits <= {hits};\n\
             \x20   stage_valid <= query_valid; stage_end <= query_end; stage_command <= query_command; stage_row <= query_row;\n\
             \x20   if (query_valid) begin\n\
             \x20       for (i = 0; i < {slots}; i = i + 1) begin\n\
             {compare}\
             \x20           order[i] <= query_ordered & (maps[i] == query_map);\n\
             \x20       end\n\
             \x20       for (i = 0; i < {lines}; i = i + 1) begin\n\
             \x20           line_le[i] <= query_first <= address[i]; line_ge[i] <= address[i] <= query_last;\n\
             \x20           line_may[i] <= query_range & (query_write | writes[i]);\n\
             \x20       end\n\
             \x20       asked <= live & ~{{ {lines}'d0, query_command ? failed : {slots}'d0}}\n\
             \x20           & ~(retiring & ~{{ {lines}'d0, query_command ? {slots}'d0 : fails}});\n\
             \x20   end\n\
             \x20   live <= live & ~retiring | {{ line_at, fails | slot_at }};\n\
             \x20   failed <= failed & ~retiring[{ls}:0] | fails;\n\
             \x20   for (i = 0; i < {slots}; i = i + 1)\n\
             \x20       let_go[i] <= (failed[i] & ~retiring[i] | fails[i]) & (close_all | (close_valid & maps[i] == close_map));\n\
             \x20   if (slot_valid) begin\n\
             {enter}\
             \x20       maps[slot_index] <= slot_map;\n\
             \x20   end\n\
             \x20   if (line_valid) begin\n\
             \x20       address[line_index] <= line_address; writes <= (writes & ~line_at) | (line_at & {{{lines}{{line_write}}}});\n\
             \x20   end\n\
             \x20   if (reset) begin live <= 0; failed <= 0; let_go <= 0; stage_valid <= 1'b0; end\n\
             end\n",
            total = slots + lines,
            let_go = low_bits("let_go", 32, slots),
            hits = widened(&hits, slots + lines, 96),
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        let inputs = ["reset", "slot_valid", "line_valid", "query_valid", "retire_slot_valid"];
        crate::cells::clocked("range_table", &inputs, &["hits_valid", "hits", "hits_row", "hits_end"])
    }
}
