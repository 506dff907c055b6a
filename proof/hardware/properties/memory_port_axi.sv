//@ unit: MemoryPort
//@ claim: On AXI a valid address or line of data stays as it is until it is taken.
//@ source: AXI4 A3.2.1
//@ assumes: nothing
//@ tier: fast
//@ depth: 2
//@ cover-depth: 12
//@ asserts: 3
//@ covers: 2
//@ mutant: the address of a read changes while it waits
//@ find: ar_free = (~state$q[(64'h1)+:(1)] | m$arready)
//@ put: ar_free = (1'b1 | m$arready)
//@ within: 8
wire [58:0] read_now = {m$arid, m$araddr, m$arlen, m$arsize, m$arburst};
wire [58:0] write_now = {m$awid, m$awaddr, m$awlen, m$awsize, m$awburst};
wire [576:0] line_now = {m$wdata, m$wstrb, m$wlast};
reg read_waits = 0, write_waits = 0, line_waits = 0;
reg [58:0] read_then, write_then;
reg [576:0] line_then;
always @(posedge clock) begin
    read_waits <= m$arvalid & !m$arready & !reset;
    write_waits <= m$awvalid & !m$awready & !reset;
    line_waits <= m$wvalid & !m$wready & !reset;
    read_then <= read_now;
    write_then <= write_now;
    line_then <= line_now;
end
always @* if (read_waits) read_stays: assert (m$arvalid & read_now == read_then);
always @* if (write_waits) write_stays: assert (m$awvalid & write_now == write_then);
always @* if (line_waits) line_stays: assert (m$wvalid & line_now == line_then);
always @* read_waits_long: cover (read_waits & m$arready);
always @* line_waits_long: cover (line_waits & write_waits & m$wready);
