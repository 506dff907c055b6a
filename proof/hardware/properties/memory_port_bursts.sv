//@ unit: MemoryPort
//@ claim: What a requester asks for and is granted is on AXI in the next cycle, once: its address, its number of lines, the requester and its tag. A write burst has as many
//@   lines as were asked for, and its last line alone has `wlast`; each line that is taken comes from the requester of the burst, and is on AXI in the next cycle as it was. Each
//@   line of a read, and each answer to a write, reaches in the next cycle the requester and the tag that AXI's identifier names, and nobody else.
//@ source: AXI4 A3.4.1; nothing accepted is lost or duplicated
//@ assumes: nothing
//@ tier: thorough
//@ depth: 1
//@ cover-depth: 14
//@ asserts: 19
//@ covers: 3
//@ step: in order
//@ mutant: the line before the last is told as the last
//@ find: state$d[(64'h4)+:(1)] = ~|w_left$q;
//@ put: state$d[(64'h4)+:(1)] = w_left$q < 6'd2;
//@ within: 12
//@ mutant: a burst begins while the one before it has a line left
//@ find: (~state$q[(64'h5)+:(1)] | (w_take & ~|w_left$q))
//@ put: (~state$q[(64'h5)+:(1)] | w_take)
//@ within: 12
//@ mutant: a line of a read reaches whoever the tag names
//@ find: r_index = m$rid[(32'h3)+:(3)];
//@ put: r_index = m$rid[(32'h0)+:(3)];
//@ within: 6
// Witness: an arbitrary requester.
(* anyconst *) reg [2:0] one_;
always @* assume (one_ < 6);
wire [5:0] rd_valid_ = {req$5$rd_valid, req$4$rd_valid, req$3$rd_valid, req$2$rd_valid, req$1$rd_valid, req$0$rd_valid};
wire [5:0] rd_ready_ = {req$5$rd_ready, req$4$rd_ready, req$3$rd_ready, req$2$rd_ready, req$1$rd_ready, req$0$rd_ready};
wire [5:0] wr_valid_ = {req$5$wr_valid, req$4$wr_valid, req$3$wr_valid, req$2$wr_valid, req$1$wr_valid, req$0$wr_valid};
wire [5:0] wr_ready_ = {req$5$wr_ready, req$4$wr_ready, req$3$wr_ready, req$2$wr_ready, req$1$wr_ready, req$0$wr_ready};
wire [5:0] wdata_ready_ = {req$5$wdata_ready, req$4$wdata_ready, req$3$wdata_ready, req$2$wdata_ready, req$1$wdata_ready, req$0$wdata_ready};
wire [5:0] rdata_valid_ = {req$5$rdata_valid, req$4$rdata_valid, req$3$rdata_valid, req$2$rdata_valid, req$1$rdata_valid, req$0$rdata_valid};
wire [5:0] b_valid_ = {req$5$b_valid, req$4$b_valid, req$3$b_valid, req$2$b_valid, req$1$b_valid, req$0$b_valid};
wire [42:0] rd_now = one_ == 0 ? {req$0$rd_line, req$0$rd_beats, req$0$rd_tag}
    : one_ == 1 ? {req$1$rd_line, req$1$rd_beats, req$1$rd_tag}
    : one_ == 2 ? {req$2$rd_line, req$2$rd_beats, req$2$rd_tag}
    : one_ == 3 ? {req$3$rd_line, req$3$rd_beats, req$3$rd_tag}
    : one_ == 4 ? {req$4$rd_line, req$4$rd_beats, req$4$rd_tag}
    : {req$5$rd_line, req$5$rd_beats, req$5$rd_tag};
wire [42:0] wr_now = one_ == 0 ? {req$0$wr_line, req$0$wr_beats, req$0$wr_tag}
    : one_ == 1 ? {req$1$wr_line, req$1$wr_beats, req$1$wr_tag}
    : one_ == 2 ? {req$2$wr_line, req$2$wr_beats, req$2$wr_tag}
    : one_ == 3 ? {req$3$wr_line, req$3$wr_beats, req$3$wr_tag}
    : one_ == 4 ? {req$4$wr_line, req$4$wr_beats, req$4$wr_tag}
    : {req$5$wr_line, req$5$wr_beats, req$5$wr_tag};
