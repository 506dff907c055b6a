//! The manifest of the bitstreams: what a build gave, for a later one to be held to.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::Table;

use crate::ecp5::Built;

/// Where it stands in the workspace.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifest.toml")
}

/// The manifest's text for a build.
pub fn write(built: &Built) -> String {
    let Built { source, bitstream, bytes, luts, flip_flops, block_rams, mhz, tools: [yosys, nextpnr, ecppack] } = built;
    format!(
        "# What `./x bitstream` gave. The tests hold the Verilog to it, the thorough ones build it again and compare everything.\n\n\
         [ecp5-85k]\n\
         # SHA-256 of Verilog, pins and options; and of the bitstream.\n\
         source = \"{source}\"\n\
         bitstream = \"{bitstream}\"\n\
         bytes = {bytes}\n\
         # Used, and what the part has.\n\
         luts = {luts:?}\n\
         flip_flops = {flip_flops:?}\n\
         block_rams = {block_rams:?}\n\
         # By nextpnr's timing analysis.\n\
         mhz = {mhz:.2}\n\
         yosys = \"{yosys}\"\n\
         nextpnr = \"{nextpnr}\"\n\
         ecppack = \"{ecppack}\"\n"
    )
}

/// Reads a manifest.
///
/// # Errors
/// It lacks something, or has something that is not of its kind.
pub fn read(text: &str) -> Result<Built> {
    let table: Table = text.parse().context("the manifest is not TOML")?;
    let part = table.get("ecp5-85k").and_then(|part| part.as_table()).context("no [ecp5-85k]")?;
    let value = |key: &str| part.get(key).with_context(|| format!("no {key}"));
    let string = |key: &str| {
        Ok::<_, anyhow::Error>(value(key)?.as_str().with_context(|| format!("{key} is no text"))?.to_string())
    };
    let number = |key: &str, value: &toml::Value| {
        let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
        number.with_context(|| format!("{key} is no count"))
    };
    let pair = |key: &str| match value(key)?.as_array().map(Vec::as_slice) {
        Some([used, available]) => Ok([number(key, used)?, number(key, available)?]),
        _ => Err(anyhow::anyhow!("{key} is no pair")),
    };
    Ok(Built {
        source: string("source")?,
        bitstream: string("bitstream")?,
        bytes: number("bytes", value("bytes")?)?,
        luts: pair("luts")?,
        flip_flops: pair("flip_flops")?,
        block_rams: pair("block_rams")?,
        mhz: value("mhz")?.as_float().context("mhz is no number with a point")?,
        tools: [string("yosys")?, string("nextpnr")?, string("ecppack")?],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built() -> Built {
        Built {
            source: "01".into(),
            bitstream: "fedc".into(),
            bytes: 2,
            luts: [3, 30],
            flip_flops: [4, 40],
            block_rams: [5, 50],
            mhz: 6.25,
            tools: ["1".into(), "2".into(), "3".into()],
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        assert_eq!(read(&write(&built())).unwrap(), built());
    }

    #[test]
    fn a_manifest_that_lacks_something_names_it() {
        for key in ["source", "bitstream", "bytes", "luts", "mhz", "nextpnr"] {
            let text: Vec<_> = write(&built()).lines().filter(|l| !l.starts_with(key)).map(str::to_owned).collect();
            let error = read(&text.join("\n")).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
        let error = read(&write(&built()).replace("[3, 30]", "[3]")).unwrap_err().to_string();
        assert!(error.contains("luts"), "{error}");
    }
}
