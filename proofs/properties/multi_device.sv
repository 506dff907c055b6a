//@ unit: MultiDevice
//@ claim: A synchronisation is granted only when every other participant has reported that transaction, or a later one, of the
//@   same pool and thread.
//@ source: several devices: a log is deleted only after all participants have reported
//@ assumes: the first cycle is in reset; devices have numbers below 8, and nobody sends in this device's name; a unit holds its
//@   request until it is granted
//@ tier: thorough
//@ depth: 2
//@ cover-depth: 50
//@ asserts: 13
//@ covers: 1
//@ watch: reached
//@ mutant: a participant that has not reported is not missed
//@ find: missing$d = 1'b1;
//@ put: missing$d = 1'b0;
//@ within: 46
// Witness: one peer, one (pool, thread), both arbitrary. `best` is the highest transaction that the peer has reported of it.
(* anyconst *) reg [2:0] peer;
(* anyconst *) reg [31:0] pool;
(* anyconst *) reg [15:0] thread_;
reg [63:0] best = 0;
wire takes = peer_in_valid & peer_in_ready;
wire of_witness = peer_in_data[31:0] == pool & peer_in_data[47:32] == thread_ & peer_in_data[50:48] == peer;
always @(posedge clock) if (takes & of_witness & peer_in_data[127:64] > best) best <= peer_in_data[127:64];

// Assumptions: the first cycle is in reset; the number of a device is fixed and below 8, as are those of the senders; a unit that
// synchronises holds its request until it is granted (sequencer); nobody sends in this device's name.
reg [4:0] number;
always @(posedge clock) number <= device_number;
always @* begin
    if (f_past) assume (device_number == number);
    assume (device_number < 8);
    if (peer_in_valid) assume (peer_in_data[55:48] < 8 & peer_in_data[55:48] != {3'd0, device_number});
end

wire [7:0] place_of_witness = {peer, pool[4:0] ^ thread_[4:0]};
always @* assume (reached__watched == place_of_witness);
wire [111:0] kept = reached__word;
wire kept_is_witness = kept[31:0] == pool & kept[47:32] == thread_;
wire is_other = {2'd0, peer} != device_number;

// What is remembered of the peer it has reported.
always @* if (is_other & kept_is_witness) memory_is_true: assert (kept[111:48] <= best);

// The request that is being served, and what is known of it.
wire [3:0] valid = {sync_valid$3, sync_valid$2, sync_valid$1, sync_valid$0};
wire [3:0] ready = {sync_ready$3, sync_ready$2, sync_ready$1, sync_ready$0};
wire [575:0] requests = {sync_participants$3, sync_txid$3, sync_thread$3, sync_pool$3,
    sync_participants$2, sync_txid$2, sync_thread$2, sync_pool$2, sync_participants$1, sync_txid$1, sync_thread$1, sync_pool$1,
    sync_participants$0, sync_txid$0, sync_thread$0, sync_pool$0};
wire [143:0] served = requests[144 * unit$q +: 144];
wire serves = phase$q == 3 | phase$q == 4 | phase$q == 5;
wire concerns = is_other & served[112 +: 32] >> peer & served[47:0] == {thread_, pool};
reg [3:0] waited = 0;
reg [575:0] last_requests;
always @(posedge clock) begin waited <= valid & ~ready; last_requests <= requests; end
genvar u;
generate for (u = 0; u < 4; u = u + 1)
    always @* if (waited[u] & !f_was_reset) assume (valid[u] & requests[144 * u +: 144] == last_requests[144 * u +: 144]);
endgenerate

// The property, for an arbitrary unit.
(* anyconst *) reg [1:0] unit_;
wire [143:0] request = requests[144 * unit_ +: 144];
wire granted = valid[unit_] & ready[unit_] & is_other & request[112 +: 32] >> peer & request[47:0] == {thread_, pool};
always @* if (granted) granted_after_reports: assert (best >= request[111:48]);
always @* granted_to_two: cover (granted & request[111:48] > 1 & !f_was_reset);

// Invariants.
always @* if (serves & !f_was_reset) begin
    serves_others: assert ((served[143:112] & ~own) != 0);
    serves_a_request: assert (valid[unit$q] & served[111:0] == {waiting$q[111:48], waiting$q[47:0]});
end
always @* if (phase$q == 3 & !f_was_reset) others_begin: assert (others$q == (served[143:112] & ~own));
always @* if (phase$q == 4 & !f_was_reset) begin
    others_are_shifted: assert (others$q == (served[143:112] & ~own) >> device$q);
    seen_until_now: assert (missing$q | !concerns | device$q <= peer | best >= served[111:48]);
end
always @* if (phase$q == 5 & !f_was_reset)
    seen_all: assert (missing$q | !concerns | best >= served[111:48]);
// The memory's word is read in four cycles.
wire reads = phase$q >= 1 & phase$q <= 4;
always @* if (reads & stage$q >= 1 & !f_was_reset) place_follows: assert (place_now$q == place$o);
always @* if (reads & stage$q >= 2 & place_now$q == place_of_witness & !f_was_reset) entry_follows: assert (entry$q == kept);
always @* if (phase$q >= 1 & phase$q <= 3 & !f_was_reset) speaks_for_itself: assert (device$q == device_number);
always @* if (phase$q == 1 & !f_was_reset) begin
    heard_of_a_peer: assert (heard$q[55:48] < 8 & heard$q[55:48] != device_number);
    heard_is_counted: assert (heard$q[47:0] != {thread_, pool} | heard$q[50:48] != peer | best >= heard$q[127:64]);
end

`ifdef DIRECTED
always @* assume (device_number == 0 & peer == 1 & pool == 5 & thread_ == 3 & valid == 1 & participants_of_0 == 3);
wire [31:0] participants_of_0 = sync_participants$0;
always @* assume (sync_txid$0 == 2 & sync_pool$0 == 5 & sync_thread$0 == 3 & peer_in_data == {64'd2, 8'd0, 8'd1, 16'd3, 32'd5});
always @* if (f_past) assume (!reset);
`endif
