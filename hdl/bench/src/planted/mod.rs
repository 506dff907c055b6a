//! Plants faults into generated Verilog, behind an input that switches one of them on.
//!
//! All faults of a design are built at once: the top module gets the input [`INPUT`], and each
//! fault changes one place in the text to a form that differs only while the input has the fault's
//! number. With 0 the design is as it was.
//!
//! **A fault that is not there proves nothing.** Every edit names its module and its signal or
//! text, and must find exactly what it names, exactly as often as it says; otherwise [`plant`]
//! fails and says which edit is stale.

pub mod unit;

use std::fmt;

/// Name of the input that selects a fault.
pub const INPUT: &str = "planted_fault";
/// Bits of that input.
const INPUT_BITS: usize = 8;

/// One change of one module.
#[derive(Clone, Copy, Debug)]
pub enum Edit {
    /// The combinational block ends with this assignment: (signal, value). For outputs and inputs
    /// of children, which are not read again in the block; the value may read the signal itself.
    Last(&'static str, &'static str),
    /// Every assignment to the signal takes this value instead: (signal, value, assignments). For
    /// what the block reads.
    Each(&'static str, &'static str, usize),
    /// This text is replaced: (text, replacement, places). `FAULT` in the replacement is the
    /// condition.
    Text(&'static str, &'static str, usize),
}

/// A fault: edits of one module, or of several that are alike.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Path of the module below the card, with `$` between the levels; `*` stands for any
    /// characters but `$`.
    pub module: &'static str,
    /// Modules that the path must name.
    pub modules: usize,
    /// The changes.
    pub edits: &'static [Edit],
}

/// A design that faults are planted into.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    /// Name of its top module, where the input goes.
    pub top: &'static str,
    /// Name of the module that is `root`.
    pub core: &'static str,
    /// Path below the card of what the design is; empty for the whole card.
    pub root: &'static str,
}

/// An edit whose place is not there.
#[derive(Debug, PartialEq, Eq)]
pub struct Stale(String);

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a planted fault no longer fits the design: {}", self.0)
    }
}

/// Plants faults by number. Those outside of the design's root are an error.
pub fn plant(design: Design, verilog: &str, faults: &[(u64, &[Place])]) -> Result<String, Stale> {
    let mut modules = Modules::of(verilog);
    for (number, places) in faults {
        assert!(*number > 0 && number >> INPUT_BITS == 0, "fault {number} does not fit the input");
        let condition = format!("({}.{INPUT} == {INPUT_BITS}'d{number})", design.top);
        for place in *places {
            let found = modules.named(&design.module(place.module)?);
            if found.len() != place.modules {
                let (is, wanted) = (found.len(), place.modules);
                return Err(Stale(format!("{is} modules are called `{}`, not {wanted}", place.module)));
            }
            for index in found {
                let text = &mut modules.0[index].1;
                for edit in place.edits {
                    *text = edit.apply(text, &condition).map_err(|why| Stale(format!("`{}`: {why}", place.module)))?;
                }
            }
        }
    }
    let top = modules.named(design.top);
    let [top] = top[..] else { return Err(Stale(format!("no module `{}`", design.top))) };
    modules.0[top].1 = with_input(&modules.0[top].1);
    Ok(modules.0.into_iter().map(|(_, text)| text).collect())
}

impl Design {
    /// Name of the module at a path below the card.
    fn module(&self, path: &str) -> Result<String, Stale> {
        let below = path.strip_prefix(self.root).map(|rest| rest.strip_prefix('$').unwrap_or(rest));
        match below {
            Some("") => Ok(self.core.into()),
            Some(below) => Ok(format!("{}${below}", self.core)),
            None => Err(Stale(format!("`{path}` is not a part of `{}`", self.root))),
        }
    }
}

/// The text of a design in pieces: what stands before a module has no name.
struct Modules(Vec<(String, String)>);

impl Modules {
    fn of(verilog: &str) -> Self {
        let mut pieces: Vec<(String, String)> = vec![(String::new(), String::new())];
        for line in verilog.split_inclusive('\n') {
            if let Some(rest) = line.strip_prefix("module ") {
                let name = rest.split(|c: char| c == '(' || c.is_whitespace()).next().unwrap_or_default();
                pieces.push((name.into(), String::new()));
            }
            pieces.last_mut().expect("there is one").1.push_str(line);
        }
        Self(pieces)
    }

    /// The modules that a pattern names.
    fn named(&self, pattern: &str) -> Vec<usize> {
        (0..self.0.len()).filter(|i| matches(pattern, &self.0[*i].0)).collect()
    }
}

/// Whether a name fits a pattern, level by level.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<_>, Vec<_>) = (pattern.split('$').collect(), name.split('$').collect());
    let fits = |(pattern, level): (&&str, &&str)| match pattern.split_once('*') {
        Some((head, tail)) => {
            level.len() >= head.len() + tail.len() && level.starts_with(head) && level.ends_with(tail)
        }
        None => pattern == level,
    };
    pattern.len() == name.len() && pattern.iter().zip(&name).all(fits)
}

/// A top module with the input; both styles of port lists that the generator writes.
fn with_input(module: &str) -> String {
    let port = format!("input wire [{}:0] {INPUT}", INPUT_BITS - 1);
    let open = module.find('(').expect("a top module has ports");
    if module[open + 1..].trim_start().starts_with("input ") {
        return format!("{}\n    {port},{}", &module[..=open], &module[open + 1..]);
    }
    let end = open + module[open..].find(");").expect("the list ends") + 2;
    format!("{}{INPUT},{}\n    {port};{}", &module[..=open], &module[open + 1..end], &module[end..])
}

