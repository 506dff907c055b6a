//! The same kernels on the device and on the interpreter: what they leave is the same.

use std::rc::Rc;

use anyhow::Result;
use nearpm_gpu::{Device, Interpreted};

use super::Bench;
use crate::report::Report;
use crate::same::{PROGRAMS, programs};

const GROUP: &str = "The same kernels on the interpreter";

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let (mut equal, mut compared) = (0, 0);
    for program in programs() {
        let interpreter: Rc<dyn Device> = Rc::new(Interpreted::new(64 << 20));
        compared += 1;
        let same = |expected, found| program.compare(&expected, &found);
        match program.left_on(&interpreter).and_then(|expected| same(expected, program.left_on(&bench.device)?)) {
            Ok(()) => equal += 1,
            // The others are looked at, too.
            Err(error) => report.failures.push(format!("{GROUP}: {}: {error:#}", program.name)),
        }
    }
    report.value(GROUP, "programs", f64::from(compared), "", None);
    let aim = format!("= {PROGRAMS}");
    report.value(GROUP, "programs that leave the same persistent memory, bit by bit", f64::from(equal), "", Some(&aim));
    Ok(())
}
