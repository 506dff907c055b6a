// A NearPM card of one unit (`nearpm_card`, generated with small tables) on an ECP5-85k, with its memory in block RAM and a few wires instead
// of a PCIe link in front of it.
//
// The wires: `scan_clk` shifts (rising edge, a fourth of `clk` at most): `scan_in` goes to the highest bit of a frame of 576, the lowest
// comes out of `scan_out`. A rising edge of `scan_go` executes the frame; `ready` is low until it is done. `power_fail` and `save_done` are
// the card's own; memory keeps its contents while `rst_n` is low. Fields of a frame:
//
//   511:0    a line, or in 31:0 the value of a register
//   551:512  device address, offset in the command pages, or offset of a register
//   554:552  0: take the status; 2, 3: load, store a line of persistent memory; 4, 5: of the command pages; 6, 7: read, write a register
//   555      taken out: the card answered with an error
//
// The status: 127:0 last completion record, 135:128 records since reset, 136 `save_done`.
module nearpm_ecp5 (
    input wire clk,
    input wire rst_n,
    input wire scan_clk,
    input wire scan_in,
    input wire scan_go,
    input wire power_fail,
    output reg scan_out,
    output reg ready,
    output wire save_done
);
    // The wires are brought into the clock; the third stage is for the edge.
    reg [1:0] reset_synchronised = 2'b11;
    reg [2:0] shift_synchronised = 3'b0, go_synchronised = 3'b0;
    reg [1:0] in_synchronised = 2'b0;
    always @(posedge clk) begin
        reset_synchronised <= {reset_synchronised[0], ~rst_n};
        shift_synchronised <= {shift_synchronised[1:0], scan_clk};
        go_synchronised <= {go_synchronised[1:0], scan_go};
        in_synchronised <= {in_synchronised[0], scan_in};
    end
    wire reset = reset_synchronised[1];
    wire shift = shift_synchronised[1] & ~shift_synchronised[2];
    wire go = go_synchronised[1] & ~go_synchronised[2];

    // The host. Which port: 0 none, 1 persistent memory, 2 command pages, 3 registers. One access at a time.
    reg [575:0] frame = 576'd0;
    wire [511:0] line = frame[511:0];
    wire [39:0] address = frame[551:512];
    wire writes = frame[552];
    wire [1:0] port = frame[554:553];
    wire [3:0] to = 4'd1 << port;

    reg busy = 1'b0;
    reg [3:1] address_valid = 3'd0, data_valid = 3'd0, read_valid = 3'd0;
    wire [3:1] address_ready, data_ready, read_ready, written, loaded;
    wire [511:0] memory_loaded, page_loaded;
    wire [31:0] register_loaded;
    wire [1:0] memory_write_error, memory_read_error, page_write_error, page_read_error, register_write_error, register_read_error;

    reg [127:0] record = 128'd0;
    reg [7:0] records = 8'd0;

    always @(posedge clk) begin
        scan_out <= frame[0];
        ready <= ~busy;
        address_valid <= address_valid & ~address_ready;
        data_valid <= data_valid & ~data_ready;
        read_valid <= read_valid & ~read_ready;
        if (shift) frame <= {in_synchronised[1], frame[575:1]};
        if (go & ~busy) begin
            busy <= 1'b1;
            if (writes) begin
                address_valid <= to[3:1];
                data_valid <= to[3:1];
            end else
                read_valid <= to[3:1];
        end
        if (busy) begin
            if (to[0]) begin
                frame[136:0] <= {save_done, records, record};
                busy <= 1'b0;
            end
            if (|written | |loaded) busy <= 1'b0;
            if (written[1]) frame[555] <= |memory_write_error;
            if (written[2]) frame[555] <= |page_write_error;
            if (written[3]) frame[555] <= |register_write_error;
            if (loaded[1]) {frame[555], frame[511:0]} <= {|memory_read_error, memory_loaded};
            if (loaded[2]) {frame[555], frame[511:0]} <= {|page_read_error, page_loaded};
            if (loaded[3]) {frame[555], frame[31:0]} <= {|register_read_error, register_loaded};
        end
        if (reset) begin
            busy <= 1'b0;
            address_valid <= 3'd0;
            data_valid <= 3'd0;
            read_valid <= 3'd0;
        end
    end

    // Completion records: the last one, whichever quarter of a line of the host's memory it is for.
    wire completion_data;
    wire [511:0] completion;
    wire [63:0] completion_strobes;
    reg completion_answer = 1'b0;
    always @(posedge clk) begin
        completion_answer <= completion_data;
        if (completion_data) begin
            record <= completion[127:0] & {128{completion_strobes[0]}} | completion[255:128] & {128{completion_strobes[16]}}
                | completion[383:256] & {128{completion_strobes[32]}} | completion[511:384] & {128{completion_strobes[48]}};
            records <= records + 8'd1;
        end
        if (reset) begin
            completion_answer <= 1'b0;
            records <= 8'd0;
        end
    end

    // Memory: 4096 lines of block RAM, behind an output register, which the RAM's speed asks for. The lower three quarters are device
    // addresses 0 to 0x2_FFFF, the last one is 0x10_0000 to 0x10_FFFF, where pools are; what lies between repeats and is for nobody.
    wire [5:0] awid, arid;
    wire [39:0] awaddr, araddr;
    wire [7:0] awlen, arlen;
    wire awvalid, wvalid, wlast, arvalid;
    wire [511:0] wdata;
    wire [63:0] wstrb;
    reg writing = 1'b0, b_now = 1'b0, reading = 1'b0, read_1 = 1'b0, read_2 = 1'b0, last_1 = 1'b0, last_2 = 1'b0;
    reg [5:0] write_id = 6'd0, b_id = 6'd0, read_id = 6'd0, id_1 = 6'd0, id_2 = 6'd0;
    reg [11:0] write_line = 12'd0, read_line = 12'd0;
    reg [7:0] read_left = 8'd0;
    reg [63:0] store = 64'd0;
    reg [11:0] store_line = 12'd0;
    reg [511:0] store_data = 512'd0;
    wire [511:0] read_data;
    always @(posedge clk) begin
        b_now <= 1'b0;
        store <= 64'd0;
        store_line <= write_line;
        store_data <= wdata;
        if (!writing & awvalid) begin
            writing <= 1'b1;
            write_id <= awid;
            write_line <= {awaddr[17:16] | {2{awaddr[20]}}, awaddr[15:6]};
        end
        if (writing & wvalid) begin
            store <= wstrb;
            write_line <= write_line + 12'd1;
            if (wlast) begin
                writing <= 1'b0;
                b_now <= 1'b1;
                b_id <= write_id;
            end
        end
        if (!reading & arvalid) begin
            reading <= 1'b1;
            read_id <= arid;
            read_line <= {araddr[17:16] | {2{araddr[20]}}, araddr[15:6]};
            read_left <= arlen;
        end
        if (reading) begin
            read_line <= read_line + 12'd1;
            read_left <= read_left - 8'd1;
            if (read_left == 8'd0) reading <= 1'b0;
        end
        read_1 <= reading;
        last_1 <= read_left == 8'd0;
        id_1 <= read_id;
        read_2 <= read_1;
        last_2 <= last_1;
        id_2 <= id_1;
        if (reset) begin
            writing <= 1'b0;
            b_now <= 1'b0;
            reading <= 1'b0;
            read_1 <= 1'b0;
            read_2 <= 1'b0;
        end
    end
    genvar byte_of_line;
    generate
        for (byte_of_line = 0; byte_of_line < 64; byte_of_line = byte_of_line + 1) begin : lane
            byte_lane ram (
                .clk(clk), .write(store[byte_of_line]), .write_line(store_line),
                .write_data(store_data[8 * byte_of_line +: 8]), .read_line(read_line),
                .read_data(read_data[8 * byte_of_line +: 8])
            );
        end
    endgenerate

    nearpm_card card (
        .clk(clk),
        .rst_n(rst_n),
        .power_fail(power_fail),
        .save_done(save_done),
        .pm_bytes(64'h11_0000),
        .s_axi_host_awid(6'd0), .s_axi_host_awaddr(address), .s_axi_host_awlen(8'd0), .s_axi_host_awsize(3'd6),
        .s_axi_host_awburst(2'd1), .s_axi_host_awvalid(address_valid[1]), .s_axi_host_awready(address_ready[1]),
        .s_axi_host_wdata(line), .s_axi_host_wstrb({64{1'b1}}), .s_axi_host_wlast(1'b1), .s_axi_host_wvalid(data_valid[1]),
        .s_axi_host_wready(data_ready[1]),
        .s_axi_host_bid(), .s_axi_host_bresp(memory_write_error), .s_axi_host_bvalid(written[1]), .s_axi_host_bready(1'b1),
        .s_axi_host_arid(6'd0), .s_axi_host_araddr(address), .s_axi_host_arlen(8'd0), .s_axi_host_arsize(3'd6),
        .s_axi_host_arburst(2'd1), .s_axi_host_arvalid(read_valid[1]), .s_axi_host_arready(read_ready[1]),
        .s_axi_host_rid(), .s_axi_host_rdata(memory_loaded), .s_axi_host_rresp(memory_read_error), .s_axi_host_rlast(),
        .s_axi_host_rvalid(loaded[1]), .s_axi_host_rready(1'b1),
        .s_axi_cmd_awid(6'd0), .s_axi_cmd_awaddr(address[15:0]), .s_axi_cmd_awlen(8'd0), .s_axi_cmd_awsize(3'd6),
        .s_axi_cmd_awburst(2'd1), .s_axi_cmd_awvalid(address_valid[2]), .s_axi_cmd_awready(address_ready[2]),
        .s_axi_cmd_wdata(line), .s_axi_cmd_wstrb({64{1'b1}}), .s_axi_cmd_wlast(1'b1), .s_axi_cmd_wvalid(data_valid[2]),
        .s_axi_cmd_wready(data_ready[2]),
        .s_axi_cmd_bid(), .s_axi_cmd_bresp(page_write_error), .s_axi_cmd_bvalid(written[2]), .s_axi_cmd_bready(1'b1),
        .s_axi_cmd_arid(6'd0), .s_axi_cmd_araddr(address[15:0]), .s_axi_cmd_arlen(8'd0), .s_axi_cmd_arsize(3'd6),
        .s_axi_cmd_arburst(2'd1), .s_axi_cmd_arvalid(read_valid[2]), .s_axi_cmd_arready(read_ready[2]),
        .s_axi_cmd_rid(), .s_axi_cmd_rdata(page_loaded), .s_axi_cmd_rresp(page_read_error), .s_axi_cmd_rlast(),
        .s_axi_cmd_rvalid(loaded[2]), .s_axi_cmd_rready(1'b1),
        .s_axil_ctrl_awaddr(address[11:0]), .s_axil_ctrl_awvalid(address_valid[3]), .s_axil_ctrl_awready(address_ready[3]),
        .s_axil_ctrl_wdata(line[31:0]), .s_axil_ctrl_wstrb(4'hf), .s_axil_ctrl_wvalid(data_valid[3]),
        .s_axil_ctrl_wready(data_ready[3]),
        .s_axil_ctrl_bresp(register_write_error), .s_axil_ctrl_bvalid(written[3]), .s_axil_ctrl_bready(1'b1),
        .s_axil_ctrl_araddr(address[11:0]), .s_axil_ctrl_arvalid(read_valid[3]), .s_axil_ctrl_arready(read_ready[3]),
        .s_axil_ctrl_rdata(register_loaded), .s_axil_ctrl_rresp(register_read_error), .s_axil_ctrl_rvalid(loaded[3]),
        .s_axil_ctrl_rready(1'b1),
        .m_axi_mem0_awid(awid), .m_axi_mem0_awaddr(awaddr), .m_axi_mem0_awlen(awlen), .m_axi_mem0_awsize(), .m_axi_mem0_awburst(),
        .m_axi_mem0_awvalid(awvalid), .m_axi_mem0_awready(~writing),
        .m_axi_mem0_wdata(wdata), .m_axi_mem0_wstrb(wstrb), .m_axi_mem0_wlast(wlast), .m_axi_mem0_wvalid(wvalid),
        .m_axi_mem0_wready(writing),
        .m_axi_mem0_bid(b_id), .m_axi_mem0_bresp(2'd0), .m_axi_mem0_bvalid(b_now), .m_axi_mem0_bready(),
        .m_axi_mem0_arid(arid), .m_axi_mem0_araddr(araddr), .m_axi_mem0_arlen(arlen), .m_axi_mem0_arsize(), .m_axi_mem0_arburst(),
        .m_axi_mem0_arvalid(arvalid), .m_axi_mem0_arready(~reading),
        .m_axi_mem0_rid(id_2), .m_axi_mem0_rdata(read_data), .m_axi_mem0_rresp(2'd0), .m_axi_mem0_rlast(last_2),
        .m_axi_mem0_rvalid(read_2), .m_axi_mem0_rready(),
        .m_axi_cpl_awid(), .m_axi_cpl_awaddr(), .m_axi_cpl_awlen(), .m_axi_cpl_awsize(), .m_axi_cpl_awburst(), .m_axi_cpl_awvalid(),
        .m_axi_cpl_awready(1'b1),
        .m_axi_cpl_wdata(completion), .m_axi_cpl_wstrb(completion_strobes), .m_axi_cpl_wlast(), .m_axi_cpl_wvalid(completion_data),
        .m_axi_cpl_wready(1'b1),
        .m_axi_cpl_bid(1'b0), .m_axi_cpl_bresp(2'd0), .m_axi_cpl_bvalid(completion_answer), .m_axi_cpl_bready(),
        .peer_out_valid(),
        .peer_out_ready(1'b1),
        .peer_out_data(),
        .peer_in_valid(1'b0),
        .peer_in_ready(),
        .peer_in_data(128'd0),
        .m_axi_mem0_awlock(), .m_axi_mem0_awcache(), .m_axi_mem0_awprot(), .m_axi_mem0_awqos(), .m_axi_mem0_arlock(),
        .m_axi_mem0_arcache(), .m_axi_mem0_arprot(), .m_axi_mem0_arqos(),
        .m_axi_cpl_awlock(), .m_axi_cpl_awcache(), .m_axi_cpl_awprot(), .m_axi_cpl_awqos()
    );
endmodule

// A byte of each line.
module byte_lane (
    input wire clk,
    input wire write,
    input wire [11:0] write_line,
    input wire [7:0] write_data,
    input wire [11:0] read_line,
    output reg [7:0] read_data
);
    reg [7:0] memory [0:4095];
    reg [7:0] read_first;
    integer start;
    initial for (start = 0; start < 4096; start = start + 1) memory[start] = 8'd0;
    always @(posedge clk) begin
        if (write) memory[write_line] <= write_data;
        read_first <= memory[read_line];
        read_data <= read_first;
    end
endmodule
