//@ unit: Fifo
//@ claim: What is appended leaves once, unchanged and in its turn: behind what was there before it, and before everything else.
//@ source: nothing accepted is lost or duplicated
//@ assumes: nothing
//@ tier: fast
//@ depth: 2
//@ cover-depth: 20
//@ asserts: 5
//@ covers: 2
//@ mutant: an append to a queue that is read in the same cycle does not count
//@ find: used <= used + {4'd0, append} - {4'd0, remove};
//@ put: used <= used + {4'd0, append & ~remove} - {4'd0, remove};
//@ within: 6
//@ mutant: the sixteenth entry overwrites the first
//@ find: full = used[4];
//@ put: full = used == 5'd17;
//@ within: 20
// Witness: an entry that is appended at an arbitrary moment; `ahead` entries leave before it.
(* anyseq *) reg mark;
reg tracked = 0;
reg [7:0] value;
reg [3:0] ahead;
wire leaves = remove & tracked & ahead == 0;
always @(posedge clock) begin
    if (reset) tracked <= 0;
    else if (append & mark & !tracked) begin
        tracked <= 1;
        value <= data_in;
        ahead <= used[3:0] - remove;
    end else if (leaves) tracked <= 0;
    else if (remove & tracked) ahead <= ahead - 1;
end
wire [3:0] place = head + ahead;
wire [3:0] held = tail - head;
always @* begin
    at_most_sixteen: assert (used <= 16);
    counted: assert (used[3:0] == held);
    if (tracked) still_there: assert ({1'b0, ahead} < used);
    if (tracked) unchanged: assert (mem[place] == value);
    if (leaves) leaves_as_it_came: assert (data_out == value);
end
always @* leaves_last_of_sixteen: cover (tracked & ahead == 15);
reg was_behind = 0;
always @(posedge clock) was_behind <= (was_behind | (tracked & ahead == 2)) & tracked & !reset;
always @* leaves_behind_two: cover (leaves & was_behind);
