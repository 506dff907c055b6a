//! What is simulated in place of the hardware's picks is proved to be the same: outputs and next
//! state, for every state and input.

use anyhow::Result;
use nearpm_hdl::simulation::{Replaced, replaced_modules};
use nearpm_hdl::{MemoryPorts, Parameters, for_simulation, generated};
use nearpm_proofs::tools::Tools;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Picks of the card.
const PICKS: usize = 17;

/// The tools, or nothing where they may be missing.
fn tools() -> Option<Tools> {
    match Tools::find() {
        Ok(tools) => Some(tools),
        Err(error) if std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none() => {
            eprintln!("not proved: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The pair as `gold` and `gate` followed by a number, for the same text of which one proof does.
fn pairs() -> BTreeMap<String, String> {
    let card = generated(&Parameters { memory_ports: MemoryPorts::Two, ..Parameters::default() });
    let named =
        |text: &str, from: &str, to: &str| text.replacen(&format!("module {from}("), &format!("module {to}("), 1);
    let pair = |Replaced { name, gates, behaviour }: Replaced| {
        let gates = gates.split("endmodule").next().expect("there is a first part").to_owned() + "endmodule\n";
        let behaviour = behaviour.split("endmodule").next().expect("there is a first part").to_owned() + "endmodule\n";
        (named(&gates, &name, "gold"), named(&behaviour, &name, "gate"))
    };
    replaced_modules(&card.verilog).into_iter().map(pair).collect()
}

/// Asks yosys whether each pair is equivalent, its registers taken for the same.
fn prove(tools: &Tools, folder: &str, pairs: &BTreeMap<String, String>) -> Result<()> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&folder)?;
    let mut script = String::new();
    for (number, (gates, behaviour)) in pairs.iter().enumerate() {
        std::fs::write(folder.join(format!("{number}.v")), format!("{gates}{behaviour}"))?;
        script += &format!(
            "design -reset; read_verilog {number}.v; proc; opt_clean; equiv_make gold gate equiv; hierarchy -top equiv; \
             opt -full; equiv_simple; equiv_induct; equiv_status -assert; "
        );
    }
    tools.yosys(&folder, &script)
}

#[test]
fn every_pick_of_the_card_is_replaced_and_nothing_else() {
    let card = generated(&Parameters { memory_ports: MemoryPorts::Two, ..Parameters::default() });
    assert_eq!(replaced_modules(&card.verilog).len(), PICKS);
    let simulated = for_simulation(&card.verilog);
    assert!(!simulated.contains("low_a0"), "a pick stands as gates");
    let mut undone = simulated;
    for Replaced { gates, behaviour, .. } in replaced_modules(&card.verilog) {
        undone = undone.replacen(&behaviour, &gates, 1);
    }
    assert!(undone == card.verilog, "something else has changed");
}

#[test]
fn what_is_simulated_for_a_pick_is_its_equivalent() {
    let Some(tools) = tools() else { return };
    let pairs = pairs();
    prove(&tools, "picks", &pairs).unwrap_or_else(|error| panic!("{error}"));
    println!("{} shapes of picks are proved", pairs.len());
}

#[test]
fn a_pick_that_is_another_one_is_refuted() {
    let Some(tools) = tools() else { return };
    for (right, wrong) in
        [("(|above) ? above", "(|above) ? requests"), ("~(one | (one", "(one | (one"), ("|(one", "&(one")]
    {
        let broken: BTreeMap<_, _> = pairs()
            .into_iter()
            .filter(|(_, behaviour)| behaviour.contains(right))
            .take(1)
            .map(|(gates, behaviour)| (gates, behaviour.replace(right, wrong)))
            .collect();
        assert_eq!(broken.len(), 1, "no pick has `{right}`");
        let refuted = prove(&tools, "broken-picks", &broken).expect_err(wrong).to_string();
        assert!(refuted.contains("unproven $equiv cells"), "{refuted}");
    }
}
