//@ unit: RoundRobin
//@ claim: Exactly one of those that ask is granted. One that keeps asking is granted behind at most 31 others of 32.
//@ source: C10: nobody starves
//@ assumes: nothing
//@ tier: fast
//@ depth: 1
//@ cover-depth: 36
//@ asserts: 3
//@ covers: 1
//@ mutant: who was granted comes first again
//@ find: else if (take & any) later <= lower;
//@ put: else if (take & any) later <= lower | grant;
//@ within: 36
//@ mutant: the turn does not pass the last one
//@ find: else if (take & any) later <= lower;
//@ put: else if (take & any & ~grant[31]) later <= lower;
//@ within: 36
// Witness: one that asks. `next` follows the one that was granted last.
(* anyconst *) reg [4:0] one_;
reg [5:0] next = 0, others = 0;
wire asks = requests[one_];
always @(posedge clock) begin
    next <= reset ? 0 : take & any ? index + 6'd1 : next;
    others <= reset | !asks | (take & grant[one_]) ? 0 : others + (take & any);
end
// Those that come before it, if all of them ask.
wire [5:0] ahead = next <= one_ ? one_ - next : 32 - next + one_;
always @* begin
    one_is_granted: assert (any == (requests != 0) & (!any | (grant == 32'd1 << index & requests[index])));
    turn_is_known: assert (later == 32'hffffffff << next & next <= 32);
    granted_in_turn: assert (others + ahead <= 31);
end
always @* waits_longest: cover (others == 31 & take & grant[one_]);
