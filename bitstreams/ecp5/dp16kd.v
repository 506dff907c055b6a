// Block RAM as the netlist uses it: 4096 words of 4 bits at either port, which shows the old word while it writes. yosys' own models of ECP5
// cells leave this one empty. Any other shape is an error.
module DP16KD (
    input wire DIA0, DIA1, DIA2, DIA3, DIA4, DIA5, DIA6, DIA7, DIA8, DIA9, DIA10, DIA11, DIA12, DIA13, DIA14, DIA15, DIA16, DIA17,
    input wire ADA0, ADA1, ADA2, ADA3, ADA4, ADA5, ADA6, ADA7, ADA8, ADA9, ADA10, ADA11, ADA12, ADA13,
    input wire CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
    output wire DOA0, DOA1, DOA2, DOA3, DOA4, DOA5, DOA6, DOA7, DOA8, DOA9, DOA10, DOA11, DOA12, DOA13, DOA14, DOA15, DOA16, DOA17,
    input wire DIB0, DIB1, DIB2, DIB3, DIB4, DIB5, DIB6, DIB7, DIB8, DIB9, DIB10, DIB11, DIB12, DIB13, DIB14, DIB15, DIB16, DIB17,
    input wire ADB0, ADB1, ADB2, ADB3, ADB4, ADB5, ADB6, ADB7, ADB8, ADB9, ADB10, ADB11, ADB12, ADB13,
    input wire CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
    output wire DOB0, DOB1, DOB2, DOB3, DOB4, DOB5, DOB6, DOB7, DOB8, DOB9, DOB10, DOB11, DOB12, DOB13, DOB14, DOB15, DOB16, DOB17
);
    parameter DATA_WIDTH_A = 4;
    parameter DATA_WIDTH_B = 4;
    parameter REGMODE_A = "NOREG";
    parameter REGMODE_B = "NOREG";
    parameter RESETMODE = "SYNC";
    parameter ASYNC_RESET_RELEASE = "SYNC";
    parameter CSDECODE_A = "0b000";
    parameter CSDECODE_B = "0b000";
    parameter WRITEMODE_A = "READBEFOREWRITE";
    parameter WRITEMODE_B = "READBEFOREWRITE";
    parameter CLKAMUX = "CLKA";
    parameter CLKBMUX = "CLKB";
    parameter GSR = "ENABLED";

    reg [3:0] memory [0:4095];
    reg [3:0] shown_a, shown_b;
    wire [11:0] at_a = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2};
    wire [11:0] at_b = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2};
    always @(posedge CLKA)
        if (CEA) begin
            shown_a <= memory[at_a];
            if (WEA) memory[at_a] <= {DIA3, DIA2, DIA1, DIA0};
        end
    always @(posedge CLKB)
        if (CEB) begin
            shown_b <= memory[at_b];
            if (WEB) memory[at_b] <= {DIB3, DIB2, DIB1, DIB0};
        end
    assign {DOA3, DOA2, DOA1, DOA0} = shown_a;
    assign {DOB3, DOB2, DOB1, DOB0} = shown_b;
    assign {DOA4, DOA5, DOA6, DOA7, DOA8, DOA9, DOA10, DOA11, DOA12, DOA13, DOA14, DOA15, DOA16, DOA17} = 14'd0;
    assign {DOB4, DOB5, DOB6, DOB7, DOB8, DOB9, DOB10, DOB11, DOB12, DOB13, DOB14, DOB15, DOB16, DOB17} = 14'd0;
    generate
        if (DATA_WIDTH_A != 4 || DATA_WIDTH_B != 4 || REGMODE_A != "NOREG" || REGMODE_B != "NOREG"
            || WRITEMODE_A != "READBEFOREWRITE" || WRITEMODE_B != "READBEFOREWRITE")
            a_shape_of_the_block_ram_that_this_model_lacks lacking ();
    endgenerate
endmodule
