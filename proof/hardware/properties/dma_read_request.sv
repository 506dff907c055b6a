//@ unit: DmaRead
//@ claim: A read request stays as it is until it is taken, has at most 16 lines inside 1 KiB, and no more lines are ever asked for than
//@   the line FIFO has room for.
//@ source: memory request group: a requester asks only for what it can take
//@ assumes: an operation has at least one line; a line leaves the FIFO only when it is there; the memory gives only lines that were asked for
//@ tier: thorough
//@ depth: 2
//@ cover-depth: 12
//@ asserts: 7
//@ covers: 1
//@ cut: masked
//@ mutant: a burst is asked for where the one before may have taken the room
//@ find: credit$q[32'h4] & ~form
//@ put: credit$q[32'h4]
//@ within: 30
reg waits = 0;
reg [39:0] then_;
wire [39:0] now_ = {rd_line, rd_beats};
// Lines in the FIFO.
reg [6:0] held = 0;
always @(posedge clock) begin
    waits <= rd_valid & !rd_ready & !reset;
    then_ <= now_;
    held <= reset ? 0 : held + rdata_valid - freed;
end
always @* begin
    assume (!freed | held != 0);
    assume (!rdata_valid | outstanding$q != 0);
end
always @* if (waits) request_stays: assert (rd_valid & now_ == then_);
always @* if (rd_valid) inside_a_piece: assert (rd_beats < 16);
// What is offered or was taken is the burst that is cut, and has room.
always @* begin
    offer_is_of_a_copy: assert (!(state$q[1] | state$q[2]) | state$q[0]);
    one_at_a_time: assert (!(state$q[1] & state$q[2]));
    longest_has_room: assert (!(plenty$q | state$q[1] | state$q[2]) | credit$q >= 16);
end
always @* if (!f_was_reset) room_for_all: assert ({2'd0, credit$q} + outstanding$q + held == 64);
// Invariant of the burst that is cut next.
always @* if (burst__load) assume (burst__count != 0);
always @* if (state$q[0]) burst_is_cut: assert (burst__take >= 1 & burst__take <= 16 & burst__less == burst__take - 5'd1
    & burst__left >= burst__take & burst__last == (burst__left == burst__take));
always @* request_waits: cover (waits & rd_ready & rd_beats == 15);
