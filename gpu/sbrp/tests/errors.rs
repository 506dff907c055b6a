//! What is wrong with a litmus file is said with its line, and nothing panics.

use nearpm_sbrp::litmus::parse;
use nearpm_sbrp::random::trial;

const GOOD: &str = "\
title: a test
family: tests
source: none
memory:
  pm x=0 | y=0
  gpu f=0
T0@block0:
  store x 1; pRel_block f 1
T1@block0:
  pAcq_block f r
  if r=1: store y 1
observe: x y r
allowed:
  one: x=0 y=0 r=-
";

/// The error of the good test with one part replaced.
fn error(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    parse(&GOOD.replace(from, to)).expect_err(to).to_string()
}

#[test]
fn the_good_test_is_good() {
    parse(GOOD).expect("a test");
}

#[test]
fn an_unbounded_test_is_refused_with_its_line() {
    let said = error("pAcq_block f r\n", "pAcq_block f r\n  while r=0\n");
    assert!(said.starts_with("line 11: a loop has no bound"), "{said}");
    let said = error("if r=1: store y 1", "await f 7");
    assert!(said.starts_with("line 11: nobody stores 7 to `f`: this waits for ever"), "{said}");
    let said = error("  store x 1; pRel_block f 1", &"  store x 1\n".repeat(30));
    assert!(said.starts_with("line 37: the test is too large here"), "{said}");
}

#[test]
fn errors_name_their_line() {
    for (from, to, wanted) in [
        ("pm x=0", "ram x=0", "line 5: memory is `pm` or `gpu`"),
        ("pm x=0", "pm x=300", "line 5: `300` is no value"),
        ("gpu f=0", "gpu x=0", "line 6: `x` is declared twice"),
        ("T0@block0", "T0@block9", "line 7: a block is block0 to block7"),
        ("T0@block0", "T0@block0 launch 9", "line 7: a launch is a number"),
        ("store x 1", "store q 1", "line 8: no word is called `q`"),
        ("pRel_block f 1", "pRel_sys f 1", "line 8: `pRel_sys f 1` is no instruction"),
        ("if r=1: store", "if q=1: store", "line 11: the condition names no register"),
        ("if r=1: store y 1", "if r=1: bar", "line 11: all threads of a block come to its barrier"),
        ("store x 1; pRel", "bar; pRel", "line 8: `T1` does not come to this barrier"),
        ("observe: x y r", "observe: x y f", "line 12: `f` is volatile"),
        ("observe: x y r", "observe: x y q", "line 12: `q` cannot be observed"),
        ("x=0 y=0 r=-", "x=0 y=0", "line 14: `r` has no value here"),
        ("source: none", "source: none\nneeds: magic", "line 4: no rule is called `magic`"),
        ("allowed:", "allowed magic:", "line 13: no section is called `allowed magic`"),
    ] {
        let said = error(from, to);
        assert!(said.starts_with(wanted), "{to}: {said}");
    }
}

#[test]
fn broken_texts_are_refused_or_read_and_never_panic() {
    let text = trial(3).text;
    for text in [text.as_str(), GOOD] {
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let _ = parse(&text[..cut]);
            let _ = parse(&format!("{}{}", &text[..cut], &text[(cut + 1).min(text.len())..]));
        }
    }
}
