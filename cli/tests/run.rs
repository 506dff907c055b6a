//! `nearpm run` as a user sees it.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn nearpm(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearpm")).args(arguments).output().expect("the program runs")
}

#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = nearpm(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_workload_survives_a_cut_under_every_mechanism_with_and_without_a_card() {
    for workload in ["btree", "hashmap"] {
        for mechanism in ["undo", "redo", "checkpoint", "shadow"] {
            for card in ["none", "model"] {
                let arguments =
                    ["run", "--workload", workload, "--mechanism", mechanism, "--card", card, "--ops", "300"];
                let whole = printed(&[&arguments[..], &["--power-cut", "never"]].concat());
                assert!(whole.contains("300 entries, all as in the model"), "{whole}");
                let cut = printed(&[&arguments[..], &["--power-cut", "op:150", "--seed", "2"]].concat());
                assert!(cut.contains("recovery") && cut.contains("found          exactly the first"), "{cut}");
                // Where the card copies pages aside, a program that has what it needs in its own
                // memory notices at the epoch's end.
                let begun = if (mechanism, card) == ("shadow", "model") { ["151 ", "192 "] } else { ["151 "; 2] };
                assert!(begun.iter().any(|n| cut.contains(&format!("{n}operations begun"))), "{cut}");
            }
        }
    }
}

#[test]
fn the_same_seed_prints_the_same_bytes() {
    for card in ["none", "model"] {
        let run = |seed| printed(&["run", "--card", card, "--ops", "500", "--power-cut", "random", "--seed", seed]);
        assert_eq!(run("3"), run("3"));
        assert_ne!(run("3"), run("4"));
    }
}

