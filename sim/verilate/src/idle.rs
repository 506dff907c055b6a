//! Edges that would change nothing are not simulated.
//!
//! While no input changes, a state that an edge has not changed is the state behind every further
//! edge. A whole card that waits for its memory is in such a state but for registers that count
//! cycles. Those are named by whoever asks for this ([`Source::with_idle_skipped`](crate::Source));
//! of everything else the state is compared, to the byte, at two edges in a row: a register that is
//! set once to a value has another step at the second.

use crate::Error;
use crate::error::IoContext;
use std::fmt::Write;
use std::path::Path;

/// What follows the shim's head, and the table of counters. `still` counts the edges since an input
/// has changed, is all ones where edges are skipped ([`SKIPS`]), and one less where the last edge
/// has changed nothing but counters. A comparison costs about as much as an edge, so that it is
/// tried behind 4, 8, 16... of them.
pub(crate) const SHIM: &str = r#"
#ifdef CLOCK_TRIGGER
#include <cstring>
namespace {
struct Idle { unsigned char before[sizeof(Vtop___024root)]; uint32_t steps[COUNTERS + 1]; };
constexpr uint64_t SKIPS = ~0ULL, ONCE = SKIPS - 1;
uint32_t load(const unsigned char* at) { uint32_t value; std::memcpy(&value, at, sizeof value); return value; }
void store(unsigned char* at, uint32_t value) { std::memcpy(at, &value, sizeof value); }
}
EXPORT Idle* nearpm_idle_new() { return new Idle; }
EXPORT void nearpm_idle_delete(Idle* idle) { delete idle; }
EXPORT void nearpm_idle_edge(Model* m, Idle* idle, uint64_t* still, unsigned char* clock) {
    auto* state = reinterpret_cast<unsigned char*>(m->top->rootp);
    if (*still == SKIPS) {
        for (size_t i = 0; i < COUNTERS; ++i) if (idle->steps[i]) store(state + AT[i], load(state + AT[i]) + idle->steps[i]);
        return;
    }
    const bool again = *still == ONCE;
    if (!again) {
        ++*still;
        if (*still < 4 || (*still & (*still - 1))) {
            EDGE(m, clock)
            return;
        }
    }
    bool as_before = true;
    std::memcpy(idle->before, state, sizeof idle->before);
    EDGE(m, clock)
    for (size_t i = 0; i < COUNTERS; ++i) {
        const uint32_t now = load(state + AT[i]), step = now - load(idle->before + AT[i]);
        as_before &= step == idle->steps[i];
        idle->steps[i] = step;
        store(idle->before + AT[i], now);
    }
    const bool counts = !std::memcmp(idle->before, state, sizeof idle->before);
    if (again) *still = counts && as_before ? SKIPS : 5;
    else if (counts) *still = ONCE;
}
#endif
"#;

/// The value of `still` while edges are skipped.
pub(crate) const SKIPS: u64 = u64::MAX;

/// The table of counters for the code that Verilator wrote to `folder`: registers of 32 bits in
/// whose path `counters` is found. `None` where the state is not all in one class, as other
/// versions of Verilator may leave it; then no edge is skipped.
pub(crate) fn table(folder: &Path, counters: &str) -> Result<Option<String>, Error> {
    let known = ["Vtop.h", "Vtop__Syms.h", "Vtop___024root.h", "Vtop__pch.h"];
    for entry in std::fs::read_dir(folder).context("read", folder)? {
        let name = entry.context("read", folder)?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".h") && !known.contains(&name.as_str()) {
            return Ok(None);
        }
    }
    let header = folder.join("Vtop___024root.h");
    let text = std::fs::read_to_string(&header).context("read", &header)?;
    let members = text.lines().filter_map(|line| member(line, &counters.replace('.', "__DOT__")));
    let (mut at, mut count) = (String::new(), 0);
    for member in members {
        let _ = write!(at, "offsetof(Vtop___024root, {member}), ");
        count += 1;
    }
    Ok(Some(format!(
        "#include <cstddef>\nstatic constexpr size_t COUNTERS = {count};\nstatic constexpr size_t AT[] = {{ {at}0 }};\n"
    )))
}

/// The name that a line of the header declares, where it is of a register of 32 bits and has
/// `counters` in it.
fn member<'a>(line: &'a str, counters: &str) -> Option<&'a str> {
    let name = line.trim().strip_prefix("IData/*31:0*/ ")?.strip_suffix(';')?;
    name.contains(counters).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::member;

    #[test]
    fn counters_are_found_in_the_header() {
        let line = |kind: &str| format!("    {kind} card__DOT__registers__DOT__r_cycles;");
        let wanted = "registers__DOT__r_";
        assert_eq!(member(&line("IData/*31:0*/"), wanted), Some("card__DOT__registers__DOT__r_cycles"));
        assert_eq!(member(&line("IData/*30:0*/"), wanted), None);
        assert_eq!(member(&line("IData/*31:0*/"), "persistence__DOT__"), None);
    }
}
