//! Bits of the card that cannot change, as yosys finds when it propagates constants through the
//! flattened design.
//!
//! They are no scenario's to cover: an input of a cell that is tied, the upper bits of what was
//! widened, a field that nobody uses. What yosys says is checked by what was measured: a bit that
//! it calls constant and that has changed is a violation.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use nearpm_proofs::tools::Tools;
use serde::Deserialize;

use super::points::Point;

/// Module at the root of the card's Verilog.
pub const TOP: &str = "nearpm_card";
/// The module below it, from whose name those of all others begin, and the name of its instance.
const CORE: [&str; 2] = ["nearpm_core", "core"];

/// The names are kept with their bits, and what drives them is forgotten when it is known.
const SCRIPT: &str = "proc -noopt; flatten; setattr -set keep 1 w:*; opt_expr; opt_dff; opt_expr; opt_dff; opt_expr; opt_clean; delete t:*; write_json";

/// Constant bits by the names of their signals in the flattened design.
#[derive(Clone, Debug, Default)]
pub struct Constants(HashMap<String, Vec<Option<bool>>>);

#[derive(Deserialize)]
struct Design {
    modules: HashMap<String, Module>,
}

#[derive(Deserialize)]
struct Module {
    netnames: HashMap<String, Net>,
}

#[derive(Deserialize)]
struct Net {
    bits: Vec<Bit>,
}

/// A constant, `0`, `1`, or `x` for what nobody drives; or the number of a net.
#[derive(Deserialize)]
#[serde(untagged)]
enum Bit {
    Constant(String),
    Net(serde::de::IgnoredAny),
}

impl Constants {
    /// Those of a card's Verilog. What yosys found goes to a file beside the counts, and is taken
    /// from there where it is.
    ///
    /// # Errors
    /// yosys is not installed, or fails.
    pub fn of(verilog: &Path, folder: &Path) -> Result<Constants> {
        let (source, found) = (folder.join("design.v"), folder.join("constants.json"));
        if !found.exists() {
            fs::copy(verilog, &source).with_context(|| format!("copy {}", verilog.display()))?;
            let script = format!("read_verilog design.v; hierarchy -top {TOP}; {SCRIPT} constants.part");
            Tools::find()?.yosys(folder, &script)?;
            fs::rename(folder.join("constants.part"), &found).context("keep what yosys found")?;
        }
        let text = fs::read_to_string(&found).with_context(|| format!("read {}", found.display()))?;
        Constants::parse(&text).with_context(|| found.display().to_string())
    }

    /// Reads yosys's JSON.
    ///
    /// # Errors
    /// What is none, or of another design.
    pub fn parse(json: &str) -> Result<Constants> {
        let mut design: Design = serde_json::from_str(json)?;
        let top = design.modules.remove(TOP).with_context(|| format!("there is no module {TOP}"))?;
        let value = |bit: &Bit| match bit {
            Bit::Constant(value) if value == "0" => Some(false),
            Bit::Constant(value) if value == "1" => Some(true),
            Bit::Constant(_) | Bit::Net(_) => None,
        };
        // An instance's path has dots where the name of its module has the character of generated
        // names.
        let net = |(name, net): (String, Net)| (name.replace('.', "$"), net.bits.iter().map(value).collect());
        Ok(Constants(top.netnames.into_iter().map(net).collect()))
    }

    /// The value that the bit of a point always has, if it is constant.
    pub fn value(&self, point: &Point) -> Option<bool> {
        let bit = point.bit()?;
        let name = match point.module.strip_prefix(CORE[0]) {
            Some(below) => format!("{}{below}${}", CORE[1], bit.signal),
            None => bit.signal.to_owned(),
        };
        self.0.get(&name)?.get(bit.bit as usize).copied()?
    }

    /// Whether that a point was hit contradicts what yosys says. A bit that is always 1 rises when
    /// the simulation begins.
    pub fn are_wrong(&self, point: &Point) -> bool {
        let rises = point.bit().is_some_and(|bit| bit.rises);
        self.value(point).is_some_and(|value| !(value && rises))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::points::CoverPoint;

    #[test]
    fn bits_are_found_below_the_core_and_above_it() {
        let json = r#"{"modules": {"nearpm_card": {"netnames": {
            "core.back.unit$0.tag": {"bits": [2, "0", "1", "x"]}, "size": {"bits": ["1"]}}}}}"#;
        let constants = Constants::parse(json).unwrap();
        let point =
            |module: &str, name: &str| Point { module: module.into(), kind: CoverPoint::Toggle, name: name.into() };
        let tag = |name: &str| point("nearpm_core$back$unit$0", name);
        let values = [0, 1, 2, 3, 4].map(|bit| constants.value(&tag(&format!("tag[{bit}]:0->1"))));
        assert_eq!(values, [None, Some(false), Some(true), None, None]);
        assert_eq!(constants.value(&point("nearpm_card", "size:1->0")), Some(true));
        let wrong =
            ["tag[0]:0->1", "tag[1]:0->1", "tag[2]:0->1", "tag[2]:1->0"].map(|name| constants.are_wrong(&tag(name)));
        assert_eq!(wrong, [false, true, false, true]);
        assert!(Constants::parse(r#"{"modules": {}}"#).is_err());
    }
}
