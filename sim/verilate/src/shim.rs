//! The C functions between Rust and the C++ class that Verilator makes.

use crate::error::IoContext;
use crate::{Error, Source, coverage, idle};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Everything of the shim that does not depend on the ports. `VM_TRACE` is set by the build.
pub(crate) const HEAD: &str = r#"#include "Vtop.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif
#include <memory>
#define EXPORT extern "C" __attribute__((visibility("default")))
#ifdef CLOCK_TRIGGER
#include "Vtop___024root.h"
void Vtop___024root___eval(Vtop___024root*);
void Vtop___024root___eval_nba(Vtop___024root*);
// Inputs that have settled need no look again before the edge, and what follows from the edge alone needs
// none after it, so the registers are told of the edge directly and the clock is never seen high.
#define SETTLE(m) Vtop___024root___eval(m->top->rootp);
#define EDGE(m, clock) { \
    auto* root = m->top->rootp; \
    *clock = 1; root->__VnbaTriggered[0] = 1ULL << CLOCK_TRIGGER; \
    Vtop___024root___eval_nba(root); \
    *clock = 0; root->__VnbaTriggered[0] = 0; }
#else
#define SETTLE(m) m->top->eval();
#define EDGE(m, clock) { *clock = 1; m->top->eval(); *clock = 0; m->top->eval(); }
#endif
namespace {
struct Model {
    VerilatedContext context;
    std::unique_ptr<Vtop> top;
#if VM_TRACE
    std::unique_ptr<VerilatedVcdC> vcd;
#endif
};
struct Port { const char* name; unsigned output; unsigned bits; void* data; };
}
EXPORT Model* nearpm_new() {
    Model* m = new Model;
#if VM_TRACE
    m->context.traceEverOn(true);
#endif
    // One thread: otherwise each context starts as many as there are processors, which a model of one thread never uses and which
    // a copy of the process by fork would wait for in vain.
    m->context.threads(1);
    m->top.reset(new Vtop{&m->context, "top"});
    // The first eval only runs the initial blocks and takes no clock edge.
    m->top->eval();
    return m;
}
EXPORT void nearpm_delete(Model* m) {
    m->top->final();
#if VM_TRACE
    if (m->vcd) m->vcd->close();
#endif
    delete m;
}
EXPORT void nearpm_eval(Model* m) { m->top->eval(); }
EXPORT void nearpm_settle(Model* m) { SETTLE(m) }
EXPORT void nearpm_edge(Model* m, unsigned char* clock) { EDGE(m, clock) }
EXPORT void nearpm_cycle(Model* m, unsigned char* clock) {
    *clock = 1; m->top->eval();
    *clock = 0; m->top->eval();
}
EXPORT int nearpm_open_trace(Model* m, const char* path) {
#if VM_TRACE
    m->vcd.reset(new VerilatedVcdC);
    m->top->trace(m->vcd.get(), 99);
    m->vcd->open(path);
    return m->vcd->isOpen();
#else
    (void)m; (void)path; return 0;
#endif
}
EXPORT void nearpm_dump(Model* m, unsigned long long time) {
#if VM_TRACE
    if (m->vcd) m->vcd->dump(static_cast<uint64_t>(time));
#else
    (void)m; (void)time;
#endif
}
"#;

/// One `VL_IN`/`VL_OUT` line of the header that Verilator wrote.
struct Declared<'a> {
    /// The C++ member.
    member: &'a str,
    output: bool,
    bits: u32,
}

/// Reads `VL_IN8(&name,msb,lsb)`, `VL_OUTW(&name,msb,lsb,words)` and their like.
fn declared(line: &str) -> Option<Declared<'_>> {
    let line = line.trim();
    let (output, rest) = match line.strip_prefix("VL_IN") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("VL_OUT")?),
    };
    let (_, arguments) = rest.split_once("(&")?;
    let mut arguments = arguments.trim_end_matches(");").split(',').map(str::trim);
    let member = arguments.next()?;
    let msb: u32 = arguments.next()?.parse().ok()?;
    let lsb: u32 = arguments.next()?.parse().ok()?;
    Some(Declared { member, output, bits: msb - lsb + 1 })
}

/// The Verilog name of a C++ member: Verilator writes a character that C++ does not allow as `__0`
/// and two hexadecimal digits.
fn verilog_name(member: &str) -> String {
    let mut name = String::new();
    let mut rest = member;
    while let Some(at) = rest.find("__0") {
        let code = rest.get(at + 3..at + 5).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        name.push_str(&rest[..at]);
        match code {
            Some(code) => {
                name.push(char::from(code));
                rest = &rest[at + 5..];
            }
            None => {
                name.push_str("__0");
                rest = &rest[at + 3..];
            }
        }
    }
    name + rest
}

