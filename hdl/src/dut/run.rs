//! Runs one test on both back ends.

use super::{Dut, ModelDut, Ports, VerilatedDut};
use crate::MAKER;
use nearpm_verilate::{Maker, kept};
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
pub fn on_both_back_ends<U: Block + Ports + Default + 'static>(test: impl Fn(&mut dyn Dut) + Sync) {
    on_both(&default_model::<U>, &default_verilog::<U>, &test);
}

/// As [`on_both_back_ends`], for units that are made with parameters.
pub fn on_both_back_ends_with<U: Block + Ports + 'static>(
    make: impl Fn() -> Box<U> + Sync,
    test: impl Fn(&mut dyn Dut) + Sync,
) {
    on_both(&|| model(make()), &|| verilog_of(make()), &test);
}

/// Runs `test` on the unit's default value on rust-hdl's simulator alone: for tests whose other
/// half runs on Verilog that has faults planted.
///
/// # Panics
/// As [`on_both_back_ends`].
pub fn on_rust_hdl<U: Block + Ports + Default + 'static>(test: impl Fn(&mut dyn Dut) + Sync) {
    on_big_stack("rust-hdl", || test(&mut default_model::<U>()));
}

/// Runs `test` on the Verilog of the unit's default value alone: for tests that try less on
/// rust-hdl's simulator, which takes many times as long.
///
/// # Panics
/// As [`on_both_back_ends`].
pub fn on_verilog<U: Block + Ports + Default + 'static>(test: impl Fn(&mut dyn Dut) + Sync) {
    let trace = trace_file();
    on_big_stack("verilator", || test(&mut VerilatedDut::new(default_verilog::<U>(), trace.as_deref())));
}

/// Once for each unit and not for each test of it: what drops a unit is long, and would stand in
/// each test.
#[inline(never)]
fn model<U: Block + Ports + 'static>(unit: Box<U>) -> ModelDut {
    ModelDut::new(unit)
}

#[inline(never)]
fn default_model<U: Block + Ports + Default + 'static>() -> ModelDut {
    ModelDut::new(Box::<U>::default())
}

/// The Verilog of a unit's default value, as [`verilog_of`] gives it. It is made once, and found
/// beside the models from then on: of a unit of this crate by all programs, of one that a program
/// defines itself by that program.
///
/// # Panics
/// As [`verilog_of`], or when the cache of the models cannot be used.
#[inline(never)]
pub fn default_verilog<U: Block + Default>() -> String {
    let make = || on_big_stack("verilator", || verilog_of(Box::<U>::default()));
    let unit = std::any::type_name::<U>();
    let maker = if is_ours(unit) { MAKER } else { Maker::Program };
    let [verilog] =
        kept(maker, &format!("unit {unit}"), ["unit.v"], || [make()]).unwrap_or_else(|error| panic!("{error}"));
    verilog
}

/// Whether this crate and the library of the language define all that the name of a type names.
fn is_ours(name: &str) -> bool {
    let paths = name.split(|c: char| !c.is_alphanumeric() && !"_:".contains(c)).filter(|path| path.contains("::"));
    let mut crates = paths.map(|path| path.split("::").next().unwrap_or_default()).peekable();
    crates.peek().is_some() && crates.all(|name| name == env!("CARGO_CRATE_NAME") || name.starts_with("rust_hdl"))
}

fn on_both(
    model: &(dyn Fn() -> ModelDut + Sync),
    verilog: &(dyn Fn() -> String + Sync),
    test: &(dyn Fn(&mut dyn Dut) + Sync),
) {
    on_big_stack("rust-hdl", || test(&mut model()));
    let trace = trace_file();
    on_big_stack("verilator", || test(&mut VerilatedDut::new(verilog(), trace.as_deref())));
}

/// The Verilog of a unit that was just made, after rust-hdl's checks; the top module is `top`.
///
/// # Panics
/// When a check fails, or where a kernel takes bits of a field of a struct: the Verilog that
/// rust-hdl writes for that, bits of bits, is no Verilog, and tools that accept it do not agree on
/// what it means (Verilator: bits of the field; yosys: the low bits of the whole).
#[inline(never)]
pub fn verilog_of<U: Block>(mut unit: Box<U>) -> String {
    let unit: &mut dyn Block = unit.as_mut();
    unit.connect_all();
    if let Err(error) = check_all(unit) {
        panic!("rust-hdl's checks of the unit fail: {error:?}");
    }
    let verilog = generate(unit);
    if let Some(line) = verilog.lines().find(|line| line.contains(")][(")) {
        panic!("bits of bits: {}", line.trim());
    }
    verilog
}

/// What rust-hdl's `generate_verilog_unchecked` does, which is compiled anew for each unit.
fn generate(unit: &dyn Block) -> String {
    let mut defines = ModuleDefines::default();
    unit.accept("top", &mut defines);
    defines.defines()
}

fn trace_file() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("NEARPM_TRACE")?);
    let test = std::thread::current().name().unwrap_or("main").replace("::", "-");
    Some(folder.join(test).with_extension("vcd"))
}

fn on_big_stack<T: Send>(back_end: &str, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(back_end.into()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, work).expect("the system has a thread left");
        let joined = thread.join();
        joined.unwrap_or_else(|payload| panic!("on the {back_end} back end: {}", message(payload.as_ref())))
    })
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    #[test]
    fn a_unit_of_a_test_is_not_of_this_crate() {
        assert!(is_ours("nearpm_hdl::units::front::Front"));
        assert!(is_ours("nearpm_hdl::cells::fifo::Fifo<rust_hdl_core::bits::Bits<8>, 4>"));
        assert!(!is_ours("cells::Pair<8>"));
        assert!(!is_ours("nearpm_hdl::cells::fifo::Fifo<cells::Pair, 4>"));
        assert!(!is_ours("Pair"));
    }
}
