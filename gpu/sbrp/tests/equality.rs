//! The two forms of each model allow the same outcomes: a sample of the campaign
//! (`nearpm sbrp campaign`).

use nearpm_sbrp::campaign::{Record, compare, run};
use nearpm_sbrp::random::trial;

#[test]
fn both_forms_agree_on_random_programs() {
    let mut outcomes = 0;
    for seed in 1_000_000..1_002_000 {
        outcomes += compare(seed, &trial(seed)).unwrap_or_else(|error| panic!("{error}")).0;
    }
    assert!(outcomes > 15_000, "{outcomes} outcomes: the programs do nothing");
}

#[test]
fn a_campaign_goes_on_where_its_record_ends() {
    let folder = std::env::temp_dir().join(format!("nearpm-sbrp-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("record.txt");
    let first = run(&path, 40, |_| {}).expect("equal");
    assert_eq!(Record::read(&path).expect("a record"), first);
    let both = run(&path, 100, |_| {}).expect("equal");
    let at_once = run(&folder.join("other.txt"), 100, |_| {}).expect("equal");
    assert_eq!(both, at_once);
    std::fs::write(&path, "programs = 1\nstates = many\n").expect("written");
    let said = format!("{:#}", Record::read(&path).expect_err("no record"));
    assert!(said.contains("line 2: `many` is no number"), "{said}");
    std::fs::remove_dir_all(&folder).expect("removed");
}