wire [575:0] data_now = one_ == 0 ? {req$0$wdata, req$0$wstrb}
    : one_ == 1 ? {req$1$wdata, req$1$wstrb}
    : one_ == 2 ? {req$2$wdata, req$2$wstrb}
    : one_ == 3 ? {req$3$wdata, req$3$wstrb}
    : one_ == 4 ? {req$4$wdata, req$4$wstrb}
    : {req$5$wdata, req$5$wstrb};
wire [516:0] read_one = one_ == 0 ? {req$0$rdata, req$0$rdata_tag, req$0$rdata_last, req$0$rdata_error}
    : one_ == 1 ? {req$1$rdata, req$1$rdata_tag, req$1$rdata_last, req$1$rdata_error}
    : one_ == 2 ? {req$2$rdata, req$2$rdata_tag, req$2$rdata_last, req$2$rdata_error}
    : one_ == 3 ? {req$3$rdata, req$3$rdata_tag, req$3$rdata_last, req$3$rdata_error}
    : one_ == 4 ? {req$4$rdata, req$4$rdata_tag, req$4$rdata_last, req$4$rdata_error}
    : {req$5$rdata, req$5$rdata_tag, req$5$rdata_last, req$5$rdata_error};
wire [3:0] answer_one = one_ == 0 ? {req$0$b_tag, req$0$b_error}
    : one_ == 1 ? {req$1$b_tag, req$1$b_error}
    : one_ == 2 ? {req$2$b_tag, req$2$b_error}
    : one_ == 3 ? {req$3$b_tag, req$3$b_error}
    : one_ == 4 ? {req$4$b_tag, req$4$b_error}
    : {req$5$b_tag, req$5$b_error};
// The system's requests wait in a register of their own.
reg [42:0] system_read, system_write;
always @(posedge clock) begin
    if (rd_valid_[5] & rd_ready_[5]) system_read <= {req$5$rd_line, req$5$rd_beats, req$5$rd_tag};
    if (wr_valid_[5] & wr_ready_[5]) system_write <= {req$5$wr_line, req$5$wr_beats, req$5$wr_tag};
end
wire [5:0] reads_now = {rd_stage$take, rd_ready_[4:0]}, writes_now = {wr_stage$take, wr_ready_[4:0]};
wire [42:0] rd_one = one_ == 5 ? system_read : rd_now;
wire [42:0] wr_one = one_ == 5 ? system_write : wr_now;
wire [6:0] lines = 1 + (({6{writes_now[5]}} & system_write[8:3])
    | ({6{writes_now[4]}} & req$4$wr_beats) | ({6{writes_now[3]}} & req$3$wr_beats) | ({6{writes_now[2]}} & req$2$wr_beats)
    | ({6{writes_now[1]}} & req$1$wr_beats) | ({6{writes_now[0]}} & req$0$wr_beats));
// What AXI has to show, as the grants say.
reg reads_on = 0, writes_on = 0, line_on = 0, system_reads = 0, system_writes = 0, is_last = 0;
reg read_of_one = 0, write_of_one = 0, line_of_one = 0;
reg [42:0] read_then, write_then;
reg [575:0] line_then;
// Lines of the burst that are not taken, and whose it is.
reg [6:0] to_take = 0;
reg [5:0] owner = 0;
wire takes = wdata_ready_ != 0;
always @(posedge clock) begin
    reads_on <= !reset & (reads_now != 0 | (reads_on & !m$arready));
    writes_on <= !reset & (writes_now != 0 | (writes_on & !m$awready));
    line_on <= !reset & (takes | (line_on & !m$wready));
    system_reads <= !reset & (system_reads ? !reads_now[5] : rd_valid_[5]);
    system_writes <= !reset & (system_writes ? !writes_now[5] : wr_valid_[5]);
    read_of_one <= reads_now[one_] & !reset;
    write_of_one <= writes_now[one_] & !reset;
    line_of_one <= wdata_ready_[one_] & !reset;
    read_then <= rd_one;
    write_then <= wr_one;
    line_then <= data_now;
    to_take <= reset ? 0 : writes_now != 0 ? lines : to_take - takes;
    if (writes_now != 0) owner <= writes_now;
    if (takes) is_last <= to_take == 1;
