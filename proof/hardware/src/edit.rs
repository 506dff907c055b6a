//! What is changed in a unit's Verilog before a run. An edit that finds not exactly what it names
//! is an error: it would prove nothing.

use std::ops::Range;

use anyhow::{Context, Result, bail};

use crate::property::Mutant;

/// Plants a mutant.
///
/// # Errors
/// The text that it replaces does not stand there exactly once.
pub fn mutate(verilog: &str, mutant: &Mutant) -> Result<String> {
    match verilog.matches(&mutant.find).count() {
        1 => Ok(verilog.replacen(&mutant.find, &mutant.put, 1)),
        n => bail!("the mutant `{}` is stale: its text stands there {n} times, not once", mutant.what),
    }
}

/// Where the module of an instance below the top stands in the text.
fn module_of(verilog: &str, instance: &str) -> Result<Range<usize>> {
    let start =
        verilog.find(&format!("module top${instance}(")).with_context(|| format!("no instance `{instance}`"))?;
    let length = verilog[start..].find("endmodule").context("a module without an end")?;
    Ok(start..start + length)
}

/// Declarations of a module's ports, as (name, range, whether it is an output).
fn ports(module: &str) -> Vec<(&str, &str, bool)> {
    module
        .lines()
        .filter_map(|line| {
            let line = line.trim().trim_end_matches(';');
            let output = line.starts_with("output ");
            if !output && !line.starts_with("input ") {
                return None;
            }
            let name = line.split_whitespace().last()?;
            let range = line.find('[').map_or("", |start| &line[start..=line.rfind(']').unwrap_or(start)]);
            Some((name, range, output))
        })
        .collect()
}

/// Where the ports of a module end and what it does begins.
const BODY: &str = "// Update code";

/// Shows a memory (`AsyncRam`) through one word at an arbitrary place, `watched`; what is read
/// elsewhere is arbitrary. Every behaviour of the memory is one of those, whatever `watched` is, so
/// what holds for these holds for the memory. The solver is spared the other words.
///
/// # Errors
/// The instance is not such a memory.
pub fn watch(verilog: &str, instance: &str) -> Result<String> {
    let range = module_of(verilog, instance)?;
    let module = &verilog[range.clone()];
    let ports = ports(module);
    let bits = |wanted: &str| ports.iter().find(|(name, ..)| *name == wanted).map(|(_, range, _)| *range);
    let (Some(data), Some(address)) = (bits("write_data"), bits("write_address")) else {
        bail!("`{instance}` is no memory");
    };
    let written = "always @(posedge clock) if (write_enable) mem[write_address] <= write_data;";
    if module.matches(written).count() != 1 {
        bail!("`{instance}` is not written as a memory is");
    }
    let head = &module[..module.find(BODY).context("a module without a body")?];
    let mut text = format!(
        "{head}(* anyconst *) reg {address} watched;\nreg {data} word = 0;\n\
         always @(posedge clock) if (write_enable & write_address == watched) word <= write_data;\n"
    );
    let mut reads = 0;
    while module.contains(&format!("read_data${reads} = mem[read_address${reads}];")) {
        text += &format!(
            "(* anyseq *) reg {data} elsewhere{reads};\n\
             always @(*) read_data${reads} = read_address${reads} == watched ? word : elsewhere{reads};\n"
        );
        reads += 1;
    }
    if reads == 0 || reads != module.matches("= mem[").count() {
        bail!("`{instance}` is not read as a memory is");
    }
    Ok(format!("{}{text}{}", &verilog[..range.start], &verilog[range.end..]))
}

/// Takes what is in an instance away: its outputs are arbitrary in every cycle. Whatever holds then
/// holds with any content.
///
/// # Errors
/// There is no such instance, or it has no output.
pub fn cut(verilog: &str, instance: &str) -> Result<String> {
    let range = module_of(verilog, instance)?;
    let module = &verilog[range.clone()];
    // Ports are declared in front of everything else.
    let end = module.find("// Constant declarations").into_iter().chain(module.find("// Stub signals"));
    let end = end.chain(module.find("// Enums")).chain(module.find("// Local signals")).chain(module.find(BODY)).min();
    let head = &module[..end.context("a module without a body")?];
    let mut text = head.to_string();
    for (name, range, _) in ports(head).into_iter().filter(|(.., output)| *output) {
        text += &format!("(* anyseq *) reg {range} {name}$free;\nalways @(*) {name} = {name}$free;\n");
    }
    if text.len() == head.len() {
        bail!("`{instance}` has no output");
    }
    Ok(format!("{}{text}{}", &verilog[..range.start], &verilog[range.end..]))
}

/// What every property may use: `f_past`, not the first cycle, and `f_was_reset`, the cycle before
/// was in reset. The first is in reset, as the card's synchroniser holds it.
const PREAMBLE: &str = "reg f_past = 0; reg f_was_reset = 1;\n\
    always @(posedge clock) begin f_past <= 1; f_was_reset <= reset; end\n\
    always @* if (!f_past) assume (reset);\n";

/// Puts a property before the end of the flattened unit. Names of nets below the top, which yosys
/// writes with dots, get `__` in place of each.
///
/// # Errors
/// The text has not exactly one module.
pub fn inject(flat: &str, body: &str) -> Result<String> {
    if flat.matches("endmodule").count() != 1 {
        bail!("the flattened unit is not one module");
    }
    // What is left of a loop's variable drives a constant, which is not Verilog.
    let is_loop = |line: &&str| !line.trim_start().starts_with("assign 32'd");
    let text: String = flat.split_inclusive('\n').filter(is_loop).collect();
    let text = unescape(&text);
    let end = text.rfind("endmodule").context("a module without an end")?;
    let preamble = if text.contains("input reset;") { PREAMBLE } else { "" };
    // A name that is not there is an error, and not a net that nothing drives.
    Ok(format!("`default_nettype none\n{}{preamble}{body}\n{}", &text[..end], &text[end..]))
}

/// Escaped names of letters, digits, `_`, `$` and `.` as plain ones.
fn unescape(verilog: &str) -> String {
    let mut out = String::with_capacity(verilog.len());
    let mut rest = verilog;
    while let Some(start) = rest.find('\\') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(' ').unwrap_or(rest.len());
        let name = &rest[1..end];
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.'));
        if plain {
            out.push_str(&name.replace('.', "__"));
        } else {
            out.push_str(&rest[..end]);
        }
        rest = &rest[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Unit;

    #[test]
    fn an_edit_that_finds_nothing_is_an_error() {
        let mutant = Mutant { what: "m".into(), find: "a".into(), put: "b".into(), depth: 1 };
        assert_eq!(mutate("xax", &mutant).unwrap(), "xbx");
        assert!(mutate("xx", &mutant).unwrap_err().to_string().contains("0 times"));
        assert!(mutate("aa", &mutant).unwrap_err().to_string().contains("2 times"));
        let unit = Unit::MultiDevice.verilog();
        assert!(watch(&unit, "raw").unwrap().contains("watched") && watch(&unit, "phase").is_err());
        assert!(cut(&unit, "speaker").unwrap().contains("o$free") && cut(&unit, "nothing").is_err());
        assert!(inject("no module", "").is_err());
    }

    #[test]
    fn names_lose_their_escapes_and_others_keep_them() {
        assert_eq!(unescape(r"assign \a.b$q  = \0x [1] + \c ;"), r"assign a__b$q  = \0x [1] + c ;");
    }
}
