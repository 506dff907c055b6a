//@ unit: MemoryPort
//@ claim: While reads are asked for, one is granted every 703 cycles, and while writes are, one of those, whatever else is asked for; it is on AXI in the next cycle
//@   (`memory_port_bursts`). A requester that keeps asking is granted behind at most 5 others of its direction, where the system asks for nothing meanwhile.
//@ source: C10
//@ assumes: the memory takes an address and a line within 8 cycles of their offer, answers only what it was asked and, while 512 bursts of a direction are
//@   outstanding, ends one within 8 cycles; bursts have at most 16 lines (`dma_read_request`, `dma_write_request`; those of the host queue and the system are lines and images)
//@ tier: thorough
//@ depth: 1
//@ cover-depth: 14
//@ asserts: 11
//@ covers: 2
//@ cut: rd_line wr_line rd_tag wr_tag
//@ mutant: writes go first whenever they are asked for
//@ find: serve_write = wr_turn$any & (~rd_turn$any |
//@ put: serve_write = wr_turn$any & (1'b1 |
//@ within: 8
//@ mutant: behind a read of the first requester the turn stays
//@ find: rd_turn$take = do_read;
//@ put: rd_turn$take = do_read & ~rd_turn$grant[32'h0];
//@ within: 8
wire reads_ask = rd_turn$any & !reset, writes_ask = wr_turn$any & !reset;
reg [9:0] read_age = 0, write_age = 0;
// Cycles for which the memory has kept something waiting.
reg [3:0] ar_wait = 0, aw_wait = 0, w_wait = 0, r_full = 0, b_full = 0;
wire ar = m$arvalid, aw = m$awvalid, w = m$wvalid;
wire read_ends = r_valid$q & r_last$q;
always @(posedge clock) begin
    read_age <= reads_ask & !do_read ? read_age + 1 : 0;
    write_age <= writes_ask & !do_write ? write_age + 1 : 0;
    ar_wait <= ar & !m$arready & !reset ? ar_wait + 1 : 0;
    aw_wait <= aw & !m$awready & !reset ? aw_wait + 1 : 0;
    w_wait <= w & !m$wready & !reset ? w_wait + 1 : 0;
    r_full <= reads$q[9] & !read_ends & !reset ? r_full + 1 : 0;
    b_full <= writes$q[9] & !b_valid$q & !reset ? b_full + 1 : 0;
end
always @* begin
    if (ar_wait >= 7) assume (m$arready);
    if (aw_wait >= 7) assume (m$awready);
    if (w_wait >= 7) assume (m$wready);
    if (r_full >= 7) assume (read_ends);
    if (b_full >= 7) assume (b_valid$q);
    if (reads$q == 0) assume (!read_ends);
    if (writes$q == 0) assume (!b_valid$q);
    assume (rd_beats$o < 16 & wr_beats$o < 16);
end

// Cycles until a read, or a write, can be granted where it is the turn of its direction.
wire [9:0] ar_left = ar ? 7 - ar_wait : 0, aw_left = aw ? 7 - aw_wait : 0, w_left_ = w ? 7 - w_wait : 0;
wire [9:0] r_left = reads$q[9] ? 8 - r_full : 0, b_left = writes$q[9] ? 8 - b_full : 0;
wire streams = state$q[5];
wire [9:0] data_left = streams ? w_left_ + {w_left$q, 3'd0} : 0;
wire [9:0] read_in = ar_left > r_left ? ar_left : r_left;
wire [9:0] address_in = aw_left > b_left ? aw_left : b_left;
wire [9:0] write_in = address_in > data_left ? address_in : data_left;
// Beats that the direction in force may still be granted, with the grant that is counted now.
wire [5:0] rest_ = turned$q ? 32 : budget$q;
wire [5:0] budget_ = granted$q ? (rest_ > asked$q ? rest_ - asked$q - 1 : 0) : budget$q;
wire is_spent = budget$q == 0;
// A burst passes the budget by 15 beats, and one of 16 follows it, because the count is a cycle behind.
wire [9:0] granted_on = budget_ != 0 ? budget_ + 31 : is_spent ? 0 : 16;
wire writing_ = state$q[0];
wire [9:0] before_reads = writing_ ? granted_on : budget_ == 0 | is_spent ? 63 : 0;
wire [9:0] before_writes = !writing_ ? granted_on : budget_ == 0 | is_spent ? 63 : 0;
// Each beat takes 8 cycles, and each grant one more. Both sums fall in every cycle in which a read, or a write, waits.
wire [9:0] reads_wait = read_in + (before_reads == 0 ? 0 : {before_reads, 3'd0} + before_reads + write_in);
wire [9:0] writes_wait = write_in + (before_writes == 0 ? 0 : {before_writes, 3'd0} + before_writes + read_in);
reg [9:0] reads_waited, writes_waited;
always @(posedge clock) begin reads_waited <= reads_wait; writes_waited <= writes_wait; end
always @* begin
    waits_are_short: assert (ar_wait <= 7 & aw_wait <= 7 & w_wait <= 7 & r_full <= 7 & b_full <= 7);
    outstanding_is_bounded: assert (reads$q <= 512 & writes$q <= 512);
    budget_is_bounded: assert (budget$q <= 32 & asked$q < 16 & (!streams | w_left$q < 16));
    granted_after_turn: assert (!turned$q | granted$q);
    if (read_age != 0) read_wait_falls: assert (reads_wait < reads_waited);
    if (write_age != 0) write_wait_falls: assert (writes_wait < writes_waited);
    read_in_time: assert (read_age + reads_wait <= 702);
    write_in_time: assert (write_age + writes_wait <= 702);
end

// Turns within a direction.
(* anyconst *) reg [2:0] one_;
always @* assume (one_ < 5);
reg [2:0] read_next = 0, write_next = 0, reads_before = 0, writes_before = 0;
wire read_waits_ = rd_turn$requests[one_] & !rd_stage$held & !reset, write_waits_ = wr_turn$requests[one_] & !wr_stage$held & !reset;
always @(posedge clock) begin
    read_next <= reset ? 0 : do_read ? rd_turn$index + 1 : read_next;
    write_next <= reset ? 0 : do_write ? wr_turn$index + 1 : write_next;
    reads_before <= read_waits_ & !(do_read & rd_turn$grant[one_]) ? reads_before + do_read : 0;
    writes_before <= write_waits_ & !(do_write & wr_turn$grant[one_]) ? writes_before + do_write : 0;
end
wire [3:0] reads_ahead = read_next <= one_ ? one_ - read_next : 4'd6 - read_next + one_;
wire [3:0] writes_ahead = write_next <= one_ ? one_ - write_next : 4'd6 - write_next + one_;
always @* begin
    turns_are_known: assert (rd_turn__later == 6'h3f << read_next & read_next <= 6 & wr_turn__later == 6'h3f << write_next & write_next <= 6);
    read_in_turn: assert (reads_before + reads_ahead <= 5);
    write_in_turn: assert (writes_before + writes_ahead <= 5);
end
always @* read_waits: cover (read_age == 6 & do_read);
always @* write_waits: cover (write_age == 6 & do_write);
