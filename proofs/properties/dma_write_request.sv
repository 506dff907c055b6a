//@ unit: DmaWrite
//@ claim: A write request stays as it is until it is taken, and asks for at most 16 lines.
//@ source: memory request group
//@ assumes: nothing
//@ tier: fast
//@ depth: 2
//@ cover-depth: 16
//@ asserts: 2
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
always @* request_waits: cover (waits & wr_ready);
