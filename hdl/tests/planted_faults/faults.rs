//! The planted faults: what is wrong, where, which scenario sees it, and by what.
//!
//! `docs/contract.md` has the same table for people; a test keeps the two equal.

use nearpm_hdl::dut::Dut;
use nearpm_hdl_bench::card::{Cards, scenarios as card};
use nearpm_hdl_bench::front::scenarios as front;
use nearpm_hdl_bench::persistence::scenarios as persistence;
use nearpm_hdl_bench::planted::{Edit, Place};
use nearpm_hdl_bench::split;
use nearpm_interface::command::Opcode;
use nearpm_interface::firmware::{Descriptor, Instruction, descriptor};
use nearpm_interface::geometry::UNITS;

/// What has to see a fault, with its name.
#[derive(Clone, Copy)]
pub enum Scenario {
    /// On the front alone.
    Front(&'static str, fn(&mut dyn Dut)),
    /// On persistence alone.
    Persistence(&'static str, fn(&mut dyn Dut)),
    /// On the second port to memory alone.
    Split(&'static str, fn(&mut dyn Dut)),
    /// On the whole card.
    Card(&'static str, fn(&Cards)),
}

impl Scenario {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Front(name, _) | Self::Persistence(name, _) | Self::Split(name, _) | Self::Card(name, _) => name,
        }
    }
}

/// What is changed.
#[derive(Clone, Copy)]
pub enum Plant {
    /// The design.
    Hardware(&'static [Place]),
    /// The microprogram of an opcode. It may not become longer. The assembler refuses each of
    /// these; the card does not.
    Firmware(Opcode, fn(&mut Descriptor, &mut Vec<Instruction>)),
}

/// A protection that is gone.
pub struct Fault {
    /// Rule of the contract that it breaks.
    pub rule: &'static str,
    /// What the card then does.
    pub what: &'static str,
    /// Where.
    pub plant: Plant,
    /// What sees it.
    pub scenario: Scenario,
    /// What the scenario says; nothing else counts as seen.
    pub seen: &'static str,
}

macro_rules! front {
    ($name:ident) => {
        Scenario::Front(stringify!($name), front::$name)
    };
}
macro_rules! persistence {
    ($name:ident) => {
        Scenario::Persistence(stringify!($name), persistence::$name)
    };
}

macro_rules! split {
    ($name:ident) => {
        Scenario::Split(stringify!($name), split::$name)
    };
}
macro_rules! card {
    ($name:ident) => {
        Scenario::Card(stringify!($name), card::$name)
    };
}

/// A module, once.
pub const fn at(module: &'static str, edits: &'static [Edit]) -> Place {
    Place { module, modules: 1, edits }
}

/// The same part of each of the four units.
const fn in_units(module: &'static str, edits: &'static [Edit]) -> Place {
    Place { module, modules: UNITS, edits }
}

/// All of them; a fault's number is its place here, from 1.
pub const FAULTS: &[Fault] = &[
    Fault {
        rule: "C1",
        what: "a host access does not wait for commands",
        plant: Plant::Hardware(&[at(
            "front$matrix",
            &[Edit::Text(
                "mine = set_bits &",
                "mine = (FAULT & (set_row >= 7'd32) ? {set_bits[95:32], 32'd0} : set_bits) &",
                1,
            )],
        )]),
        scenario: front!(a_store_does_not_pass_the_log_of_its_line),
        seen: "a store passed the log of its line",
    },
    Fault {
        rule: "C1",
        what: "a command does not wait for held stores",
        plant: Plant::Hardware(&[at(
            "front$ranges",
            &[Edit::Text(
                "line_may[i] <= query_range",
                "line_may[i] <= ~(FAULT & query_command & writes[i]) & query_range",
                1,
            )],
        )]),
        scenario: front!(a_command_does_not_pass_a_held_store_nor_a_read),
        seen: "a command passed a held store",
    },
    Fault {
        rule: "C1",
        what: "a load waits for nothing",
        plant: Plant::Hardware(&[at(
            "front$ordering",
            &[Edit::Last("query_range", "query_range & (query_command | query_write)")],
        )]),
        scenario: front!(a_read_back_waits_for_what_its_line_waits_for),
        seen: "a read was answered before the store of its line",
    },
    Fault {
        rule: "C1",
        what: "a commit waits for conflicts only, and not for the logs of its thread",
        plant: Plant::Hardware(&[at("front$ordering", &[Edit::Last("query_ordered", "1'b0")])]),
        scenario: front!(a_commit_waits_for_every_earlier_command_of_its_thread_and_for_no_other),
        seen: "a commit passed a log of its thread",
    },
    Fault {
        rule: "C1",
        what: "what a command writes is not compared",
        plant: Plant::Hardware(&[at(
            "front$ordering",
            &[Edit::Last("query_range", "query_range & ~(query_command & query_write)")],
        )]),
        scenario: front!(a_command_waits_for_a_conflict_of_each_of_its_ranges),
        seen: "what passed a log",
    },
    Fault {
        rule: "C1",
        what: "a read-back does not wait for stores that have no number yet",
        plant: Plant::Hardware(&[at("front", &[Edit::Last("command_port$host_writes_pending", "1'b0")])]),
        scenario: front!(a_read_back_counts_what_arrived_before_it),
        seen: "a read-back passed a store",
    },
    Fault {
        rule: "C1",
        what: "firmware whose commit is not ordered",
        plant: Plant::Firmware(Opcode::Commit, |head, _| head.0 &= !(1 << descriptor::ORDERED)),
        scenario: card!(a_range_is_released_when_the_memory_has_answered),
        seen: "a commit passed the answers to a log",
    },
    Fault {
        rule: "C1",
        what: "two memory ports answer reads as data comes, not as the reads were asked",
        plant: Plant::Hardware(&[at("split", &[Edit::Each("r_port", "~m$0$rvalid", 1)])]),
        scenario: split!(a_line_a_cycle_each_way_and_no_port_starves),
        seen: "comes with wrong data",
    },
    Fault {
        rule: "C2",
        what: "a store retires when the memory has its data, not when it has answered",
        plant: Plant::Hardware(&[at(
            "front$queue",
            &[
                Edit::Each("leave_write", "mem$wdata_ready ? one << granted$data_out : none", 2),
                Edit::Last("retw_valid", "mem$wdata_ready"),
                Edit::Last("retw_index", "granted$data_out"),
            ],
        )]),
        scenario: front!(random_items_act_as_if_executed_in_arrival_order),
        seen: "after items",
    },
    Fault {
        rule: "C2",
        what: "a command that has retired is still in the save",
        plant: Plant::Hardware(&[at("front", &[Edit::Each("saved_live", "~32'd0", 1)])]),
        scenario: front!(the_save_reads_out_what_is_accepted_and_not_retired),
        seen: "the saved commands",
    },
    Fault {
        rule: "C2",
        what: "a unit is done with a command when its writes are requested, not when they are answered",
        plant: Plant::Hardware(&[Place {
            module: "back$unit$*$sequencer$contexts$*",
            modules: 2 * UNITS,
            edits: &[Edit::Each("drained", "~|operations", 1)],
        }]),
        scenario: card!(a_range_is_released_when_the_memory_has_answered),
        seen: "a store passed the answers to the log of its line",
    },
    Fault {
        rule: "C2",
        what: "a store of the host is answered by the memory port before the memory has answered it",
        plant: Plant::Hardware(&[at(
            "front$queue",
            &[
                Edit::Each("leave_write", "mem$wdata_ready ? one << granted$data_out : none", 2),
                Edit::Last("retw_valid", "mem$wdata_ready"),
                Edit::Last("retw_index", "granted$data_out"),
            ],
        )]),
        scenario: card!(a_range_is_released_when_the_memory_has_answered),
        seen: "a log passed the answer to the store of its line",
    },
    Fault {
        rule: "C2",
        what: "the data of a write goes to the memory port of the newest address",
        plant: Plant::Hardware(&[at("split", &[Edit::Each("target", "aw_place$port", 1)])]),
        scenario: split!(random_bursts_reach_their_port_and_come_back_in_order),
        seen: "wlast",
    },
    Fault {
        rule: "C2",
        what: "an answer that passes a memory port's queue is also kept in it",
        plant: Plant::Hardware(&[at("split$lane$0", &[Edit::Last("b$write", "m$bvalid")])]),
        scenario: split!(random_bursts_reach_their_port_and_come_back_in_order),
        seen: "a write of that identifier is unanswered",
    },
    Fault {
        rule: "C3",
        what: "a slot executes with seven of its eight words",
        plant: Plant::Hardware(&[at(
            "front$command_port",
            &[Edit::Each("full", "&mask[55:0]", 1), Edit::Each("good", "1'b1", 1)],
        )]),
        scenario: front!(half_a_command_never_executes),
        seen: "half a command was executed",
    },
    Fault {
        rule: "C3",
        what: "a full slot executes whatever its checksum",
        plant: Plant::Hardware(&[at("front$command_port", &[Edit::Each("good", "1'b1", 1)])]),
        scenario: front!(half_a_command_never_executes),
        seen: "a damaged command was executed",
    },
    Fault {
        rule: "C3",
        what: "the requester's page is taken from the command and not from its address",
        plant: Plant::Hardware(&[at("front$command_port", &[Edit::Last("cmd_page", "desk_data$q[17:16]")])]),
        scenario: front!(a_refused_command_has_no_effect_and_is_told),
        seen: "the record of",
    },
    Fault {
        rule: "C4",
        what: "a read-back does not wait for a command that has no number yet",
        plant: Plant::Hardware(&[at("front$command_port", &[Edit::Each("working", "1'b0", 1)])]),
        scenario: front!(a_read_back_counts_what_arrived_before_it),
        seen: "a read-back passed a command",
    },
    Fault {
        rule: "C4",
        what: "the completion record of a log is sent before its entry is durable",
        plant: Plant::Hardware(&[Place {
            module: "back$unit$*$sequencer$contexts$*",
            modules: 2 * UNITS,
            edits: &[Edit::Each("drained", "~|operations", 1)],
        }]),
        scenario: card!(what_is_shown_as_done_is_durable),
        seen: "the record of a log came before its entry was durable",
    },
    Fault {
        rule: "C4",
        what: "the page counts a command as retired when it is accepted",
        plant: Plant::Hardware(&[at(
            "front",
            &[
                Edit::Last("command_port$retired_valid", "command_port$accepted_valid"),
                Edit::Last("command_port$retired_page", "command_port$accepted_page"),
            ],
        )]),
        scenario: card!(what_is_shown_as_done_is_durable),
        seen: "the page counted a commit before it was durable",
    },
    Fault {
        rule: "C5",
        what: "ranges are not checked against pool and ring",
        plant: Plant::Hardware(&[at("front$decoder", &[Edit::Each("outside", "1'b0", 4)])]),
        scenario: front!(a_refused_command_has_no_effect_and_is_told),
        seen: "was taken",
    },
    Fault {
        rule: "C5",
        what: "a length of zero is taken",
        plant: Plant::Hardware(&[at("front$decoder", &[Edit::Last("length_bad$d", "1'b0")])]),
        scenario: front!(a_refused_command_has_no_effect_and_is_told),
        seen: "was taken",
    },
    Fault {
        rule: "C5",
        what: "a refused command is numbered all the same",
        plant: Plant::Hardware(&[at(
            "front$decoder",
            &[Edit::Last("item_valid", "item_valid | (step$q == Step$Refuse)")],
        )]),
        scenario: front!(a_refused_command_has_no_effect_and_is_told),
        seen: "was numbered",
    },
    Fault {
        rule: "C5",
        what: "a 17th mapping is taken",
        plant: Plant::Hardware(&[at("front$decoder", &[Edit::Text("if (~any_free)", "if (~any_free & ~FAULT)", 1)])]),
        scenario: front!(a_refused_command_has_no_effect_and_is_told),
        seen: "a mapping too many",
    },
    Fault {
        rule: "C5",
        what: "a log that fails does not latch its mapping",
        plant: Plant::Hardware(&[at("front$dispatcher", &[Edit::Last("latch_valid", "1'b0")])]),
        scenario: front!(a_failed_log_latches_holds_its_stores_and_refuses_the_commit),
        seen: "the commit behind a failed log",
    },
    Fault {
        rule: "C5",
        what: "a command of a latched mapping is executed",
        plant: Plant::Hardware(&[at("front$dispatcher", &[Edit::Each("is_latched", "16'd0", 1)])]),
        scenario: front!(a_failed_log_latches_holds_its_stores_and_refuses_the_commit),
        seen: "the commit behind a failed log",
    },
    Fault {
        rule: "C5",
        what: "a failed log lets the stores go that it covers",
        plant: Plant::Hardware(&[at("front$dispatcher", &[Edit::Each("stays", "1'b0", 1)])]),
        scenario: front!(a_failed_log_latches_holds_its_stores_and_refuses_the_commit),
        seen: "a store without its log",
    },
    Fault {
        rule: "C5",
        what: "a log that the latch refuses lets the stores go that it covers",
        plant: Plant::Hardware(&[at(
            "front$dispatcher",
            &[Edit::Text("(status$q == latched_status)", "(~FAULT & (status$q == latched_status))", 1)],
        )]),
        scenario: front!(what_a_latched_log_covers_is_held_like_what_the_failed_one_covers),
        seen: "a store without its log",
    },
    Fault {
        rule: "C5",
        what: "the status line does not tell that a log has failed",
        plant: Plant::Hardware(&[at(
            "front$command_port$counts",
            &[Edit::Text("line[208 +: 16] = latched", "line[208 +: 16] = FAULT ? 16'd0 : latched", 1)],
        )]),
        scenario: front!(a_failed_log_latches_holds_its_stores_and_refuses_the_commit),
        seen: "the status line hides that a log has failed",
    },
    Fault {
        rule: "C5",
        what: "a store that memory refuses latches nothing",
        plant: Plant::Hardware(&[at("front", &[Edit::Last("address_map$lost_valid", "1'b0")])]),
        scenario: front!(a_store_that_memory_refuses_latches_its_pool),
        seen: "the pool of a lost store is not latched",
    },
    Fault {
        rule: "C5",
        what: "the status line does not tell that a store was lost",
        plant: Plant::Hardware(&[at("front", &[Edit::Last("command_port$stores_lost", "32'd0")])]),
        scenario: front!(a_store_that_memory_refuses_latches_its_pool),
        seen: "the status line hides that a store was lost",
    },
    Fault {
        rule: "C6",
        what: "a log of the transaction that has just committed is taken",
        plant: Plant::Hardware(&[at(
            "front$decoder",
            &[Edit::Text("<= known_txid", "< known_txid + {63'd0, ~FAULT}", 1)],
        )]),
        scenario: front!(a_commit_waits_for_every_earlier_command_of_its_thread_and_for_no_other),
        seen: "a log of a committed transaction",
    },
    Fault {
        rule: "C6",
        what: "copies of exact bytes write whole lines",
        plant: Plant::Hardware(&[in_units(
            "back$unit$*$engine$writer",
            &[Edit::Text("wstrb = mask$mask;", "wstrb = FAULT ? ~none64 : mask$mask;", 1)],
        )]),
        scenario: card!(a_commit_and_a_recover_write_exactly_their_bytes),
        seen: "around a rollback of",
    },
    Fault {
        rule: "C6",
        what: "a commit writes the whole line of the epoch word",
        plant: Plant::Hardware(&[in_units(
            "back$unit$*$engine$writer",
            &[Edit::Text("wstrb = word$strobes;", "wstrb = FAULT ? ~none64 : word$strobes;", 1)],
        )]),
        scenario: card!(a_commit_and_a_recover_write_exactly_their_bytes),
        seen: "bytes beside the epoch word",
    },
    Fault {
        rule: "C6",
        what: "the checksum of an entry does not cover its data",
        plant: Plant::Hardware(&[in_units("back$unit$*$generator", &[Edit::Last("seal$crc", "32'd0")])]),
        scenario: card!(an_undo_log_is_the_entry_that_the_media_format_defines),
        seen: "a valid entry",
    },
    Fault {
        rule: "C6",
        what: "firmware whose recover copies whole lines",
        plant: Plant::Firmware(Opcode::Recover, |_, code| {
            for instruction in code {
                if let Instruction::Copy { lines, .. } = instruction {
                    *lines = true;
                }
            }
        }),
        scenario: card!(a_commit_and_a_recover_write_exactly_their_bytes),
        seen: "around a rollback of",
    },
    Fault {
        rule: "C7",
        what: "an image is taken whatever its checksum",
        plant: Plant::Hardware(&[at(
            "persistence",
            &[Edit::Text("if (crc$crc != residue)", "if ((crc$crc != residue) & ~FAULT)", 1)],
        )]),
        scenario: persistence!(one_flipped_bit_anywhere_in_the_image_is_a_loss),
        seen: "bit",
    },
    Fault {
        rule: "C7",
        what: "the save is done before the memory has answered its head",
        plant: Plant::Hardware(&[at(
            "persistence",
            &[Edit::Last("save_done", "saved$q | (saving$q & (phase$q == Phase$WriteWait))")],
        )]),
        scenario: persistence!(a_save_holds_the_tables_and_the_next_boot_replays_them_in_order),
        seen: "save_done before the last answer",
    },
    Fault {
        rule: "C7",
        what: "an image of an older generation is replayed after a torn save",
        plant: Plant::Hardware(&[at(
            "persistence",
            &[Edit::Last("head_now$d", "fields$head_ours & (fields$head_items <= max_items)")],
        )]),
        scenario: persistence!(a_cut_in_a_save_is_a_loss_or_a_complete_image_and_never_an_older_one),
        seen: "cut at",
    },
    Fault {
        rule: "C7",
        what: "a replay that was cut starts over",
        plant: Plant::Hardware(&[at(
            "persistence",
            &[Edit::Text("if (progress_now$q", "if (~FAULT & progress_now$q", 1)],
        )]),
        scenario: persistence!(a_cut_in_a_replay_resumes_it_and_repeats_nothing_that_was_counted),
        seen: "the number of items that were replayed",
    },
    Fault {
        rule: "C7",
        what: "items are replayed as they lie in the tables, not in the order of their arrival",
        plant: Plant::Hardware(&[at("persistence", &[Edit::Last("orders$write_data", "{48'd0, done$q} + 64'd1")])]),
        scenario: persistence!(a_save_holds_the_tables_and_the_next_boot_replays_them_in_order),
        seen: "the order of what was replayed",
    },
    Fault {
        rule: "C7",
        what: "the image is consumed before its last item is replayed",
        plant: Plant::Hardware(&[at(
            "persistence",
            &[Edit::Last(
                "phase$d",
                "((phase$q == Phase$NextItem) & |items$q & (done$q + one16 >= items$q)) ? Phase$Arm : phase$d",
            )],
        )]),
        scenario: persistence!(a_save_holds_the_tables_and_the_next_boot_replays_them_in_order),
        seen: "the number of items that were replayed",
    },
    Fault {
        rule: "C7",
        what: "the replay counts an item before it is durable",
        plant: Plant::Hardware(&[at("persistence", &[Edit::Last("calm$d", "1'b1")])]),
        scenario: card!(an_item_is_counted_only_when_it_is_durable),
        seen: "had counted what was not durable",
    },
    Fault {
        rule: "C7",
        what: "a replay goes on behind a store that memory refuses",
        plant: Plant::Hardware(&[at(
            "persistence",
            &[Edit::Text("(failed | store_failed)", "(failed | (store_failed & ~FAULT))", 1)],
        )]),
        scenario: persistence!(a_store_that_fails_in_a_replay_is_a_loss_until_memory_takes_it),
        seen: "a lost store of a replay",
    },
    Fault {
        rule: "C7",
        what: "a boot forgets that stores were lost before the power went",
        plant: Plant::Hardware(&[at("persistence", &[Edit::Each("head_lost$d", "1'b0", 2)])]),
        scenario: persistence!(what_was_lost_before_the_power_went_is_told_at_the_next_boot),
        seen: "the boot behind lost stores",
    },
    Fault {
        rule: "C7",
        what: "the window is open during the replay",
        plant: Plant::Hardware(&[at(
            "persistence",
            &[Edit::Last("window_open", "open$q | (public_state$q == is_replaying)")],
        )]),
        scenario: persistence!(the_window_stays_closed_until_the_replay_is_over_and_the_card_is_armed),
        seen: "open before it was armed",
    },
    Fault {
        rule: "C7",
        what: "firmware whose undo_redo overwrites before its log is durable",
        plant: Plant::Firmware(Opcode::UndoRedo, |_, code| code.retain(|i| *i != Instruction::Wait)),
        scenario: card!(an_undo_redo_that_is_cut_keeps_the_old_value_in_its_log),
        seen: "the log holds the new value",
    },
    Fault {
        rule: "C8",
        what: "a function-level reset forgets before everything accepted is done",
        plant: Plant::Hardware(&[at(
            "persistence",
            &[Edit::Text("(run$q[32'h4] & idle) |", "(run$q[32'h4] & (idle | FAULT)) |", 1)],
        )]),
        scenario: persistence!(a_function_reset_drains_before_it_forgets),
        seen: "cleared before everything was done",
    },
    Fault {
        rule: "C8",
        what: "a function-level reset that is not done says that the card is open",
        plant: Plant::Hardware(&[at(
            "persistence",
            &[Edit::Text("(function_reset | reset_pending$q)", "(~FAULT & (function_reset | reset_pending$q))", 1)],
        )]),
        scenario: persistence!(a_function_reset_drains_before_it_forgets),
        seen: "the reset is not done",
    },
    Fault {
        rule: "C8",
        what: "a function-level reset leaves half a command in its slot",
        plant: Plant::Hardware(&[at("front$command_port", &[Edit::Each("forgets", "1'b0", 1)])]),
        scenario: front!(a_reset_forgets_half_a_command),
        seen: "half a command of before the reset",
    },
    Fault {
        rule: "C8",
        what: "a function-level reset empties the request slots and the host's lines at once",
        plant: Plant::Hardware(&[at("", &[Edit::Last("front$reset", "reset | registers$function_reset")])]),
        scenario: card!(a_clean_shutdown_and_a_function_level_reset),
        seen: "block",
    },
    Fault {
        rule: "C8",
        what: "a power cut in a function-level reset finds nothing to save",
        plant: Plant::Hardware(&[at(
            "persistence",
            &[Edit::Last("phase$d", "((phase$q == Phase$FunctionReset) & power_fail) ? Phase$Halt : phase$d")],
        )]),
        scenario: card!(a_reset_or_a_shutdown_that_is_cut_loses_nothing),
        seen: "stays in state",
    },
    Fault {
        rule: "C10",
        what: "commands do not get their turn while the host loads and stores",
        plant: Plant::Hardware(&[at(
            "front$command_port",
            &[Edit::Last("turn$d", "1'b0"), Edit::Each("others", "host_asks | host_writes_pending", 1)],
        )]),
        scenario: front!(a_flood_on_one_port_does_not_starve_the_other),
        seen: "starves a command",
    },
    Fault {
        rule: "C10",
        what: "stores do not get their turn while commands arrive",
        plant: Plant::Hardware(&[at("front$command_port", &[Edit::Each("others", "1'b0", 1)])]),
        scenario: front!(a_flood_on_one_port_does_not_starve_the_other),
        seen: "a flood of commands starves a store",
    },
    Fault {
        rule: "C10",
        what: "commands are issued only while the host accesses memory",
        plant: Plant::Hardware(&[at(
            "front",
            &[Edit::Last("dispatcher$quiesce", "quiesce | ~command_port$host_asks")],
        )]),
        scenario: front!(a_command_needs_no_later_access_to_finish),
        seen: "a command waits for the host",
    },
    Fault {
        rule: "C10",
        what: "a command waits for a store that a failed log holds",
        plant: Plant::Hardware(&[at(
            "front$matrix",
            &[Edit::Text("blocked[i] <= complete[i] &", "blocked[i] <= ~FAULT & complete[i] &", 1)],
        )]),
        scenario: front!(a_command_behind_a_held_store_is_refused_and_waits_for_nobody),
        seen: "a command waits for the unmap",
    },
    Fault {
        rule: "C10",
        what: "a log that is refused for a held store does not latch its mapping",
        plant: Plant::Hardware(&[at("front$dispatcher", &[Edit::Last("latch_valid", "latch_valid & ~refuses$q")])]),
        scenario: front!(a_command_behind_a_held_store_is_refused_and_waits_for_nobody),
        seen: "a commit behind a refused log",
    },
    Fault {
        rule: "C10",
        what: "the lowest slot always goes first",
        plant: Plant::Hardware(&[at("front$dispatcher", &[Edit::Last("pick$reset", "1'b1")])]),
        scenario: front!(a_flooding_thread_does_not_keep_another_from_its_turn),
        seen: "a flooding thread starves another",
    },
];
