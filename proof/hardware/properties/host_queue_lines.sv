//@ unit: HostQueue
//@ claim: A line is asked for at memory only while it lives and behind a moment at which it was ready, once, as the store or the load that it is, with its own address and under a tag
//@   that is free. A store's data and strobes are its own, and are given in the turn of the requests. A line retires once: when the memory has answered its own tag, or where it was
//@   held and is given up; a load's answer then has its identifier, what memory read, and room in the queue of answers. A line is given to another access only behind that.
//@   What the save reads out of a line is the store that lives there: address, strobes, order number and data.
//@ source: nothing accepted is lost or duplicated; C1; C7: save followed by load gives the same state (stores)
//@ assumes: an access is entered only while a line is offered; no line is ready and held at once (`dependency_matrix`); the memory port takes data only of stores that it granted,
//@   answers each tag once, and a store's behind its data (`memory_port_bursts`; AXI4 A3.3.1)
//@ tier: thorough
//@ depth: 1
//@ cover-depth: 12
//@ asserts: 24
//@ covers: 4
//@ step: in order
//@ arrays: apart
//@ watch: data lines
//@ mutant: a line that was asked for is picked again
//@ find: writer$requests = ready & alive$q & stores$q & ~issued$q;
//@ put: writer$requests = ready & alive$q & stores$q;
//@ within: 10
//@ mutant: a tag is free again when its data is read, before the host has it
//@ find: read_tags$d = (read_tags$q & ~tag_used) | tag_freed_r;
//@ put: read_tags$d = (read_tags$q & ~tag_used) | tag_freed_r | tag_read;
//@ within: 12
//@ mutant: the save reads the line that is sent
//@ find: lines$read_address$2 = saved$q;
//@ put: lines$read_address$2 = write_index$q;
//@ within: 8
// Witness: an arbitrary line, and the access that is in it.
wire [5:0] line_ = data__watched;
always @* assume (lines__watched == line_);
reg is_live = 0, is_store, was_ready = 0, sent = 0, data_due = 0;
reg [2:0] tag_, ahead;
reg [33:0] address_ = 0;
reg [63:0] strobes_ = 0, order_ = 0;
reg [5:0] id_ = 0;
reg [511:0] data_ = 0;
wire enters = ins_valid & spare_index$q == line_;
wire asks_write = mem$wr_valid & mem$wr_ready, asks_read = mem$rd_valid & mem$rd_ready;
wire sends_it = asks_write & write_index$q == line_, loads_it = asks_read & read_index$q == line_;
wire is_refused = refusing$q & refused_index$q == line_;
wire retires_w = retw_valid & retw_index == line_, retires_r = retr_valid & retr_index == line_;
// Tags and data that memory owes or is owed.
reg [7:0] asked_w = 0, asked_r = 0;
reg [3:0] due = 0;
wire [7:0] tag_of_write = asks_write ? 8'd1 << mem$wr_tag : 8'd0, tag_of_read = asks_read ? 8'd1 << mem$rd_tag : 8'd0;
wire [7:0] answered_write = mem$b_valid ? 8'd1 << mem$b_tag : 8'd0, answered_read = mem$rdata_valid ? 8'd1 << mem$rdata_tag : 8'd0;
wire takes_it = mem$wdata_ready & data_due & ahead == 0;
always @(posedge clock) begin
    if (reset) begin is_live <= 0; sent <= 0; data_due <= 0; asked_w <= 0; asked_r <= 0; due <= 0; was_ready <= 0; end
    else begin
        is_live <= enters | (is_live & !retires_w & !retires_r);
        was_ready <= !enters & (was_ready | ready[line_]);
        sent <= !enters & (sent | sends_it | loads_it);
        data_due <= !enters & (sends_it | (data_due & !takes_it));
        asked_w <= (asked_w | tag_of_write) & ~answered_write;
        asked_r <= (asked_r | tag_of_read) & ~answered_read;
        due <= due + asks_write - mem$wdata_ready;
    end
    if (enters) begin
        is_store <= ins_write; address_ <= ins_line; strobes_ <= ins_strb; order_ <= ins_order; id_ <= ins_id; data_ <= ins_data;
    end
    if (sends_it) tag_ <= mem$wr_tag;
    if (loads_it) tag_ <= mem$rd_tag;
    if (sends_it) ahead <= due - mem$wdata_ready;
    else if (mem$wdata_ready) ahead <= ahead - 1;
