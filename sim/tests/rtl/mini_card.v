// The smallest design with the ports of the card: host accesses go straight to memory, a command line becomes a
// completion record, registers hold what was written, and a power-fail save writes one line.
module mini_card(
  input wire clk, input wire rst_n, input wire power_fail, output reg save_done,
  // Host port: passed through.
  input wire [5:0] s_axi_host_awid, input wire [39:0] s_axi_host_awaddr, input wire [7:0] s_axi_host_awlen,
  input wire [2:0] s_axi_host_awsize, input wire [1:0] s_axi_host_awburst, input wire s_axi_host_awvalid,
  output wire s_axi_host_awready, input wire [511:0] s_axi_host_wdata, input wire [63:0] s_axi_host_wstrb,
  input wire s_axi_host_wlast, input wire s_axi_host_wvalid, output wire s_axi_host_wready,
  output wire [5:0] s_axi_host_bid, output wire [1:0] s_axi_host_bresp, output wire s_axi_host_bvalid,
  input wire s_axi_host_bready,
  input wire [5:0] s_axi_host_arid, input wire [39:0] s_axi_host_araddr, input wire [7:0] s_axi_host_arlen,
  input wire [2:0] s_axi_host_arsize, input wire [1:0] s_axi_host_arburst, input wire s_axi_host_arvalid,
  output wire s_axi_host_arready, output wire [5:0] s_axi_host_rid, output wire [511:0] s_axi_host_rdata,
  output wire [1:0] s_axi_host_rresp, output wire s_axi_host_rlast, output wire s_axi_host_rvalid,
  input wire s_axi_host_rready,
  // Command port.
  input wire [5:0] s_axi_cmd_awid, input wire [13:0] s_axi_cmd_awaddr, input wire s_axi_cmd_awvalid,
  output wire s_axi_cmd_awready, input wire [511:0] s_axi_cmd_wdata, input wire [63:0] s_axi_cmd_wstrb,
  input wire s_axi_cmd_wlast, input wire s_axi_cmd_wvalid, output wire s_axi_cmd_wready,
  output reg [5:0] s_axi_cmd_bid, output wire [1:0] s_axi_cmd_bresp, output reg s_axi_cmd_bvalid,
  input wire s_axi_cmd_bready,
  input wire [5:0] s_axi_cmd_arid, input wire [13:0] s_axi_cmd_araddr, input wire s_axi_cmd_arvalid,
  output wire s_axi_cmd_arready, output reg [5:0] s_axi_cmd_rid, output reg [511:0] s_axi_cmd_rdata,
  output wire [1:0] s_axi_cmd_rresp, output wire s_axi_cmd_rlast, output reg s_axi_cmd_rvalid,
  input wire s_axi_cmd_rready,
  // Registers.
  input wire [11:0] s_axil_ctrl_awaddr, input wire s_axil_ctrl_awvalid, output wire s_axil_ctrl_awready,
  input wire [31:0] s_axil_ctrl_wdata, input wire [3:0] s_axil_ctrl_wstrb, input wire s_axil_ctrl_wvalid,
  output wire s_axil_ctrl_wready, output wire [1:0] s_axil_ctrl_bresp, output reg s_axil_ctrl_bvalid,
  input wire s_axil_ctrl_bready,
  input wire [11:0] s_axil_ctrl_araddr, input wire s_axil_ctrl_arvalid, output wire s_axil_ctrl_arready,
  output reg [31:0] s_axil_ctrl_rdata, output wire [1:0] s_axil_ctrl_rresp, output reg s_axil_ctrl_rvalid,
  input wire s_axil_ctrl_rready,
  // Memory.
  output wire [5:0] m_axi_mem0_awid, output wire [39:0] m_axi_mem0_awaddr, output wire [7:0] m_axi_mem0_awlen,
  output wire [2:0] m_axi_mem0_awsize, output wire [1:0] m_axi_mem0_awburst, output wire m_axi_mem0_awvalid,
  input wire m_axi_mem0_awready, output wire [511:0] m_axi_mem0_wdata, output wire [63:0] m_axi_mem0_wstrb,
  output wire m_axi_mem0_wlast, output wire m_axi_mem0_wvalid, input wire m_axi_mem0_wready,
  input wire [5:0] m_axi_mem0_bid, input wire [1:0] m_axi_mem0_bresp, input wire m_axi_mem0_bvalid,
  output wire m_axi_mem0_bready,
  output wire [5:0] m_axi_mem0_arid, output wire [39:0] m_axi_mem0_araddr, output wire [7:0] m_axi_mem0_arlen,
  output wire [2:0] m_axi_mem0_arsize, output wire [1:0] m_axi_mem0_arburst, output wire m_axi_mem0_arvalid,
  input wire m_axi_mem0_arready, input wire [5:0] m_axi_mem0_rid, input wire [511:0] m_axi_mem0_rdata,
  input wire [1:0] m_axi_mem0_rresp, input wire m_axi_mem0_rlast, input wire m_axi_mem0_rvalid,
  output wire m_axi_mem0_rready,
  // Completions.
  output wire [63:0] m_axi_cpl_awaddr, output wire [7:0] m_axi_cpl_awlen, output reg m_axi_cpl_awvalid,
  input wire m_axi_cpl_awready, output wire [511:0] m_axi_cpl_wdata, output wire [63:0] m_axi_cpl_wstrb,
  output wire m_axi_cpl_wlast, output reg m_axi_cpl_wvalid, input wire m_axi_cpl_wready,
  input wire [1:0] m_axi_cpl_bresp, input wire m_axi_cpl_bvalid, output wire m_axi_cpl_bready
);
  reg save_aw, save_w, saving;
  reg [31:0] commands;
  reg [511:0] command;

  assign m_axi_mem0_awid = saving ? 6'd63 : s_axi_host_awid;
  assign m_axi_mem0_awaddr = saving ? 40'h10000 : s_axi_host_awaddr;
  assign m_axi_mem0_awlen = 8'd0;
  assign m_axi_mem0_awsize = 3'd6;
  assign m_axi_mem0_awburst = 2'd1;
  assign m_axi_mem0_awvalid = saving ? save_aw : s_axi_host_awvalid;
  assign s_axi_host_awready = !saving && m_axi_mem0_awready;
  assign m_axi_mem0_wdata = saving ? {480'd0, commands} : s_axi_host_wdata;
  assign m_axi_mem0_wstrb = saving ? 64'hff : s_axi_host_wstrb;
  assign m_axi_mem0_wlast = 1'b1;
  assign m_axi_mem0_wvalid = saving ? save_w : s_axi_host_wvalid;
  assign s_axi_host_wready = !saving && m_axi_mem0_wready;
  assign s_axi_host_bid = m_axi_mem0_bid;
  assign s_axi_host_bresp = m_axi_mem0_bresp;
  assign s_axi_host_bvalid = m_axi_mem0_bvalid && m_axi_mem0_bid != 6'd63;
  assign m_axi_mem0_bready = 1'b1;
  assign m_axi_mem0_arid = s_axi_host_arid;
  assign m_axi_mem0_araddr = s_axi_host_araddr;
  assign m_axi_mem0_arlen = 8'd0;
  assign m_axi_mem0_arsize = 3'd6;
  assign m_axi_mem0_arburst = 2'd1;
  assign m_axi_mem0_arvalid = s_axi_host_arvalid;
  assign s_axi_host_arready = m_axi_mem0_arready;
  assign s_axi_host_rid = m_axi_mem0_rid;
  assign s_axi_host_rdata = m_axi_mem0_rdata;
  assign s_axi_host_rresp = m_axi_mem0_rresp;
  assign s_axi_host_rlast = m_axi_mem0_rlast;
  assign s_axi_host_rvalid = m_axi_mem0_rvalid;
  assign m_axi_mem0_rready = 1'b1;

  // A command is taken when the record before it has gone.
  wire take = s_axi_cmd_awvalid && s_axi_cmd_wvalid && !m_axi_cpl_awvalid && !m_axi_cpl_wvalid;
  assign s_axi_cmd_awready = take;
  assign s_axi_cmd_wready = take;
  assign s_axi_cmd_bresp = 2'd0;
  assign s_axi_cmd_arready = !s_axi_cmd_rvalid;
  assign s_axi_cmd_rresp = 2'd0;
  assign s_axi_cmd_rlast = 1'b1;
  assign m_axi_cpl_awaddr = command[319:256];
  assign m_axi_cpl_awlen = 8'd0;
  assign m_axi_cpl_wdata = {480'd0, command[447:416]};
  assign m_axi_cpl_wstrb = 64'hf;
  assign m_axi_cpl_wlast = 1'b1;
  assign m_axi_cpl_bready = 1'b1;

  reg [31:0] register[0:15];
  wire write = s_axil_ctrl_awvalid && s_axil_ctrl_wvalid && !s_axil_ctrl_bvalid;
  assign s_axil_ctrl_awready = write;
  assign s_axil_ctrl_wready = write;
  assign s_axil_ctrl_bresp = 2'd0;
  assign s_axil_ctrl_arready = !s_axil_ctrl_rvalid;
  assign s_axil_ctrl_rresp = 2'd0;

  always @(posedge clk) begin
    if (!rst_n) begin
      {save_done, save_aw, save_w, saving} <= 0;
      {s_axi_cmd_bvalid, s_axi_cmd_rvalid, m_axi_cpl_awvalid, m_axi_cpl_wvalid} <= 0;
      {s_axil_ctrl_bvalid, s_axil_ctrl_rvalid} <= 0;
      commands <= 0;
    end else begin
      if (s_axi_cmd_bready) s_axi_cmd_bvalid <= 0;
      if (m_axi_cpl_awready) m_axi_cpl_awvalid <= 0;
      if (m_axi_cpl_wready) m_axi_cpl_wvalid <= 0;
      if (take) begin
        command <= s_axi_cmd_wdata;
        commands <= commands + 1;
        s_axi_cmd_bid <= s_axi_cmd_awid;
        {s_axi_cmd_bvalid, m_axi_cpl_awvalid, m_axi_cpl_wvalid} <= 3'b111;
      end
      if (s_axi_cmd_rready) s_axi_cmd_rvalid <= 0;
      if (s_axi_cmd_arvalid && s_axi_cmd_arready) begin
        s_axi_cmd_rid <= s_axi_cmd_arid;
        s_axi_cmd_rdata <= {466'd0, s_axi_cmd_araddr, commands};
        s_axi_cmd_rvalid <= 1;
      end
      if (s_axil_ctrl_bready) s_axil_ctrl_bvalid <= 0;
      if (write) begin
        register[s_axil_ctrl_awaddr[5:2]] <= s_axil_ctrl_wdata;
        s_axil_ctrl_bvalid <= 1;
      end
      if (s_axil_ctrl_rready) s_axil_ctrl_rvalid <= 0;
      if (s_axil_ctrl_arvalid && s_axil_ctrl_arready) begin
        s_axil_ctrl_rdata <= register[s_axil_ctrl_araddr[5:2]];
        s_axil_ctrl_rvalid <= 1;
      end
      if (power_fail && !saving) {saving, save_aw, save_w} <= 3'b111;
      if (saving && m_axi_mem0_awready) save_aw <= 0;
      if (saving && m_axi_mem0_wready) save_w <= 0;
      if (m_axi_mem0_bvalid && m_axi_mem0_bid == 6'd63) save_done <= 1;
    end
  end
endmodule
