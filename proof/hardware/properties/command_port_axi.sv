//@ unit: CommandPort
//@ claim: On AXI an answer to a write or to a read stays as it is until it is taken.
//@ source: AXI4 A3.2.1
//@ assumes: nothing
//@ tier: fast
//@ depth: 2
//@ cover-depth: 12
//@ asserts: 2
//@ covers: 2
//@ cut: sweep bytes masks crc counts merged
//@ mutant: an answer to a read is taken back while a write is offered
//@ find: s$rvalid = reading$q;
//@ put: s$rvalid = reading$q & ~s$awvalid;
//@ within: 12
reg b_waits = 0, r_waits = 0;
reg [7:0] b_then;
reg [520:0] r_then;
wire [7:0] b_now = {s$bid, s$bresp};
wire [520:0] r_now = {s$rid, s$rresp, s$rlast, s$rdata};
always @(posedge clock) begin
    b_waits <= s$bvalid & !s$bready & !reset;
    r_waits <= s$rvalid & !s$rready & !reset;
    b_then <= b_now;
    r_then <= r_now;
end
always @* if (b_waits) write_answer_stays: assert (s$bvalid & b_now == b_then);
always @* if (r_waits) read_answer_stays: assert (s$rvalid & r_now == r_then);
always @* write_answer_waits: cover (b_waits & s$bready);
always @* read_answer_waits: cover (r_waits & s$rready);
