//! Persistence against a behavioural memory and a behavioural front.

use nearpm_hdl::dut::on_both_back_ends;
use nearpm_hdl::units::persistence::Persistence;
use nearpm_hdl_bench::persistence::scenarios;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};

macro_rules! on_both {
    ($($scenario:ident),+ $(,)?) => {
        $(
            #[test]
            fn $scenario() {
                on_both_back_ends::<Persistence>(scenarios::$scenario);
            }
        )+
    };
}

on_both!(
    the_window_stays_closed_until_the_replay_is_over_and_the_card_is_armed,
    a_blank_medium_opens_in_generation_1_without_firmware,
    a_save_holds_the_tables_and_the_next_boot_replays_them_in_order,
    a_save_takes_a_bounded_number_of_cycles,
    a_cut_in_a_save_is_a_loss_or_a_complete_image_and_never_an_older_one,
    a_cut_in_a_replay_resumes_it_and_repeats_nothing_that_was_counted,
    a_power_fail_in_a_replay_is_never_a_loss,
    one_flipped_bit_anywhere_in_the_image_is_a_loss,
    an_arm_word_that_no_card_writes_is_a_loss_and_the_next_generation_is_fresh,
    an_image_waits_for_the_firmware_that_accepted_it,
    a_clean_shutdown_leaves_nothing_to_replay_and_a_function_reset_opens_again,
    a_shutdown_with_stores_held_by_a_failed_log_saves_them,
    a_shutdown_keeps_what_waits_for_other_devices,
    a_function_reset_drains_before_it_forgets,
    a_function_reset_that_is_asked_for_in_a_replay_is_done_behind_it,
    firmware_that_is_asked_for_with_a_reset_is_loaded_behind_it,
    firmware_is_loaded_only_when_open_and_idle,
    a_second_load_of_firmware_waits_for_the_first,
    a_load_of_firmware_that_the_power_overtakes_shows_no_other_outcome,
    a_command_that_fails_in_a_replay_is_a_loss,
    a_store_that_fails_in_a_replay_is_a_loss_until_memory_takes_it,
    what_was_lost_before_the_power_went_is_told_at_the_next_boot,
    a_memory_that_cannot_be_written_leaves_no_head,
    a_line_of_the_image_that_cannot_be_read_is_a_loss,
    nothing_begins_while_something_is_under_way,
    a_line_that_cannot_be_written_is_a_loss_and_never_a_save,
    a_loss_is_acknowledged_where_software_can_have_read_of_it,
    a_loss_leaves_nothing_of_the_replay_behind,
    the_state_shows_the_outcome_of_a_load,
    power_that_fails_in_a_drain_or_a_closed_card_is_served,
    a_head_or_a_firmware_word_that_no_card_writes_is_not_taken,
    an_item_that_takes_long_is_waited_for
);

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "a line of a save that memory refuses is not noticed",
        edits: &[Edit::Text(
            "if (mem$b_valid & mem$b_error) begin",
            "if (mem$b_valid & mem$b_error & ~FAULT) begin",
            1,
        )],
        scenario: scenarios::a_line_that_cannot_be_written_is_a_loss_and_never_a_save,
        seen: "a save without line",
    },
    UnitFault {
        module: "",
        what: "the head is written before the lines are answered",
        edits: &[Edit::Text("if (~|unanswered$q) begin", "if (~|unanswered$q | FAULT) begin", 1)],
        scenario: scenarios::a_line_that_cannot_be_written_is_a_loss_and_never_a_save,
        seen: "a head over a line that was refused",
    },
    UnitFault {
        module: "",
        what: "a card opens without its arm word",
        edits: &[Edit::Text(
            "phase$d = Phase$Loss;\n                            if (saving$q)",
            "phase$d = FAULT ? after$q : Phase$Loss;\n                            if (saving$q)",
            1,
        )],
        scenario: scenarios::a_line_that_cannot_be_written_is_a_loss_and_never_a_save,
        seen: "a boot that cannot write line",
    },
    UnitFault {
        module: "",
        what: "a drain does not wait for what is under way",
        edits: &[Edit::Each("calm$d", "~firmware_busy & (idle | ~gating$q)", 2)],
        scenario: scenarios::nothing_begins_while_something_is_under_way,
        seen: "begins while something is under way",
    },
    UnitFault {
        module: "",
        what: "an item is counted before it has retired",
        edits: &[Edit::Each("calm$d", "quiet & ~firmware_busy", 2)],
        scenario: scenarios::an_item_that_takes_long_is_waited_for,
        seen: "an item is given while the one before it runs",
    },
    UnitFault {
        module: "",
        what: "losses are forgotten in whatever state",
        edits: &[Edit::Each("lost_forget", "acknowledge_loss", 1)],
        scenario: scenarios::a_loss_is_acknowledged_where_software_can_have_read_of_it,
        seen: "forgotten in a boot",
    },
    UnitFault {
        module: "",
        what: "an open card keeps losses that are acknowledged",
        edits: &[Edit::Each(
            "lost_forget",
            "acknowledge_loss & ((phase$q == Phase$Loss) | (phase$q == Phase$Missing))",
            1,
        )],
        scenario: scenarios::a_loss_is_acknowledged_where_software_can_have_read_of_it,
        seen: "an open card keeps",
    },
    UnitFault {
        module: "",
        what: "an open card does again what a replay had counted",
        edits: &[Edit::Each("redo", "skipping$q", 1)],
        scenario: scenarios::a_loss_leaves_nothing_of_the_replay_behind,
        seen: "an open card does again",
    },
    UnitFault {
        module: "",
        what: "units stay gated behind a loss",
        edits: &[
            Edit::Text(
                "public_state$d = is_loss;\n                    gating$d = 1'b0;",
                "public_state$d = is_loss;\n                    gating$d = FAULT & gating$q;",
                1,
            ),
            Edit::Text(
                "begin\n                    gating$d = 1'b0;\n                    open$d = 1'b1;",
                "begin\n                    gating$d = FAULT & gating$q;\n                    open$d = 1'b1;",
                1,
            ),
        ],
        scenario: scenarios::a_loss_leaves_nothing_of_the_replay_behind,
        seen: "an open card holds up who waits",
    },
    UnitFault {
        module: "",
        what: "a load is not shown in the cycle of its request",
        edits: &[Edit::Text("load_waits = load_request |", "load_waits = (load_request & ~FAULT) |", 1)],
        scenario: scenarios::firmware_is_loaded_only_when_open_and_idle,
        seen: "in the cycle of its request",
    },
    UnitFault {
        module: "",
        what: "a load is shown as done before the state is",
        edits: &[Edit::Each("load_waits", "load_request | load_pending$q | (phase$q == Phase$Load)", 1)],
        scenario: scenarios::the_state_shows_the_outcome_of_a_load,
        seen: "the state hides the outcome of a load",
    },
    UnitFault {
        module: "",
        what: "the slot that was asked for is not the one that is loaded",
        edits: &[Edit::Text("boot_slot$d = load_slot;", "boot_slot$d = FAULT ? boot_slot$q : load_slot;", 1)],
        scenario: scenarios::the_state_shows_the_outcome_of_a_load,
        seen: "another slot is loaded",
    },
    UnitFault {
        module: "",
        what: "firmware is loaded under commands that wait for other devices",
        edits: &[Edit::Text("idle & ~parked_any", "idle & (~parked_any | FAULT)", 3)],
        scenario: scenarios::a_shutdown_keeps_what_waits_for_other_devices,
        seen: "firmware is loaded under what waits",
    },
    UnitFault {
        module: "",
        what: "the cycles of a save are those behind its drain",
        edits: &[Edit::Text("if (~saving$q) begin", "if (~saving$q | FAULT) begin", 1)],
        scenario: scenarios::a_save_takes_a_bounded_number_of_cycles,
        seen: "cycles are told of a save",
    },
    UnitFault {
        module: "",
        what: "a firmware word without its tag is obeyed",
        edits: &[Edit::Text(
            "boot_tagged$d = fields$firmware_tagged &",
            "boot_tagged$d = (fields$firmware_tagged | FAULT) &",
            1,
        )],
        scenario: scenarios::a_head_or_a_firmware_word_that_no_card_writes_is_not_taken,
        seen: "firmware of the word",
    },
    UnitFault {
        module: "",
        what: "a firmware word of a slot that is not there is obeyed",
        edits: &[Edit::Text(
            "~|fields$firmware_slot[(32'h1)+:(7)]",
            "(~|fields$firmware_slot[(32'h1)+:(7)] | FAULT)",
            1,
        )],
        scenario: scenarios::a_head_or_a_firmware_word_that_no_card_writes_is_not_taken,
        seen: "firmware of the word",
    },
    UnitFault {
        module: "",
        what: "the next generation is the one behind the arm word's, whatever stands in the head",
        edits: &[Edit::Each("head_above$d", "1'b0", 2)],
        scenario: scenarios::an_arm_word_that_no_card_writes_is_a_loss_and_the_next_generation_is_fresh,
        seen: "above every one that stands there",
    },
    UnitFault {
        module: "",
        what: "a head of an older generation is taken",
        edits: &[Edit::Each("head_now$d", "fields$head_ours & (fields$head_items <= max_items)", 2)],
        scenario: scenarios::a_cut_in_a_save_is_a_loss_or_a_complete_image_and_never_an_older_one,
        seen: "cut at",
    },
    UnitFault {
        module: "",
        what: "items are replayed from the newest on",
        edits: &[Edit::Text("(candidate$q < best$q)", "(FAULT ? candidate$q > best$q : candidate$q < best$q)", 1)],
        scenario: scenarios::a_save_holds_the_tables_and_the_next_boot_replays_them_in_order,
        seen: "the boot behind a save",
    },
    UnitFault {
        module: "",
        what: "the last item is not looked at",
        edits: &[Edit::Each("last_item$d", "items$q - one16 - one16", 2)],
        scenario: scenarios::a_save_holds_the_tables_and_the_next_boot_replays_them_in_order,
        seen: "the boot behind a save",
    },
    UnitFault {
        module: "",
        what: "the last slot is not saved",
        edits: &[Edit::Text(
            "if (index$q == last_slot) begin",
            "if (index$q == (FAULT ? last_slot - one7 : last_slot)) begin",
            1,
        )],
        scenario: scenarios::a_save_holds_the_tables_and_the_next_boot_replays_them_in_order,
        seen: "the image of a save",
    },
    UnitFault {
        module: "",
        what: "the last place of those that wait is not saved",
        edits: &[Edit::Text(
            "if (index$q == last_place) begin",
            "if (index$q == (FAULT ? last_place - one7 : last_place)) begin",
            1,
        )],
        scenario: scenarios::a_save_holds_the_tables_and_the_next_boot_replays_them_in_order,
        seen: "the image of a save",
    },
    UnitFault {
        module: "",
        what: "what waits is saved under the number of a slot",
        edits: &[Edit::Text("if (form$q == Form$Parked) begin", "if (form$q == Form$Parked & ~FAULT) begin", 1)],
        scenario: scenarios::a_save_holds_the_tables_and_the_next_boot_replays_them_in_order,
        seen: "the image of a save",
    },
    UnitFault {
        module: "",
        what: "power that fails in a shut-down or a reset is not noticed",
        edits: &[Edit::Text(
            "if (power_fail) begin\n                        counting$d = 1'b0;\n                        phase$d = Phase$Drain;",
            "if (power_fail & ~FAULT) begin\n                        counting$d = 1'b0;\n                        phase$d = Phase$Drain;",
            2,
        )],
        scenario: scenarios::power_that_fails_in_a_drain_or_a_closed_card_is_served,
        seen: "no save_done",
    },
    UnitFault {
        module: "",
        what: "power that fails before a card is open is not noticed",
        edits: &[Edit::Text(
            "phase$d = Phase$Arm;\n                    end\n                    if (power_fail) begin",
            "phase$d = Phase$Arm;\n                    end\n                    if (power_fail & ~FAULT) begin",
            3,
        )],
        scenario: scenarios::power_that_fails_in_a_drain_or_a_closed_card_is_served,
        seen: "no save_done",
    },
    UnitFault {
        module: "",
        what: "a card that was shut down starts by itself",
        edits: &[Edit::Text(
            "if (clean$q & reset_pending$q & ~power_fail) begin",
            "if (clean$q & (reset_pending$q | FAULT) & ~power_fail) begin",
            1,
        )],
        scenario: scenarios::a_clean_shutdown_leaves_nothing_to_replay_and_a_function_reset_opens_again,
        seen: "what was shut down stays so",
    },
    UnitFault {
        module: "",
        what: "a reset behind a shut-down leaves the tables",
        edits: &[Edit::Text(
            "clearing$d = 1'b1;\n                        phase$d = Phase$Reset;",
            "clearing$d = ~FAULT;\n                        phase$d = Phase$Reset;",
            1,
        )],
        scenario: scenarios::a_clean_shutdown_leaves_nothing_to_replay_and_a_function_reset_opens_again,
        seen: "how often the tables are cleared",
    },
];

#[test]
fn planted_faults_are_seen_by_the_unit_s_own_tests() {
    each_is_seen::<Persistence>("Persistence", FAULTS);
}
