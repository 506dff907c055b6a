//! Which commands wait for other devices, which may have to, and which have waited.

use crate::cells::{index_of, widened, zeroed};
use crate::dut::Ports;
use crate::sizes::Sizes;
use nearpm_interface::geometry::{MAP_ENTRIES, PARKED_COMMANDS};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// The places of the parked table, and what of each mapping entry is under way with them.
///
/// A place is *kept* for a command from its numbering on, *used* from when the command leaves its
/// request slot, and free when it is numbered again, or discarded, or retires without having
/// waited. A command that was numbered again is *let go* until it retires. Guarantees: a command
/// that is put finds a free place if one was kept for it. All outputs are of the state, but for
/// `of_map`. Updates take effect at the next edge.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct ParkedPlaces {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: no place is used or kept.
    pub reset: Signal<In, Bit>,

    /// A place is kept for a command that is numbered; not while `full`.
    pub keep_valid: Signal<In, Bit>,
    /// Its mapping entry.
    pub keep_map: Signal<In, Bits<4>>,
    /// A command for which a place is kept retires.
    pub give_valid: Signal<In, Bit>,
    /// Its mapping entry.
    pub give_map: Signal<In, Bits<4>>,
    /// A command for which a place is kept comes to wait.
    pub put_valid: Signal<In, Bit>,
    /// Its mapping entry.
    pub put_map: Signal<In, Bits<4>>,
    /// The place that it gets.
    pub put_place: Signal<Out, Bits<5>>,
    /// The command in a place waits no more.
    pub leave_valid: Signal<In, Bit>,
    /// The place.
    pub leave_place: Signal<In, Bits<5>>,
    /// A command that has waited is numbered.
    pub let_valid: Signal<In, Bit>,
    /// Its mapping entry.
    pub let_map: Signal<In, Bits<4>>,
    /// It retires.
    pub back_valid: Signal<In, Bit>,
    /// Its mapping entry.
    pub back_map: Signal<In, Bits<4>>,
    /// It keeps its slot, until its mapping entry closes.
    pub back_failed: Signal<In, Bit>,
    /// A mapping entry closes: what failed of it goes.
    pub close_valid: Signal<In, Bit>,
    /// The entry.
    pub close_map: Signal<In, Bits<4>>,
    /// All that failed goes.
    pub close_all: Signal<In, Bit>,
    /// Software says that the transaction of a place is committed.
    pub force_valid: Signal<In, Bit>,
    /// Software takes a place's command away.
    pub doom_valid: Signal<In, Bit>,
    /// The place of both; nothing happens where it is not used.
    pub act_place: Signal<In, Bits<5>>,

    /// A mapping entry.
    pub ask_map: Signal<In, Bits<4>>,
    /// Places with commands of it, a bit each; combinational.
    pub of_map: Signal<Out, Bits<32>>,
    /// Places in use, a bit each.
    pub used: Signal<Out, Bits<32>>,
    /// Places whose transaction software called committed, a bit each.
    pub forced: Signal<Out, Bits<32>>,
    /// Places whose command software takes away, a bit each.
    pub doomed: Signal<Out, Bits<32>>,
    /// Mapping entries with commands that wait, a bit each.
    pub waiting: Signal<Out, Bits<16>>,
    /// Mapping entries with a command that was let go and has not retired, a bit each.
    pub let_go: Signal<Out, Bits<16>>,
    /// Mapping entries with a command that waits, may have to wait, or was let go, a bit each.
    pub busy: Signal<Out, Bits<16>>,
    /// Every place is used or kept.
    pub full: Signal<Out, Bit>,

    #[default(Sizes::FULL)]
    _sizes: Sizes,
    _state: State,
}

/// What the registers of the Verilog hold.
#[derive(Clone, Copy, Default)]
struct State {
    used: u32,
    forced: u32,
    doomed: u32,
    map_of: [usize; PARKED_COMMANDS],
    /// Commands of each mapping entry that wait, and those together with what places are kept for.
    parked: [u32; MAP_ENTRIES],
    places: [u32; MAP_ENTRIES],
    taken: u32,
    running: u16,
    failed: u16,
}

