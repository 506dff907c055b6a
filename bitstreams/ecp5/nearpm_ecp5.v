// The execution side of the card (`top`: firmware store, one unit, memory port) on an ECP5-85k, with its memory in block RAM and
// four wires instead of the ordering side in front of it. Generated names of the RTL keep their `$`.
//
// The wires: `scan_clk` shifts (rising edge, a fourth of `clk` at most): `scan_in` goes to the highest bit of a frame of 576, the lowest
// comes out of `scan_out`. A rising edge of `scan_go` executes the frame; `ready` is low until it is done. Fields of a frame:
//
//   551:0    what is issued, or in 511:0 a line of memory
//   563:552  line of memory
//   566:564  0: take the status, 1: store the line, 2: load the line, 3: issue to the unit, 4: load firmware slot 0
//
// The status: 7:0 commands done, 12:8 slot and 20:13 status of the last, 28:21 status of the firmware, 60:29 its checksum, 61 firmware
// in force, 62 quiet.
module nearpm_ecp5 (
    input wire clk,
    input wire rst_n,
    input wire scan_clk,
    input wire scan_in,
    input wire scan_go,
    output reg scan_out,
    output reg ready
);
    localparam STATUS = 3'd0, STORE = 3'd1, LOAD = 3'd2, ISSUE = 3'd3, FIRMWARE = 3'd4;

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

    reg [575:0] frame = 576'd0;
    wire [2:0] operation = frame[566:564];

    wire issue_ready, done_valid;
    wire [4:0] done_slot;
    wire [7:0] done_status;
    wire quiet, firmware_busy, firmware_done, firmware_ok;
    wire [7:0] firmware_status;
    wire [31:0] firmware_crc;
    wire rd_ready, rdata_valid, wr_ready, wdata_ready, b_valid;
    wire [511:0] rdata;

    reg issue_valid = 1'b0, rd_valid = 1'b0, wr_valid = 1'b0, firmware_load = 1'b0;
    reg [2:0] waits = STATUS;
    reg busy = 1'b0;
    reg [7:0] done_count = 8'd0;
    reg [4:0] last_slot = 5'd0;
    reg [7:0] last_status = 8'd0;

    always @(posedge clk) begin
        if (done_valid) begin
            done_count <= done_count + 8'd1;
            last_slot <= done_slot;
            last_status <= done_status;
        end
        firmware_load <= 1'b0;
        scan_out <= frame[0];
        ready <= ~busy;
        if (shift) frame <= {in_synchronised[1], frame[575:1]};
        if (go & ~busy) begin
            busy <= 1'b1;
            waits <= operation;
            case (operation)
                STORE: wr_valid <= 1'b1;
                LOAD: rd_valid <= 1'b1;
                ISSUE: issue_valid <= 1'b1;
                FIRMWARE: firmware_load <= 1'b1;
                default: begin end
            endcase
        end
        if (busy)
            case (waits)
                STORE: begin
                    if (wr_ready) wr_valid <= 1'b0;
                    if (b_valid) busy <= 1'b0;
                end
                LOAD: begin
                    if (rd_ready) rd_valid <= 1'b0;
                    if (rdata_valid) begin
                        frame[511:0] <= rdata;
                        busy <= 1'b0;
                    end
                end
                ISSUE: if (issue_ready) begin
                    issue_valid <= 1'b0;
                    busy <= 1'b0;
                end
                FIRMWARE: if (firmware_done) busy <= 1'b0;
                default: begin
                    frame[62:0] <= {quiet, firmware_ok, firmware_crc, firmware_status, last_status, last_slot, done_count};
                    busy <= 1'b0;
                end
            endcase
        if (reset) begin
            busy <= 1'b0;
            issue_valid <= 1'b0;
            rd_valid <= 1'b0;
            wr_valid <= 1'b0;
            done_count <= 8'd0;
        end
    end

    // Memory: 4096 lines of block RAM, which the device addresses repeat. Behind an output register, which the RAM's speed asks for.
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
            write_line <= awaddr[17:6];
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
            read_line <= araddr[17:6];
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

    top card (
        .clock(clk), .reset(reset),
        .issue_valid$0(issue_valid), .issue_ready$0(issue_ready), .work(frame[551:0]),
        .done_valid$0(done_valid), .done_ready$0(1'b1), .done_slot$0(done_slot), .done_status$0(done_status),
        .progress_valid$0(), .progress_ready$0(1'b1), .progress_slot$0(), .progress_pc$0(),
        .quiesce(1'b0), .quiet(quiet),
        .firmware_load(firmware_load), .firmware_slot(8'd0), .firmware_boot(1'b0), .firmware_expect(32'd0),
        .firmware_busy(firmware_busy), .firmware_done(firmware_done), .firmware_status(firmware_status),
        .firmware_ok(firmware_ok), .firmware_crc(firmware_crc), .firmware_slot_in_force(),
        .descriptor_index$0(5'd0), .descriptor_index$1(5'd0), .descriptor$0(), .descriptor$1(),
        .host$rd_valid(rd_valid), .host$rd_ready(rd_ready), .host$rd_line({22'd0, frame[563:552]}), .host$rd_beats(6'd0),
        .host$rd_tag(3'd0), .host$rdata_valid(rdata_valid), .host$rdata(rdata), .host$rdata_tag(), .host$rdata_last(),
        .host$rdata_error(),
        .host$wr_valid(wr_valid), .host$wr_ready(wr_ready), .host$wr_line({22'd0, frame[563:552]}), .host$wr_beats(6'd0),
        .host$wr_tag(3'd0), .host$wdata(frame[511:0]), .host$wstrb({64{1'b1}}), .host$wdata_ready(wdata_ready),
        .host$b_valid(b_valid), .host$b_tag(), .host$b_error(),
        .system$rd_valid(1'b0), .system$rd_ready(), .system$rd_line(34'd0), .system$rd_beats(6'd0), .system$rd_tag(3'd0),
        .system$rdata_valid(), .system$rdata(), .system$rdata_tag(), .system$rdata_last(), .system$rdata_error(),
        .system$wr_valid(1'b0), .system$wr_ready(), .system$wr_line(34'd0), .system$wr_beats(6'd0), .system$wr_tag(3'd0),
        .system$wdata(512'd0), .system$wstrb(64'd0), .system$wdata_ready(), .system$b_valid(), .system$b_tag(), .system$b_error(),
        .m$awid(awid), .m$awaddr(awaddr), .m$awlen(awlen), .m$awsize(), .m$awburst(), .m$awvalid(awvalid), .m$awready(~writing),
        .m$wdata(wdata), .m$wstrb(wstrb), .m$wlast(wlast), .m$wvalid(wvalid), .m$wready(writing),
        .m$bid(b_id), .m$bresp(2'd0), .m$bvalid(b_now), .m$bready(),
        .m$arid(arid), .m$araddr(araddr), .m$arlen(arlen), .m$arsize(), .m$arburst(), .m$arvalid(arvalid), .m$arready(~reading),
        .m$rid(id_2), .m$rdata(read_data), .m$rresp(2'd0), .m$rlast(last_2), .m$rvalid(read_2), .m$rready(),
        .ev_read_line(), .ev_write_line(), .ev_direction()
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
    always @(posedge clk) begin
        if (write) memory[write_line] <= write_data;
        read_first <= memory[read_line];
        read_data <= read_first;
    end
endmodule
