//@ unit: Decoder
//@ claim: What an offered command touches lies in its pool; first and last
//@   line are in order and nothing wraps. A mapping that is offered lies in memory, above the card's own areas, its ring inside it.
//@ source: C5; translation never leaves the pool
//@ assumes: the size of the memory is constant; the mapping entry of the command does not change its place while the command is decoded; a mapping in use is as this very
//@   property says of an offered one (base a multiple of 64, end within 40 bits, ring inside)
//@ tier: fast
//@ depth: 1
//@ cover-depth: 10
//@ asserts: 22
//@ covers: 2
//@ step: in order
//@ mutant: the end of the destination is not compared with the end of the pool
//@ find: beyond_d$d = end_d$q > wide_bytes$o;
//@ put: beyond_d$d = 1'b0;
//@ within: 10
//@ mutant: high bits of an offset are not looked at
//@ find: far_s$d = |raw$q[(32'ha8)+:(24)];
//@ put: far_s$d = 1'b0;
//@ within: 10
//@ mutant: a pool may end beyond the memory
//@ find: map_beyond$d = map_end$q > wider_pm$o;
//@ put: map_beyond$d = 1'b0;
//@ within: 10
wire offers = step$q == 6;
wire maps_ = desc$q[21];
reg [159:0] place_then;
reg [33:0] lines_then;
always @(posedge clock) lines_then <= pm_lines;
always @* if (f_past) assume (pm_lines == lines_then);
always @(posedge clock) place_then <= entry[210:51];
wire [39:0] pool_base = entry[90:51];
wire [39:0] pool_bytes = entry[130:91];
wire [39:0] pool_ring = entry[170:131];
wire [39:0] pool_ring_bytes = entry[210:171];
always @* begin
    if (step$q >= 3 & step$q <= 6) assume (entry[210:51] == place_then);
    assume (pool_base[5:0] == 0 & {1'b0, pool_base} + pool_bytes <= 41'h100_0000_0000);
    assume ({1'b0, pool_ring} + pool_ring_bytes <= pool_bytes);
end
wire [40:0] pool_end = {1'b0, pool_base} + pool_bytes;
wire source_used = item_ranges$0, destination_used = item_ranges$1, auxiliary_used = item_ranges$2;
wire [39:0] source_first = {item_first$0, 6'd0}, source_last = {item_last$0, 6'd0};
wire [39:0] destination_first = {item_first$1, 6'd0}, destination_last = {item_last$1, 6'd0};
wire [39:0] auxiliary_first = {item_first$2, 6'd0}, auxiliary_last = {item_last$2, 6'd0};
wire executes = offers & !maps_;
wire [39:0] new_base = item_entry[90:51], new_bytes = item_entry[130:91], new_ring = item_entry[170:131], new_ring_bytes = item_entry[210:171];
// Invariants: what each step has found out.
wire after_size = step$q >= 2 & step$q <= 6, after_ends = step$q >= 3 & step$q <= 6;
wire after_bounds = step$q >= 4 & step$q <= 6, after_overlap = step$q >= 5 & step$q <= 6;
always @* if (after_size) begin
    length_is_judged: assert (length_bad$q == (raw$q[384 +: 32] == 0 | raw$q[384 +: 32] > 32'd262144));
    entry_is_sized: assert (length_bad$q | entry_bytes$q != 0);
end
always @* begin
    if (after_ends) end_of_s: assert (end_s$q == {1'b0, raw$q[128 +: 40]} + wide_size_s$o & far_s$q == (raw$q[168 +: 24] != 0));
    if (after_bounds) bounds_of_s: assert (beyond_s$q == (end_s$q > pool_bytes) & before_ring_s$q == (raw$q[128 +: 40] < pool_ring)
        & behind_ring_s$q == (end_s$q > ring_end$q) & first_s$q == raw$q[128 + 6 +: 34] & last_s$q == final_s[39:6]);
    if (after_overlap) lines_of_s: assert (head_s$q == pool_base[39:6] + first_s$q & tail_s$q == pool_base[39:6] + last_s$q);
end
always @* begin
    if (after_ends) end_of_d: assert (end_d$q == {1'b0, raw$q[192 +: 40]} + wide_size_d$o & far_d$q == (raw$q[232 +: 24] != 0));
    if (after_bounds) bounds_of_d: assert (beyond_d$q == (end_d$q > pool_bytes) & before_ring_d$q == (raw$q[192 +: 40] < pool_ring)
        & behind_ring_d$q == (end_d$q > ring_end$q) & first_d$q == raw$q[192 + 6 +: 34] & last_d$q == final_d[39:6]);
    if (after_overlap) lines_of_d: assert (head_d$q == pool_base[39:6] + first_d$q & tail_d$q == pool_base[39:6] + last_d$q);
end
always @* begin
    if (after_ends) end_of_a: assert (end_a$q == {1'b0, raw$q[256 +: 40]} + wide_size_a$o & far_a$q == (raw$q[296 +: 24] != 0));
    if (after_bounds) bounds_of_a: assert (beyond_a$q == (end_a$q > pool_bytes) & before_ring_a$q == (raw$q[256 +: 40] < pool_ring)
        & behind_ring_a$q == (end_a$q > ring_end$q) & first_a$q == raw$q[256 + 6 +: 34] & last_a$q == final_a[39:6]);
    if (after_overlap) lines_of_a: assert (head_a$q == pool_base[39:6] + first_a$q & tail_a$q == pool_base[39:6] + last_a$q);
end
always @* begin
    if (after_ends) end_of_ring: assert (ring_end$q == {1'b0, pool_ring} + pool_ring_bytes);
    if (after_ends) ends_of_map: assert (map_end$q == {1'b0, raw$q[128 +: 40]} + raw$q[192 +: 40] & map_ring_end$q == {1'b0, raw$q[256 +: 40]} + raw$q[384 +: 32]);
    if (after_bounds) bounds_of_map: assert (map_beyond$q == (map_end$q > {1'b0, pm_lines, 6'd0}) & map_low$q == (raw$q[128 +: 40] < 40'h10_0000)
        & map_ring_beyond$q == (map_ring_end$q > raw$q[192 +: 40]) & map_askew$q == (raw$q[128 +: 6] != 0 | raw$q[256 +: 6] != 0)
        & map_far$q == (far_s$q | far_d$q | far_a$q | raw$q[192 +: 40] == 0));
    if (executes) judged: assert (!outside & !(uses_length & length_bad$q));
    if (offers & maps_) map_judged: assert (!map_far$q & !map_beyond$q & !map_low$q & !map_ring_beyond$q & !map_askew$q);
end
// What is claimed.
always @* begin
    if (executes & source_used) source_in_pool: assert (source_first >= pool_base & source_first <= source_last & source_last < pool_end);
    if (executes & destination_used) destination_in_pool:
        assert (destination_first >= pool_base & destination_first <= destination_last & destination_last < pool_end);
    if (executes & auxiliary_used) auxiliary_in_pool:
        assert (auxiliary_first >= pool_base & auxiliary_first <= auxiliary_last & auxiliary_last < pool_end);
    if (executes & source_used) source_is_translated: assert (address_s$o == pool_base + raw$q[128 +: 40] & raw$q[168 +: 24] == 0);
    if (executes & destination_used) destination_is_translated: assert (address_d$o == pool_base + raw$q[192 +: 40] & raw$q[232 +: 24] == 0);
end
always @* if (offers & maps_) mapping_in_memory: assert (new_base[5:0] == 0 & new_base >= 40'h10_0000
    & {1'b0, new_base} + new_bytes <= {1'b0, pm_lines, 6'd0} & {1'b0, new_ring} + new_ring_bytes <= new_bytes);
always @* copies: cover (executes & source_used & destination_used & desc$q[16] & item_ready);
always @* maps_a_pool: cover (offers & maps_ & item_ready);