end
always @* if (!reset) begin
    one_read_at_a_time: assert ((reads_now & (reads_now - 1)) == 0 & (reads_now & ~{system_reads, rd_valid_[4:0]}) == 0
        & (reads_now == 0 | !reads_on | m$arready));
    one_write_at_a_time: assert ((writes_now & (writes_now - 1)) == 0 & (writes_now & ~{system_writes, wr_valid_[4:0]}) == 0
        & (writes_now == 0 | !writes_on | m$awready));
    lines_of_the_burst: assert ((!takes | (to_take != 0 & wdata_ready_ == owner & (!line_on | m$wready))) & (writes_now == 0 | to_take == takes));
end
always @* begin
    read_is_shown_once: assert (m$arvalid == reads_on);
    write_is_shown_once: assert (m$awvalid == writes_on);
    line_is_shown_once: assert (m$wvalid == line_on);
    system_is_held: assert (rd_stage$held == system_reads & wr_stage$held == system_writes);
    if (read_of_one) read_as_asked: assert ({m$araddr, m$arlen, m$arid} == {read_then[42:9], 6'd0, 2'd0, read_then[8:3], one_, read_then[2:0]}
        & m$arsize == 6 & m$arburst == 1);
    if (write_of_one) write_as_asked: assert ({m$awaddr, m$awlen, m$awid} == {write_then[42:9], 6'd0, 2'd0, write_then[8:3], one_, write_then[2:0]}
        & m$awsize == 6 & m$awburst == 1);
    if (line_of_one) line_as_given: assert ({m$wdata, m$wstrb} == line_then);
    if (m$wvalid) last_is_last: assert (m$wlast == is_last);
end
// The way back.
reg read_comes = 0, answer_comes = 0;
reg [5:0] read_id, answer_id;
reg [513:0] read_data;
reg answer_error;
always @(posedge clock) begin
    read_comes <= m$rvalid & !reset;
    answer_comes <= m$bvalid & !reset;
    read_id <= m$rid;
    read_data <= {m$rdata, m$rlast, m$rresp[1]};
    answer_id <= m$bid;
    answer_error <= m$bresp[1];
end
always @* begin
    always_ready: assert (m$rready & m$bready);
    if (f_past) read_reaches_one: assert (rdata_valid_ == (read_comes ? 6'd1 << read_id[5:3] : 6'd0));
    if (read_comes) read_as_it_came: assert (read_one == {read_data[513:2], read_id[2:0], read_data[1:0]});
    if (f_past) answer_reaches_one: assert (b_valid_ == (answer_comes ? 6'd1 << answer_id[5:3] : 6'd0));
    if (answer_comes) answer_as_it_came: assert (answer_one == {answer_id[2:0], answer_error});
    // Invariants.
    taken_is_known: assert (state$q[5] == (to_take != 0) & (to_take == 0 | w_left$q == to_take - 7'd1)
        & (to_take == 0 | owner == 6'd1 << w_source$q) & w_source$q < 6);
    if (system_reads) system_read_is_kept: assert ({rd_stage$held_line, rd_stage$held_beats, rd_stage$held_tag} == system_read);
    if (system_writes) system_write_is_kept: assert ({wr_stage$held_line, wr_stage$held_beats, wr_stage$held_tag} == system_write);
end
always @* burst_of_three: cover (m$wvalid & m$wlast & m$wready & line_of_one & one_ == 3);
always @* next_burst_follows: cover (to_take == 2 & m$wvalid & m$wlast);
always @* system_asks: cover (reads_now[5] & m$arready);

`ifdef DIRECTED
always @* assume (one_ == 3 & m$awready & wr_valid_[2:0] == 0 & data_now[575:8] == 0);
always @* if (f_past) assume (!reset);
`endif
