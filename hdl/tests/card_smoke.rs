//! The whole card on Verilator.

use nearpm_hdl_bench::card::{Cards, PM_BYTES, peers, scenarios};
use nearpm_interface::registers::{self, capability};

macro_rules! on_the_card {
    ($cards:ident, $module:ident: $($scenario:ident),+ $(,)?) => {
        $(
            #[test]
            fn $scenario() {
                $module::$scenario(&Cards::$cards());
            }
        )+
    };
}

on_the_card!(
    sound, scenarios:
    a_reset_or_a_shutdown_that_is_cut_loses_nothing,
    a_flood_of_commands_delays_a_load_by_a_bounded_time,
    a_range_is_released_when_the_memory_has_answered,
    what_is_shown_as_done_is_durable,
    a_commit_and_a_recover_write_exactly_their_bytes,
    an_undo_redo_that_is_cut_keeps_the_old_value_in_its_log,
    the_card_is_one_file_that_names_its_own_hash,
    a_blank_card_takes_firmware_and_opens,
    an_undo_log_is_the_entry_that_the_media_format_defines,
    a_store_behind_a_log_does_not_pass_it,
    refusals_have_no_effect_and_say_why,
    a_transaction_commits_and_its_completion_is_recorded,
    accepted_work_survives_a_power_cut_at_any_moment,
    an_item_is_counted_only_when_it_is_durable,
    a_replay_that_is_cut_again_and_again_ends_in_the_same_memory,
    a_save_without_enough_energy_is_a_loss_and_says_so,
    a_clean_shutdown_and_a_function_level_reset,
    figures
);

#[test]
fn capabilities_are_those_of_the_board() {
    let always = capability::HOST_ORDERED | capability::COMPLETION_RECORDS;
    let of_board = capability::POWER_FAIL_SAFE | capability::PEERS;
    for (cards, wanted) in [(Cards::sound(), always | of_board), (Cards::small(), always)] {
        let mut card = cards.power_up(vec![0; PM_BYTES as usize], 1);
        assert_eq!(card.read_register(registers::CAPABILITIES), wanted);
    }
}

on_the_card!(
    sound, peers:
    a_commit_waits_for_the_report_of_the_other_device,
    a_device_reports_when_its_logs_are_durable,
    a_later_commit_stays_behind_one_that_waits,
    what_waits_holds_no_slot,
    what_waits_survives_a_power_failure,
    who_waits_asks_again,
    only_a_silent_device_discards,
);

/// One unit and small tables.
mod small {
    use nearpm_hdl_bench::card::{Cards, scenarios};

    on_the_card!(
        small, scenarios:
        a_blank_card_takes_firmware_and_opens,
        a_transaction_commits_and_its_completion_is_recorded,
        accepted_work_survives_a_power_cut_at_any_moment,
        a_replay_that_is_cut_again_and_again_ends_in_the_same_memory,
    );
}
