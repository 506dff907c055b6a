//@ unit: AddressMap
//@ claim: What the save reads out of a mapping is what was written or restored there, with the commit, the report, the latch (by a log, or by a lost store a cycle
//@   later) and the closing that came since, and what a function-level reset left of it; written back, it is the same mapping again.
//@ source: C7: save followed by load gives the same state (mappings)
//@ assumes: nothing; the witness is entry 5, all entries are written by one loop
//@ tier: fast
//@ depth: 2
//@ cover-depth: 8
//@ asserts: 2
//@ covers: 1
//@ arrays: apart
//@ mutant: the save reads another entry's place
//@ find: committed[save_index], place[save_index]
//@ put: committed[save_index], place[0]
//@ within: 8
//@ mutant: the committed transaction is not restored
//@ find: committed[write_index] <= write_entry[274:211];
//@ put: committed[write_index] <= 64'd0;
//@ within: 8
reg [339:0] mapping = 0;
reg [339:0] mapping_then = 0;
reg asked = 0;
reg hit = 0;
wire [39:0] into = {lost_line, 6'd0} - mapping[90:51];
always @(posedge clock) begin
    hit <= !reset & lost_valid & mapping[0] & into < mapping[130:91];
    if (hit) mapping[1] <= 1;
    if (write_valid & write_index == 5) mapping <= write_entry;
    if (commit_valid & retire_index == 5) mapping[274:211] <= txid;
    if (latch_valid & retire_index == 5) mapping[1] <= 1;
    if (close_valid & close_index == 5) mapping[2] <= 1;
    if (reopen_valid & reopen_index == 5 & !mapping[339]) mapping[2] <= 0;
    if (reach_valid & reach_index == 5) mapping[338:275] <= reach_txid;
    if (free_valid & retire_index == 5) mapping[2:0] <= 0;
    if (drop[5]) mapping[2:0] <= 0;
    if (clear) begin mapping[339] <= keep[5] & mapping[0]; mapping[2:0] <= keep[5] & mapping[0] ? 5 : 0; end
    if (reset) mapping[2:0] <= 0;
    mapping_then <= mapping;
    asked <= save_index == 5;
end
wire [339:0] kept = {orphan[5], \reached[5] , \committed[5] , \place[5] , \key[5] , \flags[5] };
always @* mapping_is_kept: assert (kept == mapping);
always @* if (asked & f_past) mapping_is_saved: assert (saved == mapping_then);
reg restored = 0;
always @(posedge clock) restored <= restored | (write_valid & write_index == 5 & write_entry[2:0] == 1 & write_entry[274:211] == 7);
always @* restored_and_saved: cover (asked & restored & saved[0] & saved[274:211] == 8);
