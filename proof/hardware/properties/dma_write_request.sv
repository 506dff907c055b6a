//@ unit: DmaWrite
//@ claim: A write request stays as it is until it is taken, and asks for at most 16 lines.
//@ source: memory request group
//@ assumes: an operation has at least one line
//@ tier: fast
//@ depth: 2
//@ cover-depth: 16
//@ asserts: 3
//@ covers: 1
//@ mutant: the next burst is formed while one is asked for
//@ find: quiesce & ~state$q[(64'h2)+:(1)]
//@ put: quiesce
//@ within: 16
reg waits = 0;
reg [42:0] then_;
wire [42:0] now_ = {wr_line, wr_beats, wr_tag};
always @(posedge clock) begin
    waits <= wr_valid & !wr_ready & !reset;
    then_ <= now_;
end
always @* if (waits) request_stays: assert (wr_valid & now_ == then_);
always @* if (wr_valid) inside_a_piece: assert (wr_beats < 16);
// Invariant of the burst that is cut next.
always @* if (burst__load) assume (burst__count != 0);
always @* if (state$q[0]) burst_is_cut: assert (burst__take >= 1 & burst__take <= 16 & burst__less == burst__take - 5'd1
    & burst__left >= burst__take & burst__last == (burst__left == burst__take));
always @* request_waits: cover (waits & wr_ready);
