//! The same kernels on the device and on the interpreter: what they leave is the same.

use std::rc::Rc;

use anyhow::Result;
use nearpm_gpu::{Device, Interpreted};

use super::Bench;
use crate::report::Report;
use crate::same::programs;

const GROUP: &str = "The same kernels on the interpreter";

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let (mut equal, mut compared) = (0, 0);
    for program in programs() {
        let interpreter: Rc<dyn Device> = Rc::new(Interpreted::new(64 << 20));
        compared += 1;
        let most = match program.compare(&program.left_on(&interpreter)?, &program.left_on(&bench.device)?) {
            Ok(most) => most,
            // The others are looked at, too.
            Err(error) => {
                report.failures.push(format!("{GROUP}: {error:#}"));
                continue;
            }
        };
        equal += u32::from(most == 0.0);
        if let Some(within) = program.within {
            let name = format!("{}: the farthest of its numbers, of the largest", program.name);
            report.value(GROUP, name, f64::from(most), "", Some(&format!("<= {within}")));
        }
    }
    report.value(GROUP, "programs", f64::from(compared), "", None);
    report.value(GROUP, "programs that leave the same persistent memory, bit by bit", f64::from(equal), "", None);
    Ok(())
}