impl Edit {
    fn apply(&self, module: &str, condition: &str) -> Result<String, String> {
        match *self {
            Edit::Last(signal, value) => {
                assignments(module, signal).next().ok_or(format!("nothing is assigned to `{signal}`"))?;
                let blocks: Vec<_> = module.match_indices("always @(*) begin\n").collect();
                let [(block, _)] = blocks[..] else { return Err(format!("{} combinational blocks", blocks.len())) };
                let end = block + module[block..].find("\n    end\n").ok_or("the combinational block has no end")? + 1;
                let line = format!("        if ({condition}) {signal} = {value};\n");
                Ok(format!("{}{line}{}", &module[..end], &module[end..]))
            }
            Edit::Each(signal, value, times) => {
                let places: Vec<_> = assignments(module, signal).collect();
                if places.len() != times {
                    return Err(format!("`{signal}` is assigned {} times, not {times}", places.len()));
                }
                let mut out = module.to_owned();
                for (from, to) in places.into_iter().rev() {
                    let old = &module[from..to];
                    out.replace_range(from..to, &format!("{condition} ? ({value}) : ({old})"));
                }
                Ok(out)
            }
            Edit::Text(text, replacement, times) => {
                let found = module.matches(text).count();
                if found != times {
                    return Err(format!("`{text}` stands there {found} times, not {times}"));
                }
                Ok(module.replace(text, &replacement.replace("FAULT", condition)))
            }
        }
    }
}

/// Where the right sides of the blocking assignments to a signal stand.
fn assignments<'a>(module: &'a str, signal: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let head = format!("{signal} = ");
    let mut at = 0;
    module.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        let code = line.trim_start();
        let right = code.strip_prefix(&head)?.trim_end().strip_suffix(';')?;
        let from = start + (line.len() - code.len()) + head.len();
        Some((from, from + right.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::{Design, Edit, INPUT, Place, plant};

    const DESIGN: Design = Design { top: "card", core: "core", root: "" };
    const TEXT: &str = "// A card.\nmodule card (\n    input wire a,\n    output wire z\n);\nendmodule\n\
        module core$x(a,z);\n    always @(*) begin\n        z = 1'b0;\n        if (a) begin\n            z = a;\n        end\n    end\nendmodule\n\
        module core$y0(a,z);\n    always @(posedge a) z <= a;\nendmodule\n\
        module core$y1(a,z);\n    always @(posedge a) z <= a;\nendmodule\n";

    fn planted(module: &'static str, modules: usize, edit: Edit) -> Result<String, String> {
        let edits = Box::leak(Box::new([edit]));
        plant(DESIGN, TEXT, &[(3, &[Place { module, modules, edits }])]).map_err(|stale| stale.to_string())
    }

    #[test]
    fn an_edit_changes_its_place_and_nothing_else() {
        let condition = format!("(card.{INPUT} == 8'd3)");
        let top = TEXT.replace("card (", &format!("card (\n    input wire [7:0] {INPUT},"));
        let last = planted("x", 1, Edit::Last("z", "~z")).unwrap();
        let line = format!("        if ({condition}) z = ~z;\n    end\nendmodule\nmodule core$y0");
        assert_eq!(last, top.replace("    end\nendmodule\nmodule core$y0", &line));
        let each = planted("x", 1, Edit::Each("z", "1'b1", 2)).unwrap();
        let wanted = top
            .replace("z = 1'b0;", &format!("z = {condition} ? (1'b1) : (1'b0);"))
            .replace("z = a;", &format!("z = {condition} ? (1'b1) : (a);"));
        assert_eq!(each, wanted);
        let text = planted("y*", 2, Edit::Text("z <= a", "z <= a ^ FAULT", 1)).unwrap();
        assert_eq!(text, top.replace("z <= a", &format!("z <= a ^ {condition}")));
    }

    #[test]
    fn an_edit_whose_place_is_not_there_is_an_error() {
        let stale = [
            planted("w", 1, Edit::Last("z", "a")),
            planted("y*", 1, Edit::Text("z <= a", "z <= FAULT", 1)),
            planted("x", 1, Edit::Last("w", "a")),
            planted("y0", 1, Edit::Last("z", "a")),
            planted("x", 1, Edit::Each("z", "a", 1)),
            planted("x", 1, Edit::Text("a", "FAULT", 1)),
            planted("x", 1, Edit::Text("b", "FAULT", 1)),
        ];
        for result in stale {
            assert!(result.unwrap_err().contains("no longer fits"));
        }
    }

    #[test]
    fn a_part_of_the_card_is_found_by_its_place_in_the_card() {
        let design = Design { top: "top", core: "top", root: "front" };
        let text = "module top(a,z);\n    input wire  a;\nendmodule\nmodule top$q(a,z);\n    z <= a;\nendmodule\n";
        let place = Place { module: "front$q", modules: 1, edits: &[Edit::Text("z <= a", "z <= FAULT", 1)] };
        let planted = plant(design, text, &[(1, &[place])]).unwrap();
        assert!(planted.starts_with(&format!("module top({INPUT},a,z);\n    input wire [7:0] {INPUT};\n")));
        assert!(planted.contains(&format!("z <= (top.{INPUT} == 8'd1)")));
        let elsewhere = Place { module: "back$q", ..place };
        assert!(plant(design, text, &[(1, &[elsewhere])]).is_err());
    }
}
