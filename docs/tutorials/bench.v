`timescale 1ns / 1ps
// Resets the card in front of a blank memory, and follows it by its registers until it has booted.
module bench;
    reg clk = 0, rst_n = 0, arvalid = 0;
    reg [11:0] araddr = 0;
    wire arready, rvalid, memory_arvalid;
    wire [31:0] rdata;
    wire [7:0] memory_arlen;
    wire [5:0] memory_arid;
    wire awvalid, wvalid, wlast, bready;
    wire [5:0] awid;
    reg [8:0] beats = 0; // beats of the memory's answer that are left
    reg [5:0] id = 0;
    reg bvalid = 0;
    reg [5:0] bid = 0;
    reg [31:0] value;

    nearpm_card card (
        .clk(clk), .rst_n(rst_n), .power_fail(1'b0), .pm_bytes(64'd33554432),
        .s_axil_ctrl_araddr(araddr), .s_axil_ctrl_arvalid(arvalid), .s_axil_ctrl_arready(arready),
        .s_axil_ctrl_rdata(rdata), .s_axil_ctrl_rvalid(rvalid), .s_axil_ctrl_rready(1'b1),
        .s_axil_ctrl_awvalid(1'b0), .s_axil_ctrl_wvalid(1'b0), .s_axil_ctrl_bready(1'b1),
        .s_axi_host_awvalid(1'b0), .s_axi_host_wvalid(1'b0), .s_axi_host_arvalid(1'b0),
        .s_axi_cmd_awvalid(1'b0), .s_axi_cmd_wvalid(1'b0), .s_axi_cmd_arvalid(1'b0),
        .m_axi_mem0_arvalid(memory_arvalid), .m_axi_mem0_arready(beats == 0),
        .m_axi_mem0_arlen(memory_arlen), .m_axi_mem0_arid(memory_arid),
        .m_axi_mem0_rvalid(beats != 0), .m_axi_mem0_rlast(beats == 1), .m_axi_mem0_rid(id),
        .m_axi_mem0_rdata(512'd0), .m_axi_mem0_rresp(2'd0),
        .m_axi_mem0_awvalid(awvalid), .m_axi_mem0_awready(1'b1), .m_axi_mem0_awid(awid),
        .m_axi_mem0_wvalid(wvalid), .m_axi_mem0_wready(!bvalid), .m_axi_mem0_wlast(wlast),
        .m_axi_mem0_bvalid(bvalid), .m_axi_mem0_bready(bready), .m_axi_mem0_bid(bid), .m_axi_mem0_bresp(2'd0),
        .m_axi_cpl_awready(1'b0), .m_axi_cpl_wready(1'b0), .m_axi_cpl_bvalid(1'b0),
        .peer_out_ready(1'b0), .peer_in_valid(1'b0), .peer_in_data(128'd0)
    );

    // A memory that is blank: loads are zeros, stores are answered and forgotten.
    always @(posedge clk) begin
        if (awvalid) bid <= awid;
        bvalid <= (wvalid && !bvalid && wlast) || (bvalid && !bready);
    end

    always #1.667 clk = ~clk; // 300 MHz
    always @(posedge clk)
        if (beats != 0) beats <= beats - 1;
        else if (memory_arvalid) {beats, id} <= {memory_arlen + 9'd1, memory_arid};

    task read(input [11:0] address);
        begin
            @(negedge clk) {araddr, arvalid} = {address, 1'b1};
            while (!arready) @(negedge clk);
            @(negedge clk) arvalid = 0;
            while (!rvalid) @(negedge clk);
            value = rdata;
            $display("%0d ns: register 0x%03x is 0x%08x", $rtoi($realtime), address, value);
        end
    endtask

    initial begin
        $dumpfile("card.vcd");
        $dumpvars(0, bench);
        repeat (10) @(negedge clk);
        rst_n = 1;
        repeat (4) @(negedge clk);
        read(12'h000); // ID
        read(12'h020); // STATE: 0 is BOOTING
        while (value == 0) read(12'h020);
        $finish;
    end
endmodule
