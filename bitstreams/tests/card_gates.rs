//! The whole card as gates: mapped to the cells of the VCU118's part by open tools, the netlist
//! passes seven scenarios of the card's smoke test in simulation.
//!
//! Of the thorough tier: 12 minutes on two busy cores, most of it for yosys.

use std::path::Path;

use nearpm_bitstreams::tools::Tool;
use nearpm_bitstreams::yosys;
use nearpm_hdl::MODULE;
use nearpm_hdl_bench::card::{Cards, card, scenarios};
use nearpm_verilate::{Library, Source};

type Scenario = fn(&Cards);

/// Cards made of a netlist.
fn of_gates(verilog: String) -> Cards {
    // A netlist is simulated for some thousand cycles: what that would save, its compilation would
    // take many times over.
    let source = Source::new(MODULE, verilog).with_deny_warnings(false).with_optimised(false);
    Cards::of(Library::build(&source).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn the_gates_pass_the_smoke_test_of_the_card() {
    if !nearpm_tier::thorough() {
        eprintln!("of the thorough tier: set NEARPM_THOROUGH=1");
        return;
    }
    if let Err(error) = Tool::Yosys.path() {
        assert!(std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "{error}");
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("card-gates");
    let step = |what: &str| eprintln!("{what}");
    step("mapping the card to the part's cells");
    yosys::map(&card().verilog, MODULE, &folder).expect("yosys maps the card");
    step("making gates of the cells");
    let gates = yosys::gates(MODULE, &folder).expect("yosys has models of all cells");
    step("building the model of the gates");
    let cards = of_gates(gates);
    let scenarios: [(&str, Scenario); 7] = [
        ("firmware is loaded and the card opens", scenarios::a_blank_card_takes_firmware_and_opens),
        ("undo logs", scenarios::an_undo_log_is_the_entry_that_the_media_format_defines),
        ("a store behind a log", scenarios::a_store_behind_a_log_does_not_pass_it),
        ("refusals", scenarios::refusals_have_no_effect_and_say_why),
        ("transactions", scenarios::a_transaction_commits_and_its_completion_is_recorded),
        ("a power cut", scenarios::accepted_work_survives_a_power_cut),
        ("shutdown and reset", scenarios::a_clean_shutdown_and_a_function_level_reset),
    ];
    for (what, scenario) in scenarios {
        step(what);
        scenario(&cards);
    }
}
