//@ unit: Dispatcher
//@ claim: A command that is ready or blocked is issued, or taken to retire without that, within 3300 cycles, whatever else is ready; what a unit reports as done is taken within 90
//@   cycles. The progress of a command is never stored in a cycle in which a command is entered.
//@ source: C10
//@ assumes: some unit has room for a command within 8 cycles; a record is taken within 16 (`completion_writer_axi`: one is gone 11 cycles after it left the
//@   queue, so a full queue has room by then); no save is on; what keeps a picked command from being issued stays (an unmap, which ends a latch, waits for all commands of its mapping: `range_table`)
//@ tier: fast
//@ depth: 1
//@ cover-depth: 12
//@ asserts: 7
//@ covers: 3
//@ mutant: commands are picked from the first one on
//@ find: pick$take = pick$any;
//@ put: pick$take = 1'b0;
//@ within: 10
//@ mutant: what is not issued retires behind everything that a unit reports
//@ find: done_asks$i$4 = halts$q & ~quiesce;
//@ put: done_asks$i$4 = halts$q & ~quiesce & ~done_valid$0;
//@ within: 12
// Witness: an arbitrary slot.
(* anyconst *) reg [4:0] slot_;
wire waits_ = (ready[slot_] | blocked[slot_]) & alive$q[slot_] & !issued$q[slot_] & !failed$q[slot_];
wire is_picked = picked$q & picked_slot$q == slot_;
wire asks = (waits_ | is_picked) & !quiesce & !reset;
reg [12:0] age = 0;
// Cycles for which units and records have kept everything waiting.
reg [3:0] no_room = 0;
reg [4:0] no_record = 0;
wire room = issue_ready$0 | issue_ready$1 | issue_ready$2 | issue_ready$3;
wire reason = redo | picked_blocked$q | refused_by_latch | issue_parks;
reg had_reason = 0;
// Those that were picked, and those that were taken to retire, last.
reg [5:0] next = 0;
reg [2:0] done_next = 0;
always @(posedge clock) begin
    age <= asks & !(is_picked & (leaves | stops)) ? age + 1 : 0;
    no_room <= room | reset ? 0 : no_room + 1;
    no_record <= record_valid & !record_ready & !reset ? no_record + 1 : 0;
    had_reason <= picked$q & reason & !leaves & !stops & !reset;
    next <= reset ? 0 : pick$take & pick$any ? pick$index + 6'd1 : next;
    done_next <= reset ? 0 : done$take & done$any ? done$index + 3'd1 : done_next;
end
always @* begin
    if (no_room >= 7) assume (room);
    if (no_record >= 15) assume (record_ready);
    if (had_reason) assume (reason);
end

// Cycles until the next is taken to retire, each of which takes 18; until what is picked has left; until the witness has.
wire [12:0] ahead = next <= slot_ ? slot_ - next : 32 - next + slot_;
wire [12:0] done_ahead = done_next <= 4 ? 4 - done_next : 4;
wire [12:0] retires_in = !retiring$q ? 0 : !known$q ? 17 : 16 - no_record;
wire [12:0] picked_for = !picked$q ? 0 : halts$q ? 1 + retires_in + 18 * done_ahead : goes$q ? 98 - no_room : 99;
wire [12:0] to_go = picked_for + (is_picked ? 0 : 100 * (ahead + 1));
reg [12:0] had_to_go;
always @(posedge clock) had_to_go <= to_go;

// The same for an arbitrary unit that reports a command as done.
(* anyconst *) reg [1:0] unit_;
wire [3:0] tells = {done_valid$3, done_valid$2, done_valid$1, done_valid$0};
wire [3:0] heard = {done_ready$3, done_ready$2, done_ready$1, done_ready$0};
reg [12:0] told = 0, had_to_tell;
wire [12:0] told_ahead = done_next <= unit_ ? unit_ - done_next : 5 - done_next + unit_;
wire [12:0] to_tell = retires_in + 18 * told_ahead;
always @(posedge clock) begin
    told <= tells[unit_] & !heard[unit_] & !reset ? told + 1 : 0;
    had_to_tell <= to_tell;
end
always @* begin
    waits_are_short: assert (no_room <= 7 & no_record <= 15 & (!known$q | retiring$q) & !(goes$q & halts$q)
        & (!halts$q | had_reason));
    turns_are_known: assert (pick__later == 32'hffffffff << next & next <= 32 & done__later == 5'h1f << done_next & done_next <= 5);
    if (age != 0) wait_falls: assert (to_go < had_to_go);
    in_time: assert (age + to_go <= 3299);
    if (told != 0) told_falls: assert (to_tell < had_to_tell);
    told_in_time: assert (told + to_tell <= 89);
    one_write_at_a_time: assert (!(store_progress & enter_valid));
end
always @* issued_behind_another: cover (age == 4 & |next & is_picked & leaves);
always @* stops_and_retires: cover (is_picked & stops & age != 0);
always @* told_and_waited: cover (told > 4 & heard[unit_]);