end
always @* begin
    if (ins_valid) assume (free_any);
    assume (!(ready[line_] & held[line_]));
    if (mem$wdata_ready) assume (due != 0);
    if (mem$b_valid) assume (asked_w[mem$b_tag]);
    if (mem$b_valid & data_due) assume (mem$b_tag != tag_);
    if (mem$rdata_valid) assume (asked_r[mem$rdata_tag]);
end
wire answered_w = mem$b_valid & sent & is_live & is_store & mem$b_tag == tag_;
wire answered_r = mem$rdata_valid & sent & is_live & !is_store & mem$rdata_tag == tag_;

// Invariants. Each table and queue, entry by entry.
wire [7:0] has_w = {\write_table.mem[7] == line_, \write_table.mem[6] == line_, \write_table.mem[5] == line_, \write_table.mem[4] == line_, \write_table.mem[3] == line_, \write_table.mem[2] == line_, \write_table.mem[1] == line_, \write_table.mem[0] == line_};
wire [7:0] has_r = {\read_table.mem[7] == line_, \read_table.mem[6] == line_, \read_table.mem[5] == line_, \read_table.mem[4] == line_, \read_table.mem[3] == line_, \read_table.mem[2] == line_, \read_table.mem[1] == line_, \read_table.mem[0] == line_};
wire [7:0] has_id = {\id_table.mem[7] == id_, \id_table.mem[6] == id_, \id_table.mem[5] == id_, \id_table.mem[4] == id_, \id_table.mem[3] == id_, \id_table.mem[2] == id_, \id_table.mem[1] == id_, \id_table.mem[0] == id_};
wire [7:0] has_due = {\granted.mem[7] == line_, \granted.mem[6] == line_, \granted.mem[5] == line_, \granted.mem[4] == line_, \granted.mem[3] == line_, \granted.mem[2] == line_, \granted.mem[1] == line_, \granted.mem[0] == line_};
wire [23:0] answered_tags = {\answers.mem[7] [9:7], \answers.mem[6] [9:7], \answers.mem[5] [9:7], \answers.mem[4] [9:7], \answers.mem[3] [9:7], \answers.mem[2] [9:7], \answers.mem[1] [9:7], \answers.mem[0] [9:7]};
wire [7:0] mine = is_live & sent ? 8'd1 << tag_ : 8'd0;
reg [7:0] is_due, is_answer, answered;
reg answers_differ;
integer n, m;
always @* begin
    answered = 0; answers_differ = 1;
    for (n = 0; n < 8; n = n + 1) begin
        is_due[n] = ((n[2:0] - granted__head) & 3'd7) < granted__used;
        is_answer[n] = ((n[2:0] - answers__head) & 3'd7) < answers__used;
        if (is_answer[n]) answered = answered | 8'd1 << answered_tags[3 * n +: 3];
        for (m = 0; m < n; m = m + 1)
            if (is_answer[n] & is_answer[m] & answered_tags[3 * n +: 3] == answered_tags[3 * m +: 3]) answers_differ = 0;
    end
end
wire waits_write = write_held$q & write_index$q == line_, waits_read = read_held$q & read_index$q == line_;
wire [2:0] granted_held = granted__tail - granted__head, answers_held = answers__tail - answers__head;
always @* begin
    offered_is_free: assert ((!spare$q & spare_mask$q == 0) | (spare$q & spare_mask$q == 64'd1 << spare_index$q & (spare_index$q != line_ | !is_live)));
    flags_are_known: assert (alive$q[line_] == is_live & (!is_live | (stores$q[line_] == is_store
        & issued$q[line_] == (waits_write | waits_read | sent | is_refused))));
    line_is_kept: assert (data__word == data_ & lines__word == {order_, id_, strobes_, address_});
    one_state: assert (!waits_write | (is_live & is_store & was_ready & !sent & !is_refused));
    one_state_of_a_load: assert (!waits_read | (is_live & !is_store & was_ready & !sent & !is_refused));
    refused_is_live: assert (!is_refused | (is_live & !sent & refused_store$q == is_store));
    tag_left_says_so: assert (read_tag_left$q == |read_tags$q);
    tags_are_known: assert (write_tags$q == ~asked_w & reading$q == asked_r);
    tag_of_the_line: assert ((has_w & asked_w) == (is_store ? mine : 8'd0) & (has_r & asked_r) == (is_store ? 8'd0 : mine)
        & (is_store | (mine & ~has_id) == 0));
    data_is_due: assert (granted__used == due & due <= 8 & granted__used[2:0] == granted_held & (!data_due | (is_live & is_store & sent & ahead < due))
        & (has_due & is_due) == (data_due ? 8'd1 << ((granted__head + ahead) & 3'd7) : 8'd0));
    answers_are_counted: assert (answers__used <= 8 & answers__used[2:0] == answers_held);
    answers_have_tags_of_their_own: assert (answers_differ);
    tags_of_reads_are_known: assert ((answered & asked_r) == 0 & (answered | asked_r) == ~read_tags$q);
    answers_find_room: assert (!answers$write | !answers$full);
end
// What is claimed.
reg saves = 0;
always @(posedge clock) saves <= save_index == line_;
always @* begin
    if (enters & !reset) line_was_free: assert (!is_live);
    if (sends_it & !reset) stored_once: assert (is_live & is_store & was_ready & !sent & !is_refused & mem$wr_line == address_ & mem$wr_beats == 0 & !asked_w[mem$wr_tag]);
    if (loads_it & !reset) loaded_once: assert (is_live & !is_store & was_ready & !sent & !is_refused & mem$rd_line == address_ & mem$rd_beats == 0 & !asked_r[mem$rd_tag]);
    if (takes_it) data_as_stored: assert (mem$wdata == data_ & mem$wstrb == strobes_);
    if (!reset) store_retires_once: assert (retires_w == (answered_w | (is_refused & drops_store)));
    if (!reset) load_retires_once: assert (retires_r == (answered_r | (is_refused & refuses_load)));
    if (retires_w & !reset) retires_a_store: assert (is_live & is_store & (sent | (is_refused)));
    if (retires_r & !reset) retires_a_load: assert (is_live & !is_store & (sent | (is_refused)));
    if (retires_r & !reset) answer_is_queued: assert (answers$write & !answers$full & answers$data_in[5:0] == id_
        & (is_refused | answers$data_in[521:6] == {mem$rdata, mem$rdata_tag, mem$rdata_error}));
    if (saves & due == 0 & !reset) store_is_saved: assert (save_valid == (is_live & is_store)
        & (!save_valid | {save_line, save_strb, save_order, save_data} == {address_, strobes_, order_, data_}));
end
always @* stores_again: cover (retires_w & sent & is_live & was_ready & data_ != 0 & mem$b_valid);
always @* loads_one: cover (retires_r & sent);
always @* given_up: cover (retires_r & is_refused);
always @* saved_one: cover (saves & save_valid & due == 0 & save_order == 3);

`ifdef DIRECTED
always @* assume (line_ == 0 & ins_data[511:4] == 0 & ins_strb == 1 & mem$rdata[511:4] == 0 & ins_line[33:4] == 0 & ins_order[63:4] == 0 & ready[63:2] == 0 & held[63:2] == 0);
always @* if (f_past) assume (!reset & !quiesce);
`endif
