//! A second oracle: the same programs with their kernels compiled by g++ for the processor leave
//! the same persistent memory as on the interpreter, bit by bit.

use std::path::Path;
use std::rc::Rc;

use nearpm_gpmbench::same::programs;
use nearpm_gpu::{Compiled, Device, Interpreted, Schedule};

/// How many orders of threads a program runs in besides the interpreter's usual one.
const ORDERS: u64 = 10;

/// All in one: a compiler takes its time for each module. A card runs threads in an order of its
/// own: what is left depends on none.
#[test]
fn every_program_leaves_what_it_leaves_on_the_interpreter_in_any_order_of_threads() {
    // One device, so that each module is compiled once.
    let sources = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels"));
    let compiled: Rc<dyn Device> = Rc::new(Compiled::new(sources));
    for program in programs() {
        let left = |device: &Rc<dyn Device>| {
            program.left_on(device).unwrap_or_else(|error| panic!("{}: {error:#}", program.name))
        };
        let expected = left(&compiled);
        for order in 0..=ORDERS {
            let interpreter = Interpreted::new(64 << 20);
            if order > 0 {
                interpreter.set_schedule(Schedule::Seeded(order));
            }
            let found = left(&(Rc::new(interpreter) as Rc<dyn Device>));
            program.compare(&expected, &found).unwrap_or_else(|error| panic!("{}: {error:#}", program.name));
        }
    }
}

#[test]
fn programs_that_leave_something_else_are_told_apart() {
    for program in programs() {
        let one = vec![("part".to_owned(), vec![1, 2, 3])];
        assert!(program.compare(&one, &one).is_ok());
        for other in [vec![("part".to_owned(), vec![1, 2, 4])], vec![("part".to_owned(), vec![1, 2])], Vec::new()] {
            assert!(program.compare(&one, &other).is_err());
        }
        let renamed = vec![("other".to_owned(), one[0].1.clone())];
        assert!(program.compare(&one, &renamed).is_err());
    }
}
