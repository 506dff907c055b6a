//@ unit: PersistBuffer
//@ claim: What is durable is a prefix of the persist order: a persist that a warp makes behind an ordering operation of its own (fence, acquire, release, `dFence`) goes to memory
//@   only when every persist that was accepted before that operation is durable, whosever it was; so it is for a line that is evicted. A device release or `dFence` leaves, and lets its
//@   warp go on, only when they are.
//@ source: SBRP (ASPLOS '23) Box 2 and 6.1; `docs/sbrp.md`
//@ assumes: memory acknowledges only what it was sent, in any order; proved for 4 warps, 4 entries, 4 lines and a counter to 3
//@ tier: fast
//@ depth: 1
//@ cover-depth: 14
//@ asserts: 13
//@ covers: 3
//@ arrays: apart
//@ mutant: a persist at the head does not wait for what its warp ordered before it
//@ find: flush = moves & (entry_kind == persist_kind) & ~marked & can_count;
//@ put: flush = moves & (entry_kind == persist_kind) & can_count;
//@ within: 14
//@ mutant: an order before a line does not keep it from being evicted
//@ find: evict = is_eviction & hit & ~order_flags$order_before & ~marked & can_count;
//@ put: evict = is_eviction & hit & ~marked & can_count;
//@ within: 14
//@ mutant: a line of a marked warp is evicted
//@ find: evict = is_eviction & hit & ~order_flags$order_before & ~marked & can_count;
//@ put: evict = is_eviction & hit & ~order_flags$order_before & can_count;
//@ within: 16
//@ mutant: an order at the head marks nobody
//@ find: flushing$d = marks | entry_mask;
//@ put: flushing$d = marks;
//@ within: 14
//@ mutant: marks are forgotten while flushes are outstanding
//@ find: marks = flushing$q;
//@ put: marks = acknowledge ? 4'd0 : flushing$q;
//@ within: 14
//@ mutant: a store joins its line's entry although an order of its warp lies between
//@ find: behind_order = last_orders$known & (offset < order_offset);
//@ put: behind_order = 1'b0;
//@ within: 16
//@ mutant: a fence joins one that lies further ahead
//@ find: merge = (asked_kind$q == ofence_kind) & ~empty & (entry_kind == ofence_kind);
//@ put: merge = (asked_kind$q == ofence_kind) & ~empty;
//@ within: 14
//@ mutant: a full counter begins anew
//@ find: can_count = outstanding$q != most_flushes;
//@ put: can_count = 1'b1;
//@ within: 22
//@ mutant: a `dFence` leaves while flushes are outstanding
//@ find: leave = moves & (entry_kind != persist_kind) & (~holds_head | none_outstanding);
//@ put: leave = moves & (entry_kind != persist_kind);
//@ within: 14
// Witness: a persist of any warp, an order of `warp_` behind it, and a persist of `warp_` behind that; each at an arbitrary moment.
(* anyconst *) reg [1:0] warp_;
(* anyseq *) reg mark_first, mark_order, mark_later, mark_answer;
wire [1:0] entered_at = push ? tail$q : place;
wire by_warp = asked_warp$q == warp_;
wire persists = accepted & is_persist;
wire orders = accepted & is_order & by_warp;

reg first_seen = 0, first_queued = 0, first_sent = 0;
reg order_seen = 0, order_queued = 0;
reg later_seen = 0, later_queued = 0;
reg [1:0] first_at, order_at, later_at;
wire head_goes = flush | leave;
wire first_goes = first_queued & (flush & head$q == first_at | evict & place == first_at);
wire order_goes = order_queued & leave & head$q == order_at;
wire later_goes = later_queued & (flush & head$q == later_at | evict & place == later_at);
wire first_answered = first_sent & acknowledged & mark_answer;
wire is_durable = first_seen & !first_queued & !first_sent;
always @(posedge clock)
    if (reset) {first_seen, first_queued, first_sent, order_seen, order_queued, later_seen, later_queued} <= 0;
    else begin
        if (!first_seen & persists & mark_first) begin first_seen <= 1; first_queued <= 1; first_at <= entered_at; end
        if (first_goes) begin first_queued <= 0; first_sent <= 1; end
        if (first_answered) first_sent <= 0;
        if (first_seen & !order_seen & orders & mark_order) begin order_seen <= 1; order_queued <= 1; order_at <= entered_at; end
        if (order_goes) order_queued <= 0;
        if (order_seen & !later_seen & persists & by_warp & mark_later) begin later_seen <= 1; later_queued <= 1; later_at <= entered_at; end
        if (later_goes) later_queued <= 0;
    end
// Memory does not answer for what is still on its way.
always @* if (acknowledge & first_sent & !mark_answer) assume (outstanding$q != 1);

wire [2:0] entries = is_full$q ? 4 : {1'b0, used};
wire [1:0] first_age = first_at - head$q, order_age = order_at - head$q, later_age = later_at - head$q;
wire [11:0] kinds = {\kinds.mem[3] , \kinds.mem[2] , \kinds.mem[1] , \kinds.mem[0] };
wire [15:0] masks = {\masks.mem[3] , \masks.mem[2] , \masks.mem[1] , \masks.mem[0] };
wire [7:0] orders_at = {\last_orders.places[3] , \last_orders.places[2] , \last_orders.places[1] , \last_orders.places[0] };
wire [1:0] last_age = orders_at[2 * warp_ +: 2] - head$q;
wire [2:0] first_kind = kinds[3 * first_at +: 3], order_kind = kinds[3 * order_at +: 3], later_kind = kinds[3 * later_at +: 3];
reg [3:0] is_an_order;
reg [1:0] age_of;
integer n;
always @* for (n = 0; n < 4; n = n + 1) begin
    age_of = n[1:0] - head$q;
    is_an_order[n] = age_of < entries & kinds[3 * n +: 3] != 0 & kinds[3 * n +: 3] != 7;
end
wire order_has = masks >> {order_at, warp_} & 1, later_has = masks >> {later_at, warp_} & 1;
always @* begin
    in_turn: assert (!(asked$q & heads_turn$q));
    full_when_round: assert (!is_full$q | head$q == tail$q);
    one_after_the_other: assert ((!first_queued | first_seen) & !(first_queued & first_sent) & (!first_sent | first_seen) & (!order_queued | order_seen)
        & (!order_seen | first_seen) & (!later_queued | later_seen) & (!later_seen | order_seen));
    if (first_queued) first_is_there: assert (first_age < entries & first_kind == 0);
    if (order_queued) order_is_there: assert (order_age < entries & order_kind != 0 & order_kind != 7 & order_has);
    orders_are_flagged: assert ((is_an_order & ~order_flags__flags) == 0);
    if (order_queued) order_is_known: assert ((last_orders__in_queue >> warp_ & 1) & last_age >= order_age);
    if (first_queued & order_seen) first_is_before: assert (order_queued & first_age < order_age);
    if (later_queued) later_is_there: assert (later_age < entries & later_kind == 0 & later_has & (!order_queued | order_age < later_age));
    if (first_sent) sent_is_counted: assert (outstanding$q != 0);
    if (order_seen & !order_queued & !is_durable) marked_till_durable: assert (flushing$q >> warp_ & 1);
    if (later_goes) durable_is_a_prefix: assert (is_durable);
    if (order_goes & holds_head) goes_on_when_durable: assert (is_durable);
end
always @* later_goes_by_the_head: cover (later_goes & flush);
always @* later_is_evicted: cover (later_goes & evict);
always @* goes_on: cover (order_goes & holds_head & first_seen);
