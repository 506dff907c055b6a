//! The manifest of the bitstreams: what a build gave, for a later one to be held to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::{ecp5, vcu118};

/// What stands above it.
const HEAD: &str = "\
# What `./x bitstream` and `./x synthesise` gave. The tests hold today's Verilog to it; the thorough
# ones build the ECP5's bitstream and map the VCU118's bridge again, and compare everything. `source`
# is the SHA-256 of Verilog, pins and options, pairs are what is used and what the part has.

";

/// What was built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The bitstream for the ECP5-85k.
    #[serde(rename = "ecp5-85k")]
    pub ecp5: ecp5::Built,
    /// The modules of the VCU118's design, by name.
    pub vcu118: BTreeMap<String, vcu118::Mapped>,
}

/// Where it stands in the workspace.
fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifest.toml")
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// It lacks something, or has something that is not of its kind.
    fn parse(text: &str) -> Result<Manifest> {
        toml::from_str(text).context("the manifest does not hold what it should")
    }

    /// Its text.
    fn text(&self) -> Result<String> {
        Ok(format!("{HEAD}{}", toml::to_string(self)?))
    }

    /// Reads that of the workspace.
    ///
    /// # Errors
    /// There is none, or it is not whole.
    pub fn read() -> Result<Manifest> {
        Manifest::parse(&std::fs::read_to_string(path()).context("there is no manifest")?)
    }

    /// Changes that of the workspace.
    ///
    /// # Errors
    /// There is none to change, or it cannot be written.
    pub fn change(change: impl FnOnce(&mut Manifest)) -> Result<()> {
        let mut manifest = Manifest::read()?;
        change(&mut manifest);
        std::fs::write(path(), manifest.text()?).context("cannot write the manifest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let ecp5 = ecp5::Built {
            source: "01".into(),
            bitstream: "fedc".into(),
            bytes: 2,
            luts: [3, 30],
            flip_flops: [4, 40],
            block_rams: [5, 50],
            mhz: 6.25,
            yosys: "1".into(),
            nextpnr: "2".into(),
            ecppack: "3".into(),
        };
        let mapped = vcu118::Mapped {
            source: "02".into(),
            luts: [7, 70],
            flip_flops: [8, 80],
            block_rams: [9, 90],
            levels: 10,
            registers: vec![11, 110],
            yosys: "4".into(),
        };
        Manifest { ecp5, vcu118: BTreeMap::from([("card".into(), mapped)]) }
    }

    #[test]
    fn what_is_written_reads_back() {
        assert_eq!(Manifest::parse(&manifest().text().unwrap()).unwrap(), manifest());
    }

    #[test]
    fn a_manifest_that_lacks_something_names_it() {
        let text = manifest().text().unwrap();
        for key in ["source", "bitstream", "bytes", "luts", "mhz", "nextpnr", "levels", "registers"] {
            let lacking: Vec<_> = text.lines().filter(|l| !l.starts_with(key)).collect();
            let error = format!("{:#}", Manifest::parse(&lacking.join("\n")).unwrap_err());
            assert!(error.contains(key), "{error}");
        }
        for (from, to) in [("[3, 30]", "[3]"), ("levels", "level")] {
            let error = format!("{:#}", Manifest::parse(&text.replacen(from, to, 1)).unwrap_err());
            assert!(error.contains(to), "{error}");
        }
    }
}
