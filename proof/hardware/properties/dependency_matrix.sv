//@ unit: DependencyMatrix
//@ claim: An item is ready only when its row is complete and every item that was named to it has retired (for host accesses: has
//@   not failed, or was let go); behind a cycle in which nothing was entered, named or retired, a complete row without a bit is ready. None is ready and held at once.
//@ source: C1, C5, C10
//@ assumes: a row gets no bit after it is complete, until its item is entered anew
//@ tier: thorough
//@ depth: 2
//@ cover-depth: 8
//@ asserts: 7
//@ covers: 2
//@ arrays: apart
//@ mutant: a failed log lets the host accesses go that wait for it
//@ find: (gone & {32{~retire_failed}})
//@ put: gone
//@ within: 8
//@ mutant: what is named in a second answer replaces the first
//@ find: rows[i] <= (rows[i] & ~((i < 32) ? commands : hosts)) | mine;
//@ put: rows[i] <= mine;
//@ within: 8
//@ mutant: a row counts as complete with its first answer
//@ find: complete <= (complete | (chosen & {96{set_end}}))
//@ put: complete <= (complete | chosen)
//@ within: 8
// Witness: the command of slot 5 or the host access of line 8, which waits, and an arbitrary item that it may wait for. Nothing is proved here of other
// rows that wait; all rows of commands, and all of host accesses, are written by one loop body, and that is seen by reading it.
(* anyconst *) reg is_command;
wire [6:0] waits_ = is_command ? 5 : 40;
(* anyconst *) reg [6:0] for_;
always @* assume (for_ < 96);
wire enters = enter_valid & enter_row == waits_;
wire named = set_valid & set_row == waits_ & set_bits[for_];
wire left = (for_ < 32 & ((retire_slot_valid & retire_slot == for_ & (is_command | !retire_failed)) | let_go[for_[4:0]]))
    | (for_ >= 32 & ((retire_write_valid & retire_write == for_ - 32) | (retire_read_valid & retire_read == for_ - 32)));
reg owed = 0, closed = 0;
always @(posedge clock) begin
    if (enters) owed <= 0;
    else owed <= (owed | named) & !left;
    if (reset | enters) closed <= 0;
    else if (set_valid & set_end & set_row == waits_) closed <= 1;
end
always @* if (closed) assume (!(set_valid & set_row == waits_));
always @* if (enter_valid & set_valid) assume (enter_row != set_row);

// The property.
always @* if (ready[waits_]) waits_for_all: assert (closed & !owed);
wire [95:0] row = is_command ? \rows[5] : \rows[40] ;
always @* if (!changed) ready_in_time: assert (ready[waits_] == (closed & row == 0));
// Invariants.
always @* begin
    row_is_known: assert (row[for_] == owed);
    if (!told[waits_]) nothing_was_named: assert (row == 0);
    complete_is_known: assert (complete[waits_] == closed);
    if (ready[waits_]) ready_row_is_empty: assert (row == 0);
    if (ready[waits_]) ready_is_not_held: assert (!waits[waits_]);
end
reg had_waited = 0;
wire [95:0] shown = {ready_lines, ready_slots};
always @* command_waits_and_goes: cover (shown[waits_] & is_command & had_waited);
always @* line_waits_and_goes: cover (shown[waits_] & !is_command & had_waited);
always @(posedge clock) had_waited <= !enters & (had_waited | (closed & owed));

`ifdef DIRECTED
always @* assume (set_row == waits_ & enter_row == waits_ & for_ == 7 & (set_bits & ~(96'd1 << 7)) == 0
    & !retire_write_valid & !retire_read_valid & kept_lines == 0);
`endif
