//@ unit: MemorySplit
//@ claim: Each address goes once, in the cycle in which it is taken, to the port that it lies behind, translated, with its length and, of a write, its identifier. Each line of a write goes to
//@   the port of its own burst, as it is; a read is answered in its turn, from its own port and under its own identifier, and no line of it leaves the port's queue otherwise.
//@   A port's lines always find room. An answer to a write is handed on once, as it came, and stays as it is until it is taken.
//@ source: nothing accepted is lost or duplicated; AXI4 A5.3
//@ assumes: reads have at most 16 lines (`dma_read_request`; those of others are lines and images); a port's memory gives only lines that it was asked for; an answer at a port
//@   stays until it is taken (AXI4 A3.2.1); the queues are as `fifo` shows of them
//@ tier: thorough
//@ depth: 1
//@ cover-depth: 10
//@ asserts: 14
//@ covers: 3
//@ step: in order
//@ arrays: apart
//@ cut: lane$0$ar lane$0$aw lane$0$w lane$0$r lane$0$b lane$1$ar lane$1$aw lane$1$w lane$1$r lane$1$b
//@ mutant: a read is answered from the port of the write that is offered with it
//@ find: turns$data_in[(64'h0)+:(1)] = ar_place$port;
//@ put: turns$data_in[(64'h0)+:(1)] = aw_place$port;
//@ within: 8
//@ mutant: a burst's second line goes where the next burst goes
//@ find: targets$read = w_go & s$wlast;
//@ put: targets$read = w_go;
//@ within: 8
//@ mutant: the answer of one port takes that of the other with it
//@ find: lane$1$b_take = s$bready & b_second;
//@ put: lane$1$b_take = s$bready;
//@ within: 8
wire read_taken = s$arvalid & s$arready & !reset, write_taken = s$awvalid & s$awready & !reset, line_taken = s$wvalid & s$wready & !reset;
wire read_port = s$araddr[10], write_port = s$awaddr[10];
wire [53:0] read_there = {s$arlen, 1'b0, s$araddr[39:11], s$araddr[9:0], 6'd0};
wire [53:0] write_there = {s$awlen, 1'b0, s$awaddr[39:11], s$awaddr[9:0], s$awid};
// Witnesses: a read and a write that are taken at arbitrary moments.
(* anyseq *) reg mark_read, mark_write;
reg has_read = 0, has_write = 0, port_r, port_w;
reg [5:0] id_, reads_ahead;
reg [3:0] writes_ahead;
wire read_over = s$rvalid & s$rready & s$rlast, write_over = line_taken & s$wlast;
always @(posedge clock) begin
    if (reset) begin has_read <= 0; has_write <= 0; end
    else begin
        if (read_taken & mark_read & !has_read) begin
            has_read <= 1; port_r <= read_port; id_ <= s$arid; reads_ahead <= turns__used - read_over;
        end else if (has_read & read_over) begin
            has_read <= reads_ahead != 0; reads_ahead <= reads_ahead - 1;
        end
        if (write_taken & mark_write & !has_write) begin
            has_write <= 1; port_w <= write_port; writes_ahead <= targets__used - write_over;
        end else if (has_write & write_over) begin
            has_write <= writes_ahead != 0; writes_ahead <= writes_ahead - 1;
        end
    end
end
// Lines of port 0: asked for and not given, and in its queue.
reg [8:0] owed_0 = 0, held_0 = 0;
wire comes_0 = m$0$rvalid, waits_0 = lane$0__r$write, leaves_0 = lane$0__r$read & held_0 != 0;
always @(posedge clock) begin
    owed_0 <= reset ? 0 : owed_0 + (read_taken & read_port == 0 ? s$arlen + 9'd1 : 9'd0) - comes_0;
    held_0 <= reset ? 0 : held_0 + (waits_0 & held_0 != 128) - leaves_0;
end
always @* assume (lane$0__r$empty == (held_0 == 0) & (!comes_0 | owed_0 != 0));
reg b_waits_0 = 0;
reg [7:0] b_then_0;
always @(posedge clock) begin b_waits_0 <= lane$0$b_valid & !lane$0$b_take & !reset; b_then_0 <= lane$0$b_answer; end
always @* if (b_waits_0) assume (lane$0$b_valid & lane$0$b_answer == b_then_0);
// Lines of port 1: asked for and not given, and in its queue.
reg [8:0] owed_1 = 0, held_1 = 0;
wire comes_1 = m$1$rvalid, waits_1 = lane$1__r$write, leaves_1 = lane$1__r$read & held_1 != 0;
always @(posedge clock) begin
    owed_1 <= reset ? 0 : owed_1 + (read_taken & read_port == 1 ? s$arlen + 9'd1 : 9'd0) - comes_1;
    held_1 <= reset ? 0 : held_1 + (waits_1 & held_1 != 128) - leaves_1;
end
always @* assume (lane$1__r$empty == (held_1 == 0) & (!comes_1 | owed_1 != 0));
reg b_waits_1 = 0;
reg [7:0] b_then_1;
always @(posedge clock) begin b_waits_1 <= lane$1$b_valid & !lane$1$b_take & !reset; b_then_1 <= lane$1$b_answer; end
always @* if (b_waits_1) assume (lane$1$b_valid & lane$1$b_answer == b_then_1);
always @* assume (s$arlen < 16);
always @* begin
    if (!reset) read_to_port_0: assert (lane$0__ar$write == (read_taken & read_port == 0) & (!lane$0__ar$write | (!lane$0__ar$full & lane$0__ar$data_in == read_there)));
    if (!reset) write_to_port_0: assert (lane$0__aw$write == (write_taken & write_port == 0) & (!lane$0__aw$write | (!lane$0__aw$full & lane$0__aw$data_in == write_there)));
    room_at_port_0: assert (lane$0__credit$q + owed_0 + held_0 == 128 & m$0$rready);
    if (!reset) read_to_port_1: assert (lane$1__ar$write == (read_taken & read_port == 1) & (!lane$1__ar$write | (!lane$1__ar$full & lane$1__ar$data_in == read_there)));
    if (!reset) write_to_port_1: assert (lane$1__aw$write == (write_taken & write_port == 1) & (!lane$1__aw$write | (!lane$1__aw$full & lane$1__aw$data_in == write_there)));
    room_at_port_1: assert (lane$1__credit$q + owed_1 + held_1 == 128 & m$1$rready);
    if (has_write & writes_ahead == 0 & line_taken) line_to_its_port: assert (lane$0__w$write == !port_w & lane$1__w$write == port_w
        & !(port_w ? lane$1__w$full : lane$0__w$full) & (port_w ? lane$1__w$data_in : lane$0__w$data_in) == {s$wlast, s$wstrb, s$wdata});
    if (!line_taken & !reset) only_lines_that_are_taken: assert (!lane$0__w$write & !lane$1__w$write);
    if (has_read & reads_ahead == 0) read_in_its_turn: assert (!s$rvalid | (s$rid == id_ & (port_r ? lane$1$r_valid : lane$0$r_valid)
        & {s$rlast, s$rresp, s$rdata} == (port_r ? lane$1$r_beat : lane$0$r_beat)));
    if (has_read & reads_ahead == 0) read_from_its_port: assert (lane$0$r_take == (s$rready & !port_r) & lane$1$r_take == (s$rready & port_r));
end
reg answer_waits = 0;
reg [7:0] answer_then;
always @(posedge clock) begin answer_waits <= s$bvalid & !s$bready & !reset; answer_then <= {s$bid, s$bresp}; end
always @* begin
    if (answer_waits) answer_stays: assert (s$bvalid & {s$bid, s$bresp} == answer_then);
    answer_leaves_once: assert ((lane$0$b_take & lane$0$b_valid) + (lane$1$b_take & lane$1$b_valid) == (s$bvalid & s$bready)
        & (!(s$bvalid & s$bready) | {s$bresp, s$bid} == (lane$0$b_take & lane$0$b_valid ? lane$0$b_answer : lane$1$b_answer)));
end
// Invariants.
wire [447:0] turns_ = {\turns.mem[63] , \turns.mem[62] , \turns.mem[61] , \turns.mem[60] , \turns.mem[59] , \turns.mem[58] , \turns.mem[57] , \turns.mem[56] , \turns.mem[55] , \turns.mem[54] , \turns.mem[53] , \turns.mem[52] , \turns.mem[51] , \turns.mem[50] , \turns.mem[49] , \turns.mem[48] , \turns.mem[47] , \turns.mem[46] , \turns.mem[45] , \turns.mem[44] , \turns.mem[43] , \turns.mem[42] , \turns.mem[41] , \turns.mem[40] , \turns.mem[39] , \turns.mem[38] , \turns.mem[37] , \turns.mem[36] , \turns.mem[35] , \turns.mem[34] , \turns.mem[33] , \turns.mem[32] , \turns.mem[31] , \turns.mem[30] , \turns.mem[29] , \turns.mem[28] , \turns.mem[27] , \turns.mem[26] , \turns.mem[25] , \turns.mem[24] , \turns.mem[23] , \turns.mem[22] , \turns.mem[21] , \turns.mem[20] , \turns.mem[19] , \turns.mem[18] , \turns.mem[17] , \turns.mem[16] , \turns.mem[15] , \turns.mem[14] , \turns.mem[13] , \turns.mem[12] , \turns.mem[11] , \turns.mem[10] , \turns.mem[9] , \turns.mem[8] , \turns.mem[7] , \turns.mem[6] , \turns.mem[5] , \turns.mem[4] , \turns.mem[3] , \turns.mem[2] , \turns.mem[1] , \turns.mem[0] };
wire [15:0] targets_ = {\targets.mem[15] , \targets.mem[14] , \targets.mem[13] , \targets.mem[12] , \targets.mem[11] , \targets.mem[10] , \targets.mem[9] , \targets.mem[8] , \targets.mem[7] , \targets.mem[6] , \targets.mem[5] , \targets.mem[4] , \targets.mem[3] , \targets.mem[2] , \targets.mem[1] , \targets.mem[0] };
wire [5:0] read_place = turns__head + reads_ahead, turns_held = turns__tail - turns__head;
wire [3:0] write_place = targets__head + writes_ahead, targets_held = targets__tail - targets__head;
always @* begin
    read_is_kept: assert (turns__used <= 64 & turns__used[5:0] == turns_held & (!has_read | (reads_ahead < turns__used
        & (turns_ >> 7 * read_place & 7'h7f) == {id_, port_r})));
    write_is_kept: assert (targets__used <= 16 & targets__used[3:0] == targets_held & (!has_write | (writes_ahead < targets__used & targets_[write_place] == port_w)));
end
always @* read_behind_two: cover (has_read & reads_ahead == 2 & read_over);
always @* second_line: cover (has_write & writes_ahead == 0 & line_taken & s$wlast & port_w & targets__used == 2);
always @* both_answer: cover (answer_waits & lane$0$b_valid & lane$1$b_valid & s$bready);
