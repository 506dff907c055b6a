//@ unit: RangeTable
//@ claim: The answer to a query names exactly those live items that were entered before it and conflict with it (a common line, one
//@   of them writes; or an ordered command and a command of its mapping), less those that retire meanwhile; a failed log counts
//@   for host accesses only, until it is let go.
//@ source: C1, C5
//@ assumes: an item is entered where none is live
//@ tier: thorough
//@ depth: 1
//@ cover-depth: 6
//@ asserts: 8
//@ covers: 3
//@ arrays: apart
//@ mutant: a query that ends on the first line of a range does not touch it
//@ find: line_le[i] <= query_first <= address[i]; line_ge[i] <= address[i] <= query_last;
//@ put: line_le[i] <= query_first <= address[i]; line_ge[i] <= address[i] < query_last;
//@ within: 8
//@ mutant: a failed log is forgotten by host accesses, too
//@ find: failed <= failed & ~retiring[31:0] | fails;
//@ put: failed <= failed & ~retiring[31:0];
//@ within: 8
//@ mutant: an item that retires while it is compared is named all the same
//@ find: hits <= touched & asked & ~own & ~(retiring &
//@ put: hits <= touched & asked & ~own & ~(96'd0 & retiring &
//@ within: 8
// Witness: slot 5 or host line 8, with what was entered for it. Nothing is proved here of other slots and lines; each loop of the unit has one body for
// all slots, or for all lines, and that is seen by reading it.
(* anyconst *) reg is_slot;
wire [6:0] item = is_slot ? 5 : 40;
wire enters = is_slot ? slot_valid & slot_index == item : line_valid & line_index == item - 32;
wire retires = is_slot ? retire_slot_valid & retire_slot == item
    : (retire_write_valid & retire_write == item - 32) | (retire_read_valid & retire_read == item - 32);
wire fails_now = is_slot & retires & retire_failed;
wire goes = is_slot & let_go[item[4:0]];
reg is_live = 0, is_failed = 0, writes_line;
reg [2:0] used;
reg [33:0] first_0, first_1, first_2, last_0, last_1, last_2;
reg [3:0] map;
always @(posedge clock) begin
    if (reset) begin is_live <= 0; is_failed <= 0; end
    else begin
        if (enters) begin is_live <= 1; is_failed <= 0; end
        else if (fails_now) is_failed <= 1;
        else if (retires | goes) begin is_live <= 0; is_failed <= 0; end
    end
    if (enters) begin
        used <= is_slot ? {slot_ranges$2, slot_ranges$1, slot_ranges$0} : 3'b001;
        first_0 <= is_slot ? slot_first$0 : line_address; last_0 <= is_slot ? slot_last$0 : line_address;
        first_1 <= slot_first$1; last_1 <= slot_last$1;
        first_2 <= slot_first$2; last_2 <= slot_last$2;
        map <= slot_map;
        writes_line <= line_write;
    end
end
always @* begin
    if (is_live) assume (!enters);
    if (!is_live) assume (!retires);
    if (is_failed) assume (!retires);
end

wire touches_0 = used[0] & query_first <= last_0 & first_0 <= query_last & (query_write | (!is_slot & writes_line));
wire touches_1 = is_slot & used[1] & query_first <= last_1 & first_1 <= query_last;
wire touches_2 = is_slot & used[2] & query_first <= last_2 & first_2 <= query_last;
wire conflicts = (query_range & (touches_0 | touches_1 | touches_2)) | (is_slot & query_ordered & query_map == map);
// What need not be waited for any more.
wire forgets_now = goes | (retires & (query_command | !fails_now));
wire counts = is_live & !(query_command & is_failed) & !forgets_now & conflicts & query_row != item;
reg counted_1 = 0, counted_2 = 0, command_1 = 0, asked_1 = 0, asked_2 = 0, end_1, end_2;
reg [6:0] row_1, row_2;
wire forgets_then = goes | (retires & (command_1 | !fails_now));
always @(posedge clock) begin
    asked_1 <= query_valid & !reset;
    counted_1 <= counts;
    command_1 <= query_command;
    row_1 <= query_row;
    end_1 <= query_end;
    asked_2 <= asked_1;
    counted_2 <= counted_1 & !forgets_then;
    row_2 <= row_1;
    end_2 <= end_1;
end

// The property, for the two items of the witness, behind a query of any item.
always @* if (asked_2) names_exactly: assert (hits_valid & hits_row == row_2 & hits_end == end_2 & hits[item] == counted_2);
always @* if (hits_valid & f_past) answers_a_query: assert (asked_2);
// Invariants.
always @* begin
    live_is_known: assert (live[item] == is_live & (is_slot ? failed[5] == is_failed : !is_failed) & !(is_failed & !is_live));
    if (is_live & is_slot) slot_is_kept: assert ({used2[5], used1[5], used0[5]} == used & \maps[5] == map
        & \first0[5] == first_0 & \last0[5] == last_0 & \first1[5] == first_1 & \last1[5] == last_1
        & \first2[5] == first_2 & \last2[5] == last_2);
    if (is_live & !is_slot) line_is_kept: assert (\address[8] == first_0 & first_0 == last_0 & writes[8] == writes_line & used == 1);
    compared: assert (stage_valid == asked_1 & (!asked_1 | (stage_row == row_1 & stage_end == end_1
        & stage_command == command_1 & (touched[item] & asked[item] & stage_row != item) == counted_1)));
    if (!f_past) nothing_yet: assert (!asked_1 & !asked_2 & !is_live);
    if (goes & f_past) only_failed_go: assert (is_failed & is_live);
end
always @* conflict_is_named: cover (asked_2 & hits[item] & is_slot & command_1);
always @* line_is_named: cover (asked_2 & hits[item] & !is_slot);
always @* failed_is_named: cover (asked_2 & hits[item] & is_failed);

`ifdef DIRECTED
always @* assume (query_row == 9 & (!slot_valid | slot_index == 5) & (!line_valid | line_index == 8) & !retire_write_valid & !close_all);
`endif
