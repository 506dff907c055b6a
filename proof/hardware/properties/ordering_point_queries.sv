//@ unit: OrderingPoint
//@ claim: Items are numbered one at a time, each with the next number; for each the range table is asked, in the same and the next
//@   cycles, about every range that it has, with its row, its mapping and whether it writes, and nothing else is numbered meanwhile.
//@ source: C1
//@ assumes: nothing
//@ tier: fast
//@ depth: 2
//@ cover-depth: 6
//@ asserts: 7
//@ covers: 2
//@ mutant: the third range of a command is not asked about
//@ find: phase$d = Phase$Third;
//@ put: phase$d = Phase$Ready;
//@ within: 8
//@ mutant: what a command writes is asked about as if it only read
//@ find: query_write = 1'b1;
//@ put: query_write = 1'b0;
//@ within: 8
wire takes = item_valid & item_ready;
wire takes_access = (acc_valid & acc_ready) | (store_valid & store_ready);
reg [1:0] left = 0;
reg [63:0] numbered = 0;
reg [33:0] first_1, last_1, first_2, last_2;
reg range_1, range_2, ordered_;
reg [6:0] row_;
reg [3:0] map_;
wire [51:0] about = {query_range, query_write, query_command, query_ordered, query_map, query_row, query_end};
always @(posedge clock) begin
    if (takes) begin
        first_1 <= item_first$1; last_1 <= item_last$1; range_1 <= item_ranges$1;
        first_2 <= item_first$2; last_2 <= item_last$2; range_2 <= item_ranges$2;
        row_ <= {2'd0, slot_index}; map_ <= item_ticket[102:99]; ordered_ <= item_ordered;
    end
    numbered <= reset ? 0 : restore_valid ? restore_order : numbered + (takes | takes_access);
    left <= reset ? 0 : takes ? (item_ranges$1 | item_ranges$2) : left == 1 & range_2 ? 2 : 0;
end
always @* begin
    one_at_a_time: assert (!(takes & takes_access) & !(acc_ready & store_ready) & (left == 0 | (!item_ready & !acc_ready & !store_ready)));
    numbers_follow: assert (order == numbered & (!(takes | takes_access) | enter_order == numbered + 1));
    if (takes) first_query: assert (query_valid & query_first == item_first$0 & query_last == item_last$0
        & about == {item_ranges$0, 1'b0, 1'b1, item_ordered, item_ticket[102:99], {2'd0, slot_index}, !item_ranges$1 & !item_ranges$2}
        & enter_slot & enter_row == {2'd0, slot_index});
    if (left == 1) second_query: assert (query_valid & (!range_1 | (query_first == first_1 & query_last == last_1))
        & about == {range_1, 1'b1, 1'b1, ordered_, map_, row_, !range_2});
    if (left == 2) third_query: assert (query_valid & query_first == first_2 & query_last == last_2
        & about == {1'b1, 1'b1, 1'b1, ordered_, map_, row_, 1'b1});
    if (takes_access) access_query: assert (query_valid & query_first == enter_address & query_last == enter_address & query_range
        & query_write == enter_write & !query_command & query_end & query_row == 7'd32 + line_index & enter_line & enter_row == query_row);
    if (!takes & !takes_access & left == 0) no_query: assert (!query_valid & !enter_slot & !enter_line);
end
always @* three_ranges: cover (left == 2 & range_1);
always @* stores_one: cover (takes_access & store_valid);
