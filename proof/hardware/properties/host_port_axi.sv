//@ unit: HostPort
//@ claim: On AXI an answer to a store or a line of a load stays as it is until it is taken; the port
//@   counts exactly the loads that are open.
//@ source: AXI4 A3.2.1, C10
//@ assumes: the queue answers loads that it was given, each once, and holds an answer until it is taken; at most 64 loads are open, one
//@   of each identifier
//@ tier: fast
//@ depth: 3
//@ cover-depth: 12
//@ asserts: 4
//@ covers: 3
//@ mutant: data takes the place of a refusal that is shown
//@ find: shows_data = rsp_valid & ~refusal_shown$q;
//@ put: shows_data = rsp_valid;
//@ within: 12
wire [7:0] b_now = {s$bid, s$bresp};
wire [520:0] r_now = {s$rid, s$rresp, s$rlast, s$rdata};
wire [518:0] rsp_now = {rsp_id, rsp_error, rsp_data};
reg b_waits = 0, r_waits = 0, rsp_waits = 0;
reg [7:0] b_then;
reg [520:0] r_then;
reg [518:0] rsp_then;
// Loads that the queue has and has not answered.
reg [7:0] given = 0;
wire gives = acc_valid & acc_ready & !acc_write;
wire answered = rsp_valid & rsp_ready;
always @(posedge clock) begin
    b_waits <= s$bvalid & !s$bready & !reset;
    r_waits <= s$rvalid & !s$rready & !reset;
    rsp_waits <= rsp_valid & !rsp_ready & !reset;
    b_then <= b_now;
    r_then <= r_now;
    rsp_then <= rsp_now;
    given <= reset ? 0 : given + gives - answered;
end
always @* begin
    if (rsp_waits) assume (rsp_valid & rsp_now == rsp_then);
    if (given == 0) assume (!rsp_valid);
    if (given == 64) assume (!acc_ready);
end
always @* if (b_waits) store_answer_stays: assert (s$bvalid & b_now == b_then);
always @* if (r_waits) load_answer_stays: assert (s$rvalid & r_now == r_then);
always @* if (!f_was_reset) loads_are_counted: assert (open_loads$q == given + refusal$q & given <= 64);
always @* if (has_burst$q & !f_was_reset) one_line_of_a_burst: assert (open_loads$q == burst_waits$q);
always @* store_answer_waits: cover (b_waits & s$bready);
always @* refusal_waits: cover (r_waits & refusal$q & rsp_valid & s$rready);
always @* burst_ends: cover (s$rvalid & s$rready & s$rlast & has_burst$q);
