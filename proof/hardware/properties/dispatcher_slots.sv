//@ unit: Dispatcher
//@ claim: A command is issued only when it is live and was ready, once, and to one unit; its slot is given to no other before it has
//@   retired, or, where it failed, before it is let go. No two live commands have one slot.
//@ source: C1, C2; nothing accepted is lost or duplicated; no two units execute one command
//@ assumes: a command that is ready stays so until its slot is given away (dependency matrix); a unit reports as done only what was
//@   issued to it, once; failed slots alone are let go (range table); a command is entered only while a slot is offered
//@ tier: fast
//@ depth: 3
//@ cover-depth: 16
//@ asserts: 10
//@ covers: 2
//@ mutant: an issued command is picked again
//@ find: & ~issued$q & ~failed$q
//@ put: & ~failed$q
//@ within: 14
//@ mutant: a slot is offered again while its command is live
//@ find: free$requests = ~alive$q & ~spare_mask$q;
//@ put: free$requests = ~spare_mask$q;
//@ within: 14
//@ mutant: a command that is blocked, and not ready, is issued
//@ find: picked_blocked$d = ~|(pick$grant & ready);
//@ put: picked_blocked$d = 1'b0;
//@ within: 14
// Witness: an arbitrary slot. `issued_` from its issue on, `finished` when a unit has said so.
(* anyconst *) reg [4:0] slot_;
reg is_live = 0, was_issued = 0, finished = 0, is_kept = 0;
wire enters = enter_valid & spare_index$q == slot_;
wire [3:0] issues = {issue_valid$3, issue_valid$2, issue_valid$1, issue_valid$0};
wire issued_now = |issues & issue_slot == slot_;
wire [3:0] tells = {done_valid$3 & done_slot$3 == slot_, done_valid$2 & done_slot$2 == slot_, done_valid$1 & done_slot$1 == slot_,
    done_valid$0 & done_slot$0 == slot_};
wire [3:0] heard = {done_ready$3, done_ready$2, done_ready$1, done_ready$0};
wire retires = retire_valid & slot$q == slot_;
always @(posedge clock) begin
    if (reset) begin is_live <= 0; was_issued <= 0; finished <= 0; is_kept <= 0; end
    else begin
        if (enters) begin is_live <= 1; was_issued <= 0; finished <= 0; is_kept <= 0; end
        else if (retires & retire_failed) is_kept <= 1;
        else if (retires | let_go[slot_]) begin is_live <= 0; is_kept <= 0; end
        if (issued_now) was_issued <= 1;
        if (|(tells & heard)) finished <= 1;
    end
end
reg ready_then = 0;
always @(posedge clock) ready_then <= ready[slot_] & is_live & !enters & !reset;
always @* begin
    if (enter_valid) assume (slot_any);
    if (ready_then & is_live) assume (ready[slot_]);
    if (!was_issued | finished | !is_live | is_kept) assume (tells == 0);
    assume ((tells & (tells - 1)) == 0);
    if (let_go[slot_]) assume (is_kept);
end

// The properties.
always @* if (issued_now) issued_when_ready: assert (is_live & ready[slot_] & !was_issued & !is_kept);
always @* issued_to_one: assert ((issues & (issues - 1)) == 0);
always @* if (enters) slot_was_free: assert (!is_live);
always @* if (retires) retires_once: assert (is_live & !is_kept);
// Invariants.
wire waits_for_issue = picked$q & picked_slot$q == slot_;
wire under_way = retiring$q & slot$q == slot_;
always @* begin
    live_is_known: assert (alive$q[slot_] == is_live & failed$q[slot_] == is_kept & !(is_kept & !is_live));
    if (spare$q) offered_is_free: assert (spare_mask$q == 32'd1 << spare_index$q & (spare_index$q != slot_ | !is_live));
    if (!f_was_reset & waits_for_issue) picked_was_ready: assert (is_live & !is_kept & issued$q[slot_] & !was_issued & !finished
        & (picked_blocked$q | ready[slot_]) & !under_way);
    if (!f_was_reset & is_live & !is_kept) issued_is_known: assert (issued$q[slot_] == (waits_for_issue | was_issued | under_way));
    if (!f_was_reset & under_way) retiring_is_live: assert (is_live & !is_kept & (finished | !was_issued) & !waits_for_issue);
    if (!f_was_reset & is_live & !is_kept) finished_retires: assert (finished == (under_way & was_issued));
end
always @* issued_and_retired: cover (retires & was_issued & retire_ok);
always @* refused_and_kept: cover (retires & retire_failed);
