//! All litmus files on the model: the set of states is exactly the expected one, and each rule of
//! the model is needed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nearpm_ppo::explore::explore;
use nearpm_ppo::litmus::{Test, parse};
use nearpm_ppo::rules::{Rule, Rules};
use nearpm_ppo::verdict::{differences, expected};

/// Far beyond the largest test: more is a mistake in the model.
const BOUND: usize = 1_000_000;

/// All tests by the names of their files.
fn tests() -> BTreeMap<String, Test> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let test = parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (name, test)
    };
    std::fs::read_dir(folder).expect("the folder of litmus files").map(read).collect()
}

#[test]
fn every_test_reaches_exactly_its_allowed_states() {
    let (mut states, mut cuts, mut outcomes, mut wrong) = (0, 0, 0, Vec::new());
    let tests = tests();
    println!("{:<48} {:>8} {:>8} {:>8}", "test", "states", "cuts", "outcomes");
    for (name, test) in &tests {
        let found = explore(test, Rules::all(), BOUND).expect("a test is small");
        println!("{name:<48} {:>8} {:>8} {:>8}", found.states, found.crash_states, found.outcomes.len());
        states += found.states;
        cuts += found.crash_states;
        outcomes += found.outcomes.len();
        wrong.extend(differences(test, &found).into_iter().map(|line| format!("{name}: {line}")));
    }
    println!("{} tests, {states} states, power failures in {cuts} of them, {outcomes} outcomes", tests.len());
    let (number, violations) = (tests.len(), wrong.len());
    println!(r#"{{"counts":{{"tests":{number},"states":{states},"outcomes":{outcomes},"violations":{violations}}}}}"#);
    assert_eq!(wrong, Vec::<String>::new());
    assert!(tests.len() >= 60, "{} tests", tests.len());
}

#[test]
fn a_wrong_expectation_is_found_in_both_directions() {
    let tests = tests();
    let test = &tests["i1-undo-log-then-store"];
    let found = explore(test, Rules::all(), BOUND).expect("a test is small");
    let mut less = test.clone();
    let dropped = less.allowed.pop().expect("an allowed state");
    assert_eq!(differences(&less, &found), ["reached and not allowed: x=2 L=1"], "without `{}`", dropped.name);
    let mut more = test.clone();
    more.allowed[0].states.push(vec![Some("7".into()), Some("-".into())]);
    assert_eq!(differences(&more, &found), ["allowed and not reached: x=7 L=-"]);
}

#[test]
fn without_a_rule_the_tests_that_name_it_fail() {
    let tests = tests();
    let mut by_rule: BTreeMap<Rule, BTreeSet<&str>> = BTreeMap::new();
    for (name, test) in &tests {
        for rule in &test.needs {
            let found = explore(test, Rules::without(*rule), BOUND).expect("a test is small");
            assert!(!differences(test, &found).is_empty(), "{name} does not need `{}`", rule.name());
            by_rule.entry(*rule).or_default().insert(name);
        }
    }
    for rule in Rule::ALL {
        let names = by_rule.get(rule).unwrap_or_else(|| panic!("no test needs `{}`", rule.name()));
        println!("{:<30} {}", rule.name(), names.iter().copied().collect::<Vec<_>>().join(" "));
    }
}

/// What is forbidden is a real danger: some dropped rule reaches it.
#[test]
fn a_dropped_rule_reaches_what_is_forbidden() {
    let tests = tests();
    let mut idle = Vec::new();
    for (name, test) in tests.iter().filter(|(_, t)| !t.forbidden.is_empty()) {
        let reached = test.needs.iter().any(|rule| {
            let found = explore(test, Rules::without(*rule), BOUND).expect("a test is small");
            let differences = differences(test, &found);
            found.stuck || differences.iter().any(|line| test.forbidden.iter().any(|f| line.contains(&f.reason)))
        });
        if !reached {
            idle.push(name);
        }
    }
    // Here no single rule stands between the program and the forbidden state: several protect it at
    // a time.
    assert_eq!(idle, ["c5-another-thread-goes-on"], "tests whose forbidden states no dropped rule reaches");
}

#[test]
fn a_search_has_a_bound() {
    let tests = tests();
    let error = explore(&tests["i4-two-cards"], Rules::all(), 100).expect_err("it has more than 100 states");
    assert_eq!(error.to_string(), "more than 100 states: the test is too large to be searched");
}

#[test]
fn a_search_is_the_same_each_time() {
    let tests = tests();
    let once = || {
        let found = explore(&tests["i4-two-cards"], Rules::all(), BOUND).expect("a test is small");
        (found.states, found.steps, found.crash_states, found.outcomes)
    };
    assert_eq!(once(), once());
    assert_eq!(once().3, expected(&tests["i4-two-cards"]));
}

/// The page that explains the model names every rule with its source, and every family of tests
/// with its size.
#[test]
fn the_page_lists_every_rule_and_every_family() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ppo.md")).expect("docs/ppo.md");
    for rule in Rule::ALL {
        let row = format!("| `{}` | {} | {} |", rule.name(), rule.text(), rule.source());
        assert!(page.contains(&row), "docs/ppo.md lacks the row\n{row}");
    }
    let mut families: BTreeMap<String, usize> = BTreeMap::new();
    tests().into_values().for_each(|test| *families.entry(test.family).or_default() += 1);
    for (family, count) in &families {
        assert!(page.contains(&format!("| {family} | {count} |")), "docs/ppo.md lacks `| {family} | {count} |`");
    }
}
