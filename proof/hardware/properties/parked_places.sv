//@ unit: ParkedPlaces
//@ claim: A mapping entry waits exactly while a place holds a command of it. What comes gets a place that held none.
//@ source: several devices: a mapping is not written while a command of it is parked
//@ assumes: a command comes only while a place is free, and leaves only a place that holds one
//@ tier: fast
//@ depth: 1
//@ cover-depth: 8
//@ asserts: 4
//@ covers: 1
//@ arrays: apart
//@ mutant: a command that comes is not counted when another of its entry leaves
//@ find: parked[i] <= parked[i] + {5'd0, put_valid & (put_map == i[3:0])}
//@ put: parked[i] <= parked[i] + {5'd0, put_valid & (put_map == i[3:0]) & ~leave_valid}
//@ within: 8
// Witness: an arbitrary mapping entry.
(* anyconst *) reg [3:0] map_;
wire [127:0] map_of = {
    \map_of[31] , \map_of[30] , \map_of[29] , \map_of[28] , \map_of[27] , \map_of[26] , \map_of[25] , \map_of[24] ,
    \map_of[23] , \map_of[22] , \map_of[21] , \map_of[20] , \map_of[19] , \map_of[18] , \map_of[17] , \map_of[16] ,
    \map_of[15] , \map_of[14] , \map_of[13] , \map_of[12] , \map_of[11] , \map_of[10] , \map_of[9] , \map_of[8] ,
    \map_of[7] , \map_of[6] , \map_of[5] , \map_of[4] , \map_of[3] , \map_of[2] , \map_of[1] , \map_of[0] };
wire [95:0] counts = {
    \parked[15] , \parked[14] , \parked[13] , \parked[12] , \parked[11] , \parked[10] , \parked[9] , \parked[8] ,
    \parked[7] , \parked[6] , \parked[5] , \parked[4] , \parked[3] , \parked[2] , \parked[1] , \parked[0] };
reg [31:0] of_entry;
// Commands in the first so many places, kept step by step: what is a sum of 32 bits becomes 32 sums of one, which the solver sees at once.
reg [197:0] in_first = 0;
reg [31:0] one_more, in_order;
integer n;
always @(posedge clock)
    for (n = 1; n <= 32; n = n + 1)
        in_first[6 * n +: 6] <= reset ? 6'd0 : in_first[6 * n +: 6] + (put_valid & put_map == map_ & put_place < n) - (leave_valid & leave_map_ == map_ & leave_place < n);
wire [3:0] leave_map_ = map_of[4 * leave_place +: 4];
always @* for (n = 0; n < 32; n = n + 1) begin
    of_entry[n] = used[n] & map_of[4 * n +: 4] == map_;
    one_more[n] = in_first[6 * (n + 1) +: 6] == in_first[6 * n +: 6] + of_entry[n];
    in_order[n] = in_first[6 * (n + 1) +: 6] >= in_first[6 * n +: 6] & in_first[6 * n +: 6] <= n;
end
wire [5:0] number = in_first[6 * 32 +: 6];
wire [5:0] parked_ = counts[6 * map_ +: 6];
always @* begin
    if (put_valid) assume (used != 32'hffffffff);
    if (leave_valid) assume (used >> leave_place & 1);
end
always @* begin
    number_counts_the_places: assert (&one_more & &in_order & in_first[5:0] == 0);
    parked_is_number: assert (parked_ == number & number <= 32);
    waits_while_it_has_one: assert ((waiting >> map_ & 1) == (of_entry != 0));
end
always @* if (put_valid) gets_a_free_place: assert (!(used >> put_place & 1));
always @* two_wait: cover (number == 2);
