//! What is simulated in place of what is synthesised: the same, in a form that a simulator is
//! faster at.

use crate::cells::pick::Shape;

/// Where the code of a module begins that rust-hdl did not write.
const CODE: &str = "// Update code (custom)\n";
const END: &str = "endmodule";

/// A module of the design in both of its forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Its name.
    pub name: String,
    /// What becomes hardware.
    pub gates: String,
    /// What is simulated.
    pub behaviour: String,
}

/// The design with every pick as a few operations on whole words, which simulates a sixth faster;
/// `nearpm-proofs` has the two proved equal.
///
/// A module whose text is not to the letter that of a pick, as one with a planted fault, stays as
/// it is. Where coverage of the hardware is counted, all do.
pub fn for_simulation(verilog: &str) -> String {
    if nearpm_verilate::counts_coverage() {
        return verilog.to_owned();
    }
    modules(verilog).map(|module| replaced(module).map_or_else(|| module.to_owned(), |new| new.behaviour)).collect()
}

/// The modules that [`for_simulation`] replaces.
pub fn replaced_modules(verilog: &str) -> Vec<Replaced> {
    modules(verilog).filter_map(replaced).collect()
}

/// The text in pieces, each of which but the first begins with a module.
fn modules(verilog: &str) -> impl Iterator<Item = &str> {
    let starts = verilog.match_indices("\nmodule ").map(|(at, _)| at + 1);
    let starts: Vec<_> = std::iter::once(0).chain(starts).chain([verilog.len()]).collect();
    (1..starts.len()).map(move |i| &verilog[starts[i - 1]..starts[i]])
}

fn replaced(module: &str) -> Option<Replaced> {
    let shape = Shape::of(module)?;
    let (head, rest) = module.split_once(CODE)?;
    let (code, tail) = rest.split_at(rest.find(END)?);
    if !code.lines().map(str::trim).filter(|line| !line.is_empty()).eq(shape.gates().lines().map(str::trim)) {
        return None;
    }
    let name = head.strip_prefix("module ")?.split('(').next()?.trim().to_owned();
    let behaviour = format!("{head}{CODE}{}{tail}", shape.behaviour());
    Some(Replaced { name, gates: module.to_owned(), behaviour })
}
