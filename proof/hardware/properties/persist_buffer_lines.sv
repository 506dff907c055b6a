//@ unit: PersistBuffer
//@ claim: A line that is stored to has one entry until it goes to memory, and goes once; no other line ever goes. The buffer is drained only when no line is left.
//@ source: nothing accepted is lost or duplicated; SBRP (ASPLOS '23) 6.1, persist operation
//@ assumes: nothing; proved for 4 warps, 4 entries, 4 lines and a counter to 3
//@ tier: fast
//@ depth: 1
//@ cover-depth: 14
//@ asserts: 7
//@ covers: 2
//@ arrays: apart
//@ mutant: an entry of another line is taken for the line's own
//@ find: hit = in_queue & (entry_kind == persist_kind) & (lines$read_data$0 == asked_line$q);
//@ put: hit = in_queue & (entry_kind == persist_kind);
//@ within: 12
//@ mutant: an entry that has left is taken for one that is there
//@ find: hit = in_queue & (entry_kind == persist_kind) & (lines$read_data$0 == asked_line$q);
//@ put: hit = (entry_kind == persist_kind) & (lines$read_data$0 == asked_line$q);
//@ within: 12
//@ mutant: an entry stays one of its line when that was evicted
//@ find: kinds$write_enable = push | evict;
//@ put: kinds$write_enable = push;
//@ within: 12
//@ mutant: a persist gets an entry in a full queue
//@ find: push = wants_entry & ~is_full$q;
//@ put: push = wants_entry;
//@ within: 16
// Witness: an arbitrary line.
(* anyconst *) reg [1:0] line_;
reg dirty = 0;
wire stored = accepted & is_persist & asked_line$q == line_;
wire sent = flush_valid & flush_line == line_;
always @(posedge clock) dirty <= !reset & (stored | (dirty & !sent));

wire [2:0] entries = is_full$q ? 4 : {1'b0, used};
wire [11:0] kinds = {\kinds.mem[3] , \kinds.mem[2] , \kinds.mem[1] , \kinds.mem[0] };
wire [7:0] lines = {\lines.mem[3] , \lines.mem[2] , \lines.mem[1] , \lines.mem[0] };
wire [7:0] places = {\places.mem[3] , \places.mem[2] , \places.mem[1] , \places.mem[0] };
// Entries of lines; those that their lines know; those of the witness.
reg [3:0] of_a_line, known, own;
reg [1:0] age_of;
integer n;
always @* for (n = 0; n < 4; n = n + 1) begin
    age_of = n[1:0] - head$q;
    of_a_line[n] = age_of < entries & kinds[3 * n +: 3] == 0;
    known[n] = places[2 * lines[2 * n +: 2] +: 2] == n;
    own[n] = of_a_line[n] & lines[2 * n +: 2] == line_;
end
always @* begin
    in_turn: assert (!(asked$q & heads_turn$q));
    full_when_round: assert (!is_full$q | head$q == tail$q);
    if (asked$q) looked_up: assert (asked_place$q == places[2 * asked_line$q +: 2]);
    lines_know_their_entries: assert ((of_a_line & ~known) == 0);
    one_entry_while_dirty: assert (dirty == |own & (own & (own - 4'd1)) == 0);
    if (sent) goes_when_dirty: assert (dirty);
    if (drained) drained_when_clean: assert (!dirty);
end
always @* evicted_behind_two: cover (sent & evict & entries == 3);
reg was_shared = 0;
always @(posedge clock) was_shared <= !reset & (was_shared | (stored & share));
always @* goes_with_two_stores: cover (sent & was_shared);
