//@ unit: RequestSlots
//@ claim: What the save reads out of a slot is the command, its order number and its ticket as they were stored there last, and the
//@   instruction at which it resumes: the one that it was stored with, or the last that it has come to since. Issue and retirement read the same ticket.
//@ source: C7: save followed by load gives the same state (request slots)
//@ assumes: no progress is stored in a cycle in which a command is (`dispatcher_time`); an instruction is one of a program's 128
//@ tier: fast
//@ depth: 1
//@ cover-depth: 6
//@ asserts: 4
//@ covers: 1
//@ watch: raw work ticket accepted resume
//@ mutant: a command that is stored resumes where the one before it was
//@ find: resume$write_enable = write_valid | progress_valid;
//@ put: resume$write_enable = progress_valid;
//@ within: 6
//@ mutant: the ticket that is saved is that of the slot to be issued
//@ find: ticket$read_address$2 = save_slot;
//@ put: ticket$read_address$2 = issue_slot;
//@ within: 6
// Witness: an arbitrary slot.
wire [4:0] slot_ = raw__watched;
always @* assume (work__watched == slot_ & ticket__watched == slot_ & accepted__watched == slot_ & resume__watched == slot_);
always @* assume (!(write_valid & progress_valid) & !write_resume[7] & !progress_pc[7]);
reg [511:0] raw_ = 0;
reg [63:0] accepted_ = 0;
reg [173:0] ticket_ = 0;
reg [6:0] resume_ = 0;
always @(posedge clock) begin
    if (write_valid & write_slot == slot_) begin
        raw_ <= write_raw; accepted_ <= write_accepted; ticket_ <= write_ticket; resume_ <= write_resume;
    end else if (progress_valid & progress_slot == slot_) resume_ <= progress_pc;
end
always @* begin
    slot_is_kept: assert ({raw__word, accepted__word, ticket__word, resume__word} == {raw_, accepted_, ticket_, resume_});
    if (save_slot == slot_) command_is_saved: assert ({save_raw, save_accepted, save_ticket, save_resume} == {raw_, accepted_, ticket_, 1'b0, resume_});
    if (issue_slot == slot_) ticket_of_issue: assert (issue_ticket == ticket_);
    if (retire_slot == slot_) ticket_of_retirement: assert (retire_ticket == ticket_);
end
reg progressed = 0;
always @(posedge clock) progressed <= progressed | (progress_valid & progress_slot == slot_ & raw_ != 0);
always @* progress_is_saved: cover (progressed & save_slot == slot_ & save_resume == 5);
