//@ unit: OrderingPoint
//@ claim: A command that is offered while a slot is free is numbered in the third cycle at the latest. A host access that is offered while a line is free is
//@   numbered in the third cycle at the latest in which neither a command nor a replayed store goes before it, and a replayed store likewise.
//@ source: C10
//@ assumes: nothing
//@ tier: fast
//@ depth: 1
//@ cover-depth: 8
//@ asserts: 4
//@ covers: 2
//@ mutant: a command for which no slot is free keeps host accesses waiting
//@ find: take_host = (phase$q == Phase$Ready) & ~take_command &
//@ put: take_host = (phase$q == Phase$Ready) & ~item_valid &
//@ within: 8
//@ mutant: a command lets host accesses go first
//@ find: take_command = (phase$q == Phase$Ready) & item_valid &
//@ put: take_command = (phase$q == Phase$Ready) & item_valid & ~acc_valid &
//@ within: 8
wire command_may = item_valid & slot_any & !reset;
wire store_may = store_valid & line_any & !command_may & !reset;
wire access_may = acc_valid & line_any & !store_valid & !command_may & !reset;
// Cycles in which each could have been numbered and was not, without a gap.
reg [2:0] command_waits = 0, store_waits = 0, access_waits = 0;
always @(posedge clock) begin
    command_waits <= command_may & !item_ready ? command_waits + 1 : 0;
    store_waits <= store_may & !store_ready ? store_waits + 1 : 0;
    access_waits <= access_may & !acc_ready ? access_waits + 1 : 0;
end
// Cycles until the queries of the last command are made.
wire [1:0] asks_on = phase$q == 1 ? 2 : phase$q == 2 ? 1 : 0;
always @* begin
    three_phases: assert (phase$q != 3);
    command_in_time: assert (command_waits + asks_on <= 2 & (!(command_may & command_waits == 2) | item_ready));
    store_in_time: assert (store_waits + asks_on <= 2 & (!(store_may & store_waits == 2) | store_ready));
    access_in_time: assert (access_waits + asks_on <= 2 & (!(access_may & access_waits == 2) | acc_ready));
end
always @* command_waits_longest: cover (command_waits == 2 & item_ready);
always @* access_waits_longest: cover (access_waits == 2 & acc_ready);