#[test]
fn a_run_goes_through_several_power_cuts() {
    let run = |cuts| printed(&["run", "--ops", "200", "--ring", "65536", "--power-cut", cuts]);
    // Before the pool is made, in the boot after a save, in operations, and behind the last one.
    let text = run("cycle:100,op:50,cycle:60,op:90,op:200");
    assert_eq!(text.matches("power cut      at cycle").count(), 5, "{text}");
    for expected in
        ["at cycle 100 of", "the pool was not made yet", "interrupted by the next power cut", "at cycle 60 of"]
    {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    assert!(text.contains("51 operations begun, 50 acknowledged") && text.contains("200 entries, all as in"), "{text}");
}

#[test]
fn a_report_as_json_holds_what_the_text_says() {
    let run = |cuts| -> serde_json::Value {
        serde_json::from_str(&printed(&["run", "--ops", "200", "--power-cut", cuts, "--json"])).expect("it is JSON")
    };
    let cut = run("op:50");
    let [one] = cut["power_cuts"].as_array().expect("a list").as_slice() else { panic!("{cut}") };
    assert_eq!((&one["operations_begun"], &one["operations_acknowledged"]), (&51.into(), &50.into()));
    assert!(one["outcome"] == "recovered" && one["during"] == "operations" && cut["entries"] == 200, "{cut}");
    // What it says repeats the cut.
    assert_eq!(run(one["repeat"].as_str().expect("a text"))["power_cuts"][0]["cycle"], one["cycle"]);
    let whole = run("never");
    assert!(whole["measured"]["operations"] == 200 && whole["measured"]["time_ns"].as_u64() > Some(0), "{whole}");
}

#[test]
fn a_run_on_the_rtl_writes_its_signals() {
    let folder = tempfile::tempdir().expect("a folder");
    let waves = folder.path().join("card.fst");
    let arguments = ["run", "--ops", "3", "--ring", "16384", "--waves", waves.to_str().expect("a path")];
    let refused = nearpm(&arguments);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--waves goes with --card rtl"));
    let text = printed(&[&arguments[..], &["--card", "rtl", "--power-cut", "op:2"]].concat());
    assert!(text.contains("3 entries, all as in the model"), "{text}");
    for name in ["card", "card.1"] {
        let file = |ending: &str| folder.path().join(format!("{name}.{ending}"));
        assert!(file("fst").metadata().expect("it was written").len() > 10_000, "{name}");
        let groups = std::fs::read_to_string(file("gtkw")).expect("it was written");
        for shown in ["-state", "persistence.phase$q", "-commands", "m_axi_mem0_awvalid", "-other cards"] {
            assert!(groups.contains(shown), "{name} shows no {shown}: {groups}");
        }
    }
    let entries = std::fs::read_dir(folder.path()).expect("the folder is read");
    assert!(
        entries.flatten().all(|entry| entry.path().extension() != Some("vcd".as_ref())),
        "what FST is made of stays"
    );
    let nowhere = [&arguments[..5], &["--waves", "/no/such/folder/card.vcd", "--card", "rtl"]].concat();
    assert!(String::from_utf8_lossy(&nearpm(&nowhere).stderr).contains("/no/such/folder/card.vcd cannot be written"));
}

#[test]
fn a_save_without_energy_is_reported_as_torn() {
    let text = printed(&["run", "--ops", "100", "--ring", "65536", "--power-cut", "op:50@10"]);
    assert!(text.contains("energy for 10 cycles of the save") && text.contains("its save is torn"), "{text}");
    assert!(!text.contains("at the end"), "{text}");
}

#[test]
fn a_campaign_of_power_cuts_prints_what_they_met() {
    let cuts = |threads| printed(&["cuts", "--cuts", "60", "--seed", "3", "--threads", threads]);
    let text = cuts("2");
    assert!(text.starts_with("60 power cuts, transaction-level card, seed 3: no violation."), "{text}");
    assert!(text.contains("| in the replay of a save"), "{text}");
    assert_eq!(text, cuts("1"));
}

#[test]
fn the_demo_prints_its_table() {
    let text = printed(&["demo", "--model-ops", "500", "--rtl-ops", "100", "--typed-ops", "300", "--table-ops", "200"]);
    for expected in [
        "recovery",
        "\nTyped Rust, accounts in a PBTreeMap: 300 transfers, undo",
        "\nC program for PMDK: left out; ",
        "| undo ",
        "| redo ",
        "| checkpoint ",
        "| shadow ",
        " recovery |",
        "All times are simulated",
    ] {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    assert_eq!(text.matches("\n  found          exactly the first ").count(), 3, "{text}");
}

/// The number that stands behind a text.
fn number(text: &str, before: &str) -> u64 {
    let digits = text.split(before).nth(1).map(|rest| rest.split(|c: char| !c.is_ascii_digit() && c != ' ').next());
    digits
        .flatten()
        .and_then(|digits| digits.replace(' ', "").parse().ok())
        .unwrap_or_else(|| panic!("{before}: {text}"))
}

#[test]
fn the_demo_cuts_a_program_of_typed_objects_whatever_the_seed() {
    for seed in ["2", "3", "4", "5"] {
        let nothing_else = ["demo", "--model-ops", "20", "--rtl-ops", "0", "--table-ops", "0"];
        let text = printed(&[&nothing_else[..], &["--typed-ops", "200", "--seed", seed]].concat());
        let (_, typed) = text.split_once("Typed Rust").expect("it is shown");
        let (_, counts) = typed.split_once("at that time   ").expect("it was cut");
        let acknowledged = number(counts, "begun, ");
        let kept = number(counts, "exactly the first ");
        assert!((acknowledged..=acknowledged + 1).contains(&kept) && kept <= 200, "{typed}");
        assert!(number(counts, "posted         ") >= 2 * acknowledged, "{typed}");
    }
}

#[test]
fn the_demo_cuts_an_unmodified_program_for_pmdk() {
    let Some(program) = nearpm_pmemobj_programs::Program::compile("power_cut") else { return };
    let library = nearpm_pmemobj_programs::library();
    let library = library.parent().expect("it lies in a folder").to_str().expect("a path");
    let path = program.binary().to_str().expect("a path");
    let small = ["demo", "--model-ops", "20", "--rtl-ops", "0", "--typed-ops", "0", "--table-ops", "0"];
    let run = |program, library| {
        nearpm(&[&small[..], &["--pmdk-ops", "60", "--pmdk-program", program, "--pmdk-library", library]].concat())
    };
    let output = run(path, library);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, shown) = text.split_once("\nC program for PMDK, transactions").expect("it is shown");
    assert!(number(shown, " of the card, ") > 60, "commands are posted: {shown}");
    assert!(number(shown, "at cycle ") <= number(shown, "without a cut  "), "{shown}");
    assert!(number(shown, "at that time   ") <= 60 && shown.contains("nothing acknowledged lost"), "{shown}");
    // A program that is none, and a library without a card.
    assert!(!run("/bin/false", library).status.success());
    assert!(!run(path, "/no/such/folder").status.success());
}

#[test]
fn a_program_for_pmdk_that_hangs_is_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("hangs");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 1000\n").expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it may be run");
    let (program, library) = (program.to_str().expect("a path"), folder.path().to_str().expect("a path"));
    let small = ["demo", "--model-ops", "20", "--rtl-ops", "0", "--typed-ops", "0", "--table-ops", "0"];
    let options = ["--pmdk-timeout", "1", "--pmdk-program", program, "--pmdk-library", library];
    let begun = Instant::now();
    let output = nearpm(&[&small[..], &options].concat());
    assert!(!output.status.success() && begun.elapsed() < Duration::from_secs(500), "{:?}", begun.elapsed());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("hangs prepare has not ended within 1s"), "{said}");
}

#[test]
fn a_card_says_what_it_is() {
    let text = printed(&["card", "info"]);
    assert!(text.contains("FIRMWARE_CRC"), "{text}");
    assert!(text.contains(&format!("{:#010x}", nearpm_firmware::standard().crc())), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    for (arguments, reason) in [
        (&["run", "--power-cut", "later"][..], "use never, op:K, cycle:K, access:K or random"),
        (&["run", "--mechanism", "hope"], "use undo, redo, checkpoint or shadow"),
        (&["run", "--card", "none", "--power-cut", "cycle:7"], "without a card there are no cycles"),
        (&["run", "--card", "none", "--power-cut", "op:1,op:2"], "there is one cut"),
        (&["cuts", "--threads", "0"], "0 is not in 1..=64"),
        (&["run", "--epoch", "0"], "0 is not in 1.."),
    ] {
        let output = nearpm(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(reason), "{arguments:?}: {error}");
    }
}