impl ParkedPlaces {
    /// With as many places and mapping entries.
    pub fn new(sizes: &Sizes) -> Self {
        const { assert!(PARKED_COMMANDS == 32 && MAP_ENTRIES == 16, "widths of the ports") };
        Self { _sizes: *sizes, ..Self::default() }
    }
}

/// One bit per mapping entry whose count is not 0.
fn some(counts: &[u32; MAP_ENTRIES]) -> u16 {
    counts.iter().enumerate().fold(0, |mask, (i, count)| mask | u16::from(*count != 0) << i)
}

impl ParkedPlaces {
    fn free_place(&self) -> u32 {
        self._state.used.trailing_ones() % self._sizes.parked_commands as u32
    }

    /// Commands come and go.
    fn count(&self, next: &mut State) {
        let now = &self._state;
        if self.keep_valid.val() {
            next.places[self.keep_map.val().index()] += 1;
            next.taken += 1;
        }
        if self.give_valid.val() {
            let map = self.give_map.val().index();
            next.places[map] = next.places[map].wrapping_sub(1) & 63;
            next.taken = next.taken.wrapping_sub(1) & 63;
        }
        if self.put_valid.val() {
            let (map, place) = (self.put_map.val().index(), self.free_place());
            next.parked[map] += 1;
            next.map_of[place as usize] = map;
            next.used |= 1 << place;
            next.forced &= !(1 << place);
            next.doomed &= !(1 << place);
        }
        if self.leave_valid.val() {
            let place = self.leave_place.val().index();
            let map = now.map_of[place];
            next.parked[map] = next.parked[map].wrapping_sub(1) & 63;
            next.places[map] = next.places[map].wrapping_sub(1) & 63;
            next.taken = next.taken.wrapping_sub(1) & 63;
            next.used &= !(1 << place);
            next.forced &= !(1 << place);
            next.doomed &= !(1 << place);
        }
    }

    fn edge(&mut self) {
        let now = self._state;
        let mut next = now;
        let act = 1 << self.act_place.val().index() & now.used;
        next.forced |= if self.force_valid.val() { act } else { 0 };
        next.doomed |= if self.doom_valid.val() { act } else { 0 };
        self.count(&mut next);
        if self.close_all.val() {
            next.failed = 0;
        }
        if self.close_valid.val() {
            next.failed &= !(1 << self.close_map.val().index());
        }
        if self.back_valid.val() {
            let bit = 1 << self.back_map.val().index();
            next.running &= !bit;
            next.failed |= if self.back_failed.val() { bit } else { 0 };
        }
        if self.let_valid.val() {
            next.running |= 1 << self.let_map.val().index();
        }
        self._state = if self.reset.val() { State { map_of: next.map_of, ..State::default() } } else { next };
    }
}

