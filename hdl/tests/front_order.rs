//! The front as a whole against an oracle that executes every item at once, in arrival order; and
//! the scenarios of the contract that a card must not fall for.

use nearpm_hdl::dut::on_both_back_ends;
use nearpm_hdl::units::front::Front;
use nearpm_hdl_bench::front::scenarios;

macro_rules! on_both {
    ($($scenario:ident),+ $(,)?) => {
        $(
            #[test]
            fn $scenario() {
                on_both_back_ends::<Front>(scenarios::$scenario);
            }
        )+
    };
}

on_both!(
    an_unmap_arrives_when_every_slot_waits_for_a_held_store,
    what_fails_at_random_has_no_effect_and_loses_no_store,
    a_flooding_thread_does_not_keep_another_from_its_turn,
    what_was_let_go_gets_a_slot_beside_a_flood_of_commands,
    a_read_back_counts_what_arrived_before_it,
    a_flood_on_one_port_does_not_starve_the_other,
    a_command_needs_no_later_access_to_finish,
    a_command_behind_a_held_store_is_refused_and_waits_for_nobody,
    random_items_act_as_if_executed_in_arrival_order,
    a_store_does_not_pass_the_log_of_its_line,
    a_command_does_not_pass_a_held_store_nor_a_read,
    a_commit_waits_for_every_earlier_command_of_its_thread_and_for_no_other,
    a_command_waits_for_a_conflict_of_each_of_its_ranges,
    a_read_back_waits_for_what_its_line_waits_for,
    half_a_command_never_executes,
    a_reset_forgets_half_a_command,
    a_refused_command_has_no_effect_and_is_told,
    a_failed_log_latches_holds_its_stores_and_refuses_the_commit,
    a_store_that_memory_refuses_latches_its_pool,
    what_a_latched_log_covers_is_held_like_what_the_failed_one_covers,
    an_unmap_finds_room_when_every_slot_holds_a_failed_log,
    a_flood_of_stores_or_commands_leaves_room_for_the_others,
    the_save_reads_out_what_is_accepted_and_not_retired,
    the_host_may_not_write_what_is_the_cards_own,
    commands_flow_at_one_in_ten_cycles
);
