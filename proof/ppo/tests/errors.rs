//! What is wrong with a litmus file is said with its line.

use nearpm_ppo::litmus::parse;

const GOOD: &str = "\
title: a test
family: tests
source: none
at: replay
memory:
  ndp0 x=1 | y=2
  ndp0 managed c=0
  ndp1 z=3
transactions:
  T1 thread 0 on ndp0
P0@cpu:
  post P1; sfence
  store x 2
P1@ndp0 T1:
  log x -> L
observe: x L
allowed:
  all: x=1|2 L=-|1
";

/// The error of the good test with one part replaced.
fn error(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    parse(&GOOD.replace(from, to)).expect_err(to).to_string()
}

#[test]
fn the_good_test_is_good() {
    let test = parse(GOOD).expect("it is good");
    assert_eq!((test.devices, test.allowed[0].states.len()), (2, 4));
    // Comments and blank lines do not matter.
    parse(&GOOD.replace('\n', " # a comment\n\n")).expect("it is good");
}

#[test]
fn errors_name_the_line_and_what_is_wrong() {
    let cases = [
        ("title: a test\n", "", "line 17: the section `title` is missing"),
        ("title: a test", "titel: a test", "line 1: no section is called `titel`"),
        ("title: a test", "a test", "line 1: `a test` is no section: a section is `key: value`"),
        ("title: a test", "  indented", "line 1: an indented line before the first section"),
        ("family: tests", "title: again", "line 2: a second section `title`"),
        ("family: tests", "family: tests\n  more", "line 3: `family` has one value and no body"),
        ("memory:", "memory: x=1", "line 5: what belongs to `memory` stands indented below it"),
        ("at: replay", "at: noon", "line 4: `noon` is no moment: failure, replay or recovery"),
        ("at: replay", "model only:", "line 4: `model only` says why no card runs the test"),
        ("at: replay", "needs: luck", "line 4: no rule is called `luck`"),
        ("at: replay", "fifo: 0", "line 4: `fifo` is a number from 1"),
        ("at: replay", "save: whole", "line 4: `save` is `may tear` or absent"),
        ("at: replay", "image: q=1", "line 4: no word is called `q`"),
        ("ndp0 x=1", "ndp9 x=1", "line 6: `ndp9` is no card: ndp0 to ndp3"),
        ("x=1 |", "x |", "line 6: `x` is no assignment `name=value`"),
        ("x=1 |", "x=900 |", "line 6: `900` is no value: a word holds 0 to 200"),
        ("y=2", "x=2", "line 6: `x` is declared twice"),
        ("y=2", "1y=2", "line 6: `1y` is no name"),
        ("x=1 |", "x=1 | |", "line 6: a line of memory has words"),
        ("T1 thread 0 on ndp0", "T1 on ndp0", "line 10: a transaction is `NAME thread NUMBER on ndp0 ...`"),
        ("P1@ndp0 T1:", "P1@ndp1 T1:", "line 14: T1 does not take place on ndp1"),
        ("P1@ndp0 T1:", "P1@ndp0 T2:", "line 14: no transaction is called `T2`"),
        ("P1@ndp0 T1:", "P1@ndp0:", "line 14: a procedure is `NAME@ndpN TRANSACTION`, and `fails` where its log fails"),
        ("log x -> L", "log z -> L", "line 15: `z` does not lie on ndp0"),
        ("log x -> L", "wait; sync", "line 14: `sync` is the first step: the card parks the whole command"),
        ("log x -> L", "jump", "line 15: `jump` is no step of a procedure"),
        ("log x -> L", "copy x -> y c", "line 15: a copy has as many sources as destinations"),
        ("log x -> L", "", "line 14: a procedure has steps"),
        ("store x 2", "store c 2", "line 13: `c` is managed by the card, the processor may not touch it"),
        ("store x 2", "jump x", "line 13: `jump x` is no instruction of the processor"),
        ("store x 2", "post P2", "line 13: no procedure is called `P2`"),
        ("store x 2", "post P1", "line 18: `P1` is posted 2 times and not once"),
        ("store x 2", "await A", "line 18: nobody sets the mark `A`"),
        ("store x 2", "readback ndp3", "line 18: nothing lies on ndp3"),
        ("observe: x L", "observe: x M", "line 16: `M` cannot be observed: it is unknown"),
        ("observe: x L", "observe:", "line 16: nothing is observed"),
        ("all: x=1|2 L=-|1", "all: x=1", "line 18: `L` has no value here, and an allowed state is complete"),
        ("all: x=1|2 L=-|1", "all: x=1 x=2 L=1", "line 18: `x` has two values; write `x=1|2`"),
        ("all: x=1|2 L=-|1", "x=1", "line 18: a state has a name: `name: x=1`"),
        ("all: x=1|2 L=-|1", "all: x=1|1 L=-", "line 18: `all` allows a state a second time"),
    ];
    for (from, to, message) in cases {
        assert_eq!(error(from, to), message, "{from} -> {to}");
    }
}

#[test]
fn a_command_does_not_write_where_memory_refuses_it() {
    let refused = GOOD.replace("x=1 | y=2", "x=1\n  ndp0 refused y=2");
    parse(&refused).expect("only the processor stores there");
    let written = refused.replace("log x -> L", "log x -> L; copy x -> y");
    let error = parse(&written).expect_err("it writes there").to_string();
    assert_eq!(error, "line 16: a command that writes where memory refuses it is not of this model");
}

#[test]
fn what_is_forbidden_has_a_reason_and_is_not_allowed() {
    let with = |line: &str| parse(&format!("{GOOD}forbidden:\n  {line}\n")).expect_err(line).to_string();
    assert_eq!(with("bad: x=2"), "line 20: what is forbidden has a reason: `name: x=1 -- why`");
    assert_eq!(with("bad: x=2 -- no"), "line 20: `all` allows what `bad` forbids");
}

#[test]
fn a_file_that_is_cut_off_or_garbled_is_an_error_and_no_panic() {
    for end in 0..GOOD.len() - 4 {
        // A cut inside the last values may leave a good file; what matters is that nothing panics.
        let _ = parse(&GOOD[..end]);
    }
    for at in 0..GOOD.len() {
        for byte in [b'=', b':', b' ', b'|', b'@', b'\n', b'9'] {
            let mut text = GOOD.as_bytes().to_vec();
            text[at] = byte;
            let _ = parse(std::str::from_utf8(&text).expect("ASCII"));
        }
    }
}
