//@ unit: MultiDevice
//@ claim: A command that synchronises is let go only when every other participant has told, of its mapping entry, that transaction or a
//@   later one, or software has decided. The command that is let go is the one that was parked in its place.
//@ source: several devices: a log is deleted only after all participants have reported
//@ assumes: the first cycle is in reset; the number of the device is fixed; a command comes only while a place is free; a mapping entry is not
//@   written while something of it waits (`parked_places` shows that `waiting` says so); a power failure lasts longer than a look; `Heard` compares what was told last (its page of `hdl/src/units/heard.rs`)
//@ tier: fast
//@ depth: 2
//@ cover-depth: 24
//@ asserts: 10
//@ covers: 1
//@ watch: raw note
//@ cut: heard brief inbox
//@ arrays: apart
//@ mutant: a participant that has not reported is not missed
//@ find: missing$d = noted[(64'h42)+:(1)] & ~is_forced[32'h0] & |(others$q & heard$behind);
//@ put: missing$d = 1'b0;
//@ within: 24
// Witness: one place, one mapping entry, one other device, all arbitrary. `best` is the transaction that the device has told of the entry.
(* anyconst *) reg [3:0] map_;
(* anyconst *) reg [2:0] device_;
reg [3:0] number;
reg fails_then;
always @(posedge clock) begin number <= device_number; fails_then <= quiesce & phase$q != 0; end
always @* begin
    assume (raw__watched == note__watched);
    if (f_past) assume (device_number == number & (quiesce | !fails_then));
    if (park_valid) assume (places$used != 32'hffffffff);
    if (forget_valid & forget_map == map$q) assume (places$of_map == 0);
end
wire [4:0] place_ = raw__watched;
wire [63:0] txid_ = raw__word[127:64];
wire synchronises_ = note__word[66];
wire other_ = raw__word[455:448] >> device_ & 1 & {1'b0, device_} != device_number;
wire forced_ = places$forced >> place_ & 1;
reg [63:0] best = 0;
wire tells_ = heard$tell_valid & heard$tell_map == map_ & heard$tell_device == device_;
always @(posedge clock)
    if (reset | (forget_valid & forget_map == map_)) best <= 0;
    else if (tells_) best <= heard$tell_txid;
reg asked = 0, answer = 0;
always @(posedge clock) begin asked <= heard$look_map == map_; answer <= best < heard$look_txid; end
always @* if (f_past & asked) assume ((heard$behind >> device_ & 1) == answer);

wire enough = !synchronises_ | forced_ | !other_ | best >= txid_;
wire looks_at_it = place$q == place_ & map$q == map_ & !f_was_reset;
always @* if (release_valid & looks_at_it) released_after_reports: assert (enough & release_raw == raw__word);
always @* waited_and_released: cover (release_valid & looks_at_it & synchronises_ & other_ & !forced_ & txid_ > 1);

// Invariants: the place that is looked at holds a command of the entry.
wire in_entry = places$of_map >> place$q & 1;
wire best_in_entry = places$of_map >> best_place$q & 1;
always @* if (!f_was_reset & phase$q == 6) begin
    left_are_of_the_entry: assert ((left$q & ~places$of_map) == 0);
    next_is_of_the_entry: assert (!has$q | in_entry);
    best_is_of_the_entry: assert (!best_any$q | best_in_entry);
end
always @* if (!f_was_reset & phase$q >= 7 & phase$q <= 11 & best_any$q) place_is_of_the_entry: assert (in_entry);
always @* if (!f_was_reset & (phase$q == 10 | phase$q == 11)) let_go_misses_nobody: assert (best_any$q & !missing$q);
always @* if (f_was_reset) begins_idle: assert (phase$q == 0);
always @* if (f_past & !f_was_reset) own_is_known: assert (own$q == 16'd1 << device_number);
always @* if (looks_at_it & !quiesce & phase$q >= 8 & phase$q <= 11 & best_any$q)
    others_are_known: assert (others$q == (raw__word[455:448] & ~own$q[7:0]));
always @* if (looks_at_it & !quiesce & phase$q >= 9 & phase$q <= 11 & best_any$q) missing_is_known: assert (missing$q | enough);

`ifdef DIRECTED
always @* assume (device_number == 0 & device_ == 1 & map_ == 3 & place_ == 0 & !quiesce & !stop & window_open & slot_any);
always @* if (f_past) assume (!reset & !clear & !act_valid);
`endif