impl Logic for ParkedPlaces {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.edge();
        }
        let s = &self._state;
        let map = self.ask_map.val().index();
        let of_map = (0..PARKED_COMMANDS).filter(|i| s.used >> i & 1 == 1 && s.map_of[*i] == map);
        self.of_map.next = of_map.fold(0u64, |mask, i| mask | 1 << i).into();
        self.put_place.next = u64::from(self.free_place()).into();
        self.used.next = u64::from(s.used).into();
        self.forced.next = u64::from(s.forced).into();
        self.doomed.next = u64::from(s.doomed).into();
        self.waiting.next = u64::from(some(&s.parked)).into();
        self.let_go.next = u64::from(s.running | s.failed).into();
        self.busy.next = u64::from(some(&s.places) | s.running | s.failed).into();
        self.full.next = s.taken == self._sizes.parked_commands as u32;
    }

    fn connect(&mut self) {
        self.put_place.connect();
        self.of_map.connect();
        self.used.connect();
        self.forced.connect();
        self.doomed.connect();
        self.waiting.connect();
        self.let_go.connect();
        self.busy.connect();
        self.full.connect();
    }

    fn hdl(&self) -> Verilog {
        let Sizes { parked_commands: places, map_entries: maps, .. } = self._sizes;
        let (last, top) = (places - 1, maps - 1);
        Verilog::Custom(format!(
            "reg [3:0] map_of [0:{last}];\n\
             reg [5:0] parked [0:{top}];\n\
             reg [5:0] places [0:{top}];\n\
             reg [5:0] taken;\n\
             reg [{top}:0] running;\n\
             reg [{top}:0] failed;\n\
             reg [{last}:0] free; reg [{last}:0] put_at; reg [{last}:0] came; reg [{last}:0] gone; reg [{last}:0] act_at;\n\
             integer start; integer n; integer i;\n\
             initial begin\n\
             \x20   used = 0; forced = 0; doomed = 0; taken = 0; running = 0; failed = 0;\n\
             \x20   for (start = 0; start <= {last}; start = start + 1) map_of[start] = 0;\n\
             \x20   for (start = 0; start <= {top}; start = start + 1) begin parked[start] = 0; places[start] = 0; end\n\
             end\n\
             wire [3:0] leave_map = map_of[leave_place];\n\
             always @(*) begin\n\
             \x20   {no_place}{no_map}\n\
             \x20   free = ~used[{last}:0]; put_at = free & (~free + {places}'d1); put_place = {{ {put_place} }};\n\
             \x20   came = 0; if (put_valid) came = put_at;\n\
             \x20   gone = 0; if (leave_valid) gone = {places}'d1 << leave_place;\n\
             \x20   act_at = used[{last}:0] & ({places}'d1 << act_place);\n\
             \x20   for (n = {last}; n >= 0; n = n - 1) of_map[n] = used[n] & (map_of[n] == ask_map);\n\
             \x20   for (n = 0; n <= {top}; n = n + 1) begin\n\
             \x20       waiting[n] = |parked[n];\n\
             \x20       busy[n] = |places[n] | running[n] | failed[n];\n\
             \x20   end\n\
             \x20   let_go = {let_go};\n\
             \x20   full = taken[{full}];\n\
             end\n\
             always @(posedge clock) begin\n\
             \x20   taken <= taken + {{5'd0, keep_valid}} - {{5'd0, give_valid}} - {{5'd0, leave_valid}};\n\
             \x20   for (i = 0; i <= {top}; i = i + 1) begin\n\
             \x20       places[i] <= places[i] + {{5'd0, keep_valid & (keep_map == i[3:0])}}\n\
             \x20           - {{5'd0, give_valid & (give_map == i[3:0])}} - {{5'd0, leave_valid & (leave_map == i[3:0])}};\n\
             \x20       parked[i] <= parked[i] + {{5'd0, put_valid & (put_map == i[3:0])}}\n\
             \x20           - {{5'd0, leave_valid & (leave_map == i[3:0])}};\n\
             \x20   end\n\
             \x20   used[{last}:0] <= (used[{last}:0] | came) & ~gone;\n\
             \x20   forced[{last}:0] <= (forced[{last}:0] | (act_at & {{{places}{{force_valid}}}})) & ~came & ~gone;\n\
             \x20   doomed[{last}:0] <= (doomed[{last}:0] | (act_at & {{{places}{{doom_valid}}}})) & ~came & ~gone;\n\
             \x20   if (put_valid) for (i = 0; i <= {last}; i = i + 1) if (put_at[i]) map_of[i] <= put_map;\n\
             \x20   if (close_all) failed <= {width}'d0;\n\
             \x20   if (close_valid) failed[close_map] <= 1'b0;\n\
             \x20   if (back_valid) begin running[back_map] <= 1'b0; if (back_failed) failed[back_map] <= 1'b1; end\n\
             \x20   if (let_valid) running[let_map] <= 1'b1;\n\
             \x20   if (reset) begin\n\
             \x20       used <= 32'd0; forced <= 32'd0; doomed <= 32'd0; taken <= 6'd0; running <= {width}'d0; failed <= {width}'d0;\n\
             \x20       for (i = 0; i <= {top}; i = i + 1) begin parked[i] <= 6'd0; places[i] <= 6'd0; end\n\
             \x20   end\n\
             end\n",
            width = maps,
            put_place = index_of("put_at", places, 5),
            full = places.ilog2(),
            no_place = zeroed(&["of_map"], places, 32),
            no_map = zeroed(&["waiting", "busy"], maps, 16),
            let_go = widened("running | failed", maps, 16),
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        let inputs = ["reset", "keep_valid", "give_valid", "put_valid", "leave_valid", "let_valid", "back_valid"];
        crate::cells::clocked("parked_places", &inputs, &["used", "forced", "doomed"])
    }
}
