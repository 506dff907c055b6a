//@ unit: PersistBuffer
//@ claim: Every entry leaves, 188 cycles after it was accepted at most, whatever warps ask for meanwhile: the head waits for memory alone. A warp that waits, for its line or for its
//@   own release or `dFence`, has an order in the queue, and goes on when that leaves. A request is answered in the cycle after it was taken.
//@ source: SBRP (ASPLOS '23) 6.1 gives no argument; `docs/sbrp.md`, rules `holds-the-head` and `order-frees`
//@ assumes: memory acknowledges each line that it was sent, one within 4 cycles while there are any; every second turn of the head it may advance; proved for 4 warps, 4 entries, 4 lines and a counter to 3
//@ tier: fast
//@ depth: 1
//@ cover-depth: 24
//@ asserts: 10
//@ covers: 3
//@ arrays: apart
//@ mutant: marks stay when nothing is outstanding
//@ find: marks = no_warp;
//@ put: marks = flushing$q;
//@ within: 40
//@ mutant: what was evicted does not leave
//@ find: leave = moves & (entry_kind != persist_kind) & (~holds_head | none_outstanding);
//@ put: leave = moves & (entry_kind != persist_kind) & (entry_kind != evicted_kind) & (~holds_head | none_outstanding);
//@ within: 40
//@ mutant: a flush that is sent while another is acknowledged counts twice
//@ find: outstanding$enable = sends ^ acknowledged;
//@ put: outstanding$enable = sends | acknowledged;
//@ within: 14
//@ mutant: a warp that waits for its line goes on when nothing is outstanding, and not when its order has left
//@ find: evicting$d = evicting$q & ~entry_mask;
//@ put: evicting$d = evicting$q;
//@ within: 24
//@ mutant: a warp stays held when its `dFence` has left
//@ find: ordering$d = ordering$q & ~entry_mask;
//@ put: ordering$d = ordering$q;
//@ within: 24
// Witness: an entry that is made at an arbitrary moment.
(* anyseq *) reg mark;
reg tracked = 0;
reg [1:0] at;
wire goes = (flush | leave) & tracked & head$q == at;
reg [7:0] waited = 0;
// Cycles without an acknowledgement while something was outstanding; turns of the head in which it might not advance.
reg [1:0] silent = 0;
// Lines on their way to memory.
reg [2:0] flights = 0;
reg idle = 0;
always @(posedge clock) begin
    if (reset) tracked <= 0;
    else if (!tracked & push & mark) begin tracked <= 1; at <= tail$q; end
    else if (goes) tracked <= 0;
    waited <= tracked & !goes & !reset ? waited + 1 : 0;
    flights <= reset ? 0 : flights + sends - (acknowledge & flights != 0);
    silent <= flights == 0 | acknowledge | reset ? 0 : silent + 1;
    idle <= reset ? 0 : heads_turn$q ? !advance : idle;
end
always @* begin
    if (silent == 3) assume (acknowledge);
    if (flights == 0) assume (!acknowledge);
    if (idle & heads_turn$q) assume (advance);
end

wire [2:0] entries = is_full$q ? 4 : {1'b0, used};
wire [1:0] age = at - head$q;
wire [11:0] kinds = {\kinds.mem[3] , \kinds.mem[2] , \kinds.mem[1] , \kinds.mem[0] };
wire [15:0] masks = {\masks.mem[3] , \masks.mem[2] , \masks.mem[1] , \masks.mem[0] };
wire [7:0] orders_at = {\last_orders.places[3] , \last_orders.places[2] , \last_orders.places[1] , \last_orders.places[0] };
// Places that may yet hold a line that is evicted: those of persists, and free ones. Evictions alone keep a head waiting that waits for memory.
reg [3:0] may_evict;
reg [2:0] evictions;
// Of each warp: its last order is in the queue, and is one; a release or `dFence` of it is there, and not behind its last order.
reg [3:0] last_is_there, held_is_there;
reg [1:0] age_of, last_age;
reg [2:0] kind_of;
integer n, w;
always @* begin
    held_is_there = 0;
    for (n = 0; n < 4; n = n + 1) begin
        age_of = n[1:0] - head$q;
        kind_of = kinds[3 * n +: 3];
        may_evict[n] = age_of >= entries | kind_of == 0;
        for (w = 0; w < 4; w = w + 1) begin
            last_age = orders_at[2 * w +: 2] - head$q;
            if (age_of < entries & (kind_of == 5 | kind_of == 6) & masks[4 * n + w] & age_of <= last_age) held_is_there[w] = 1;
        end
    end
    for (w = 0; w < 4; w = w + 1) begin
        last_age = orders_at[2 * w +: 2] - head$q;
        kind_of = kinds[3 * orders_at[2 * w +: 2] +: 3];
        last_is_there[w] = last_age < entries & kind_of != 0 & kind_of != 7 & masks[4 * orders_at[2 * w +: 2] + w];
    end
    evictions = {2'd0, may_evict[0]} + {2'd0, may_evict[1]} + {2'd0, may_evict[2]} + {2'd0, may_evict[3]};
end
// Cycles until the entry has left, at most: entries before it, evictions, acknowledgements.
wire [7:0] next_move = none_outstanding ? {6'd0, !idle, !heads_turn$q} : 8'd8 * outstanding$q + 3 - silent;
wire [7:0] to_go = 8'd32 * age + 8'd16 * evictions + next_move;
reg [7:0] had_to_go;
reg was_tracked = 0, was_asked = 0;
always @(posedge clock) begin
    had_to_go <= to_go;
    was_tracked <= tracked & !goes & !reset;
    was_asked <= request_valid & request_ready & !reset;
end
always @* begin
    all_are_counted: assert (flights == outstanding$q);
    in_turn: assert (!(asked$q & heads_turn$q));
    full_when_round: assert (!is_full$q | head$q == tail$q);
    answered_at_once: assert (was_asked == asked$q & asked$q == (accepted | refused) & !(accepted & refused));
    if (tracked) is_there: assert (age < entries);
    last_orders_are_there: assert ((last_orders__in_queue & ~last_is_there) == 0);
    waits_for_its_order: assert ((evicting$q & ~last_orders__in_queue) == 0);
    held_by_an_entry: assert ((ordering$q & ~(last_orders__in_queue & held_is_there)) == 0);
    if (was_tracked) wait_falls: assert (to_go < had_to_go);
    in_time: assert (!tracked | waited + to_go <= 187);
end
always @* waits_behind_three: cover (tracked & age == 3 & kinds[3 * at +: 3] == 0);
always @* leaves_late: cover (goes & waited > 14);
always @* two_wait: cover (|evicting$q & |ordering$q);