/// The trigger of the only clock in the code that Verilator wrote to `folder`, if that code is of
/// the form that the shim's direct edge relies on. Other versions of Verilator, and designs with
/// more clocks, take the long way.
fn clock_trigger(folder: &Path) -> Result<Option<u32>, Error> {
    let mut clocks = BTreeSet::new();
    let mut direct = false;
    for entry in std::fs::read_dir(folder).context("read", folder)? {
        let path = entry.context("read", folder)?.path();
        let root = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("Vtop___024root"));
        // The code may have been compiled already.
        if !root || path.extension().is_some_and(|extension| extension == "o") {
            continue;
        }
        let text = std::fs::read_to_string(&path).context("read", &path)?;
        direct |= text.contains("VlUnpacked<QData/*63:0*/, 1> __VnbaTriggered;");
        clocks.extend(text.lines().filter_map(clock_of_line));
    }
    Ok(clocks.first().copied().filter(|_| direct && clocks.len() == 1))
}

/// The index of a line of Verilator's trigger dump that names an edge.
fn clock_of_line(line: &str) -> Option<u32> {
    let (index, event) = line.split_once("region trigger index ")?.1.split_once(" is active: ")?;
    (event.starts_with("@(posedge") || event.starts_with("@(negedge")).then(|| index.parse().ok())?
}

/// Writes `shim.cpp` for the `Vtop.h` that was generated to `folder`.
pub(crate) fn write(folder: &Path, source: &Source, to: &Path) -> Result<(), Error> {
    let header = folder.join("Vtop.h");
    let text = std::fs::read_to_string(&header).context("read", &header)?;
    // A clock that is never seen high would count as one that stands still.
    let trigger = if source.coverage { None } else { clock_trigger(folder)? };
    let mut shim = match trigger {
        Some(index) => format!("#define CLOCK_TRIGGER {index}\n"),
        None => String::new(),
    };
    shim.push_str(HEAD);
    if source.coverage {
        shim.push_str(coverage::SHIM);
    }
    let counters = source.counters.as_deref().map(|counters| idle::table(folder, counters)).transpose()?;
    if let Some(table) = counters.flatten() {
        shim.push_str(&table);
        shim.push_str(idle::SHIM);
    }
    shim.push_str("EXPORT unsigned nearpm_ports(Model* m, Port* out, unsigned room) {\n");
    shim.push_str("    unsigned n = 0;\n    (void)m; (void)out; (void)room;\n");
    for Declared { member, output, bits } in text.lines().filter_map(declared) {
        let name = verilog_name(member);
        let output = u8::from(output);
        let _ = writeln!(
            shim,
            "    if (n < room) out[n] = Port{{\"{name}\", {output}, {bits}, &m->top->{member}}};\n    ++n;"
        );
    }
    shim.push_str("    return n;\n}\n");
    let path = to.join("shim.cpp");
    std::fs::write(&path, shim).context("write", &path)
}

#[cfg(test)]
mod tests {
    use super::{clock_of_line, declared, verilog_name};

    #[test]
    fn the_clock_is_found_among_the_triggers() {
        let line =
            |event: &str| format!("VL_DBG_MSGS(\"'\" + tag + \"' region trigger index 1 is active: {event}\\n\");");
        assert_eq!(clock_of_line(&line("@(posedge clk)")), Some(1));
        assert_eq!(clock_of_line(&line("@([hybrid] a.b)")), None);
    }

    #[test]
    fn ports_are_read_from_the_header() {
        let d = declared("    VL_OUTW(&m__024rdata,511,0,16);").unwrap();
        assert_eq!((d.member, d.output, d.bits), ("m__024rdata", true, 512));
        let d = declared("VL_IN8(&clock,0,0);").unwrap();
        assert_eq!((d.member, d.output, d.bits), ("clock", false, 1));
        assert!(declared("void eval() { eval_step(); }").is_none());
    }

    #[test]
    fn names_are_those_of_the_verilog() {
        assert_eq!(verilog_name("m__0240__024araddr"), "m$0$araddr");
        assert_eq!(verilog_name("plain_name"), "plain_name");
        assert_eq!(verilog_name("a___05Fb"), "a__b");
    }
}
