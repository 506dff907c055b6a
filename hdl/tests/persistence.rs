//! Persistence against a behavioural memory and a behavioural front.

use nearpm_hdl::dut::on_both_back_ends;
use nearpm_hdl::units::persistence::Persistence;
use nearpm_hdl_bench::persistence::scenarios;

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
    a_line_of_the_image_that_cannot_be_read_is_a_loss
);
