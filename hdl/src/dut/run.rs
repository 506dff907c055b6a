//! Runs one test on both back ends.

use super::{Dut, ModelDut, Ports, VerilatedDut};
use rust_hdl::prelude::*;
use std::any::Any;
use std::path::PathBuf;

/// rust-hdl structs hold 512-bit values as arrays of `bool` and pass them by value, so that a unit
/// of some size needs far more stack than a thread has. Address space only; what is unused costs
/// nothing.
const STACK_BYTES: usize = 1 << 30;

/// Runs `test` on the unit's default value, first on rust-hdl's simulator, then on its Verilog.
///
/// With the environment variable `NEARPM_TRACE` set to a folder, the Verilog run writes a VCD file
/// there, named after the test.
///
/// # Panics
/// When the test panics, with the back end's name in front; or when the unit cannot be built.
pub fn on_both_back_ends<U: Block + Ports + Default>(test: impl Fn(&mut dyn Dut) + Sync) {
    on_both_back_ends_with(|| Box::new(U::default()), test);
}

/// As [`on_both_back_ends`], for units that are made with parameters.
pub fn on_both_back_ends_with<U: Block + Ports>(make: impl Fn() -> Box<U> + Sync, test: impl Fn(&mut dyn Dut) + Sync) {
    on_big_stack("rust-hdl", || test(&mut ModelDut::new(make())));
    let trace = trace_file();
    on_big_stack("verilator", || {
        let verilog = verilog_of(make());
        test(&mut VerilatedDut::new(verilog, trace.as_deref()));
    });
}

/// The Verilog of a unit that was just made, after rust-hdl's checks; the top module is `top`.
///
/// # Panics
/// When a check fails, or where a kernel takes bits of a field of a struct: the Verilog that rust-hdl writes for that, bits of bits, is no Verilog, and
/// tools that accept it do not agree on what it means (Verilator: bits of the field; yosys: the low bits of the whole).
pub fn verilog_of<U: Block>(mut unit: Box<U>) -> String {
    unit.connect_all();
    if let Err(error) = check_all(unit.as_ref()) {
        panic!("rust-hdl's checks of the unit fail: {error:?}");
    }
    let verilog = generate_verilog_unchecked(unit.as_ref());
    if let Some(line) = verilog.lines().find(|line| line.contains(")][(")) {
        panic!("bits of bits: {}", line.trim());
    }
    verilog
}

fn trace_file() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("NEARPM_TRACE")?);
    let test = std::thread::current().name().unwrap_or("main").replace("::", "-");
    Some(folder.join(test).with_extension("vcd"))
}

fn on_big_stack(back_end: &str, work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(back_end.into()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, work).expect("the system has a thread left");
        if let Err(payload) = thread.join() {
            panic!("on the {back_end} back end: {}", message(payload.as_ref()));
        }
    });
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}
