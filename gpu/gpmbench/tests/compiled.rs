//! A second oracle: the same programs with their kernels compiled by g++ for the processor leave the same persistent memory as on the interpreter, bit by
//! bit.

use std::path::Path;
use std::rc::Rc;

use nearpm_gpmbench::same::programs;
use nearpm_gpu::{Compiled, Device, Interpreted};

/// All in one: a compiler takes its time for each module.
#[test]
fn every_program_leaves_what_it_leaves_on_the_interpreter() {
    // One device, so that each module is compiled once.
    let sources = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels"));
    let compiled: Rc<dyn Device> = Rc::new(Compiled::new(sources));
    // What is not the same by a bit is held against double precision elsewhere.
    for program in programs().into_iter().filter(|program| program.within.is_none()) {
        let interpreter: Rc<dyn Device> = Rc::new(Interpreted::new(64 << 20));
        let [expected, found] = [interpreter, compiled.clone()]
            .map(|device| program.left_on(&device).unwrap_or_else(|error| panic!("{}: {error:#}", program.name)));
        let apart = program.compare(&expected, &found).unwrap_or_else(|error| panic!("{error:#}"));
        eprintln!("{}: {apart}", program.name);
    }
}

#[test]
fn programs_that_leave_something_else_are_told_apart() {
    for program in programs() {
        let one = vec![("part".to_owned(), 1.0f32.to_le_bytes().to_vec())];
        let other = vec![("part".to_owned(), 1.01f32.to_le_bytes().to_vec())];
        assert!(program.compare(&one, &one).is_ok_and(|apart| apart == 0.0));
        assert!(program.compare(&one, &other).is_err() && program.compare(&one, &Vec::new()).is_err());
        let renamed = vec![("other".to_owned(), one[0].1.clone())];
        assert!(program.compare(&one, &renamed).is_err());
        let close = vec![("part".to_owned(), 1.0001f32.to_le_bytes().to_vec())];
        assert_eq!(program.compare(&one, &close).is_ok(), program.within.is_some());
    }
}
