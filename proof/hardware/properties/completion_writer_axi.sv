//@ unit: CompletionWriter
//@ claim: On AXI a valid address or data stays as it is until it is taken, and each record of a page with a ring is, once
//@   it has left the queue, one address and one line: none is lost and none sent twice. With a host that takes each within 8 cycles a record is gone 11 cycles after it left the queue.
//@ source: AXI4 A3.2.1; C4
//@ assumes: where time is bounded, the host takes an address and a line within 8 cycles of their offer
//@ tier: fast
//@ depth: 3
//@ cover-depth: 8
//@ asserts: 10
//@ covers: 1
//@ cut: queue line
//@ mutant: the line is taken back when the address is taken
//@ find: axi$wvalid = (phase$q == Phase$Send) & ~data_done$q;
//@ put: axi$wvalid = (phase$q == Phase$Send) & ~data_done$q & ~address_done$q;
//@ within: 8
//@ mutant: a record that waits for its address only is over
//@ find: if ((address_done$q | axi$awready) & (data_done$q | axi$wready)) begin
//@ put: if ((data_done$q | axi$wready)) begin
//@ within: 8
wire [78:0] address_now = {axi$awid, axi$awaddr, axi$awlen, axi$awsize, axi$awburst};
wire [576:0] line_now = {axi$wdata, axi$wstrb, axi$wlast};
reg address_waits = 0, line_waits = 0;
reg [78:0] address_then;
reg [576:0] line_then;
always @(posedge clock) begin
    address_waits <= axi$awvalid & !axi$awready & !reset;
    line_waits <= axi$wvalid & !axi$wready & !reset;
    address_then <= address_now;
    line_then <= line_now;
end
always @* if (address_waits) address_stays: assert (axi$awvalid & address_now == address_then);
always @* if (line_waits) line_stays: assert (axi$wvalid & line_now == line_then);

// Since the record left the queue.
reg [1:0] addresses = 0, lines = 0;
reg goes = 0;
wire pops = queue$read & !queue$empty & !reset;
always @(posedge clock) if (reset | pops) begin addresses <= 0; lines <= 0; goes <= 0; end else begin
    addresses <= addresses + (axi$awvalid & axi$awready);
    lines <= lines + (axi$wvalid & axi$wready);
    goes <= goes | (phase$q == 2);
end
always @* begin
    one_address: assert (addresses == (goes & (phase$q != 2 | address_done$q)));
    one_line: assert (lines == (goes & (phase$q != 2 | data_done$q)));
    no_record_overtakes: assert (!pops | phase$q == 0);
    enabled_record_goes: assert (phase$q != 2 | enabled_now$q);
end
// Time.
reg [3:0] address_offer = 0, line_offer = 0;
reg [3:0] age = 0;
always @(posedge clock) begin
    address_offer <= axi$awvalid & !axi$awready & !reset ? address_offer + 1 : 0;
    line_offer <= axi$wvalid & !axi$wready & !reset ? line_offer + 1 : 0;
    age <= phase$q == 0 | reset ? 0 : age + (age != 15);
end
always @* if (address_offer >= 7) assume (axi$awready);
always @* if (line_offer >= 7) assume (axi$wready);
always @* gone_in_time: assert (age <= 10);
always @* begin
    if (phase$q == 1) placed_at_once: assert (age == 0);
    if (phase$q == 2) offers_age: assert (age != 0 & !(address_done$q & data_done$q)
        & (address_done$q | address_offer + 1 == age) & (data_done$q | line_offer + 1 == age));
    if (phase$q == 3) three_phases: assert (0);
end
always @* sent: cover (goes & phase$q == 0);
