//! The programs' kernels, in the three lowerings of `gpu/kernels/nearpm_sbrp.cuh`.

use std::sync::LazyLock;

use anyhow::{Context, Result};
use nearpm_ptx::{Entry, Module, ParseError};

/// What the six operations are lowered to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lowering {
    /// Operations of hardware that knows SBRP.
    Hardware,
    /// The same, each with a fence for volatile memory.
    Gpm,
    /// A GPU of today.
    Card,
}

type Parsed = LazyLock<Result<Module, ParseError>>;

const TEXT: &str = include_str!("../../kernels/ptx/sbrp.ptx");
static HARDWARE: Parsed = LazyLock::new(|| Module::parse(text(Lowering::Hardware)));
static GPM: Parsed = LazyLock::new(|| Module::parse(text(Lowering::Gpm)));
static CARD: Parsed = LazyLock::new(|| Module::parse(text(Lowering::Card)));

/// All kernels, in PTX.
pub fn text(lowering: Lowering) -> &'static str {
    match lowering {
        Lowering::Hardware => TEXT,
        Lowering::Gpm => include_str!("../../kernels/ptx/sbrp_gpm.ptx"),
        Lowering::Card => include_str!("../../kernels/ptx/sbrp_card.ptx"),
    }
}

/// A kernel.
///
/// # Errors
/// There is none of that name.
pub fn kernel(lowering: Lowering, name: &str) -> Result<&'static Entry> {
    let module = match lowering {
        Lowering::Hardware => &HARDWARE,
        Lowering::Gpm => &GPM,
        Lowering::Card => &CARD,
    };
    let module = module.as_ref().map_err(Clone::clone).context("the kernels of the programs")?;
    Ok(module.entry(name)?)
}

/// A persist operation of a kernel, and what is left of it in a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The kernel.
    pub kernel: String,
    /// Which of its operations of this kind, from 0.
    pub number: usize,
    /// The operation.
    pub right: &'static str,
    /// What stands in its place.
    pub wrong: &'static str,
    /// Where it stands in the text.
    at: usize,
}

/// Fences that are left out, scopes that are made narrower, and releases and acquires that are made
/// plain.
const CHANGES: [(&str, &str); 6] = [
    ("fence.acq_rel.gpu;", ""),
    ("fence.acq_rel.sys;", ""),
    ("st.relaxed.gpu", "st.relaxed.cta"),
    ("ld.relaxed.gpu", "ld.relaxed.cta"),
    ("st.relaxed.cta", "st.volatile"),
    ("ld.relaxed.cta", "ld.volatile"),
];

/// The programs' kernels.
pub const KERNELS: [&str; 10] = [
    "sbrp_kvs_put",
    "sbrp_kvs_recover",
    "sbrp_hm_put",
    "sbrp_hm_recover",
    "sbrp_srad_noise",
    "sbrp_srad_update",
    "sbrp_red",
    "sbrp_mq",
    "sbrp_mq_recover",
    "sbrp_scan",
];

/// Each change of one operation of a kernel.
pub fn changes(kernel: &str) -> Vec<Change> {
    let Some(start) = TEXT.find(&format!(".entry {kernel}(")) else { return Vec::new() };
    let text = &TEXT[start..start + TEXT[start..].find("\n}").unwrap_or(TEXT.len() - start)];
    let of = |(right, wrong): (&'static str, &'static str)| {
        let places = text.match_indices(right).enumerate();
        places.map(move |(number, (place, _))| Change {
            kernel: kernel.into(),
            number,
            right,
            wrong,
            at: start + place,
        })
    };
    CHANGES.into_iter().flat_map(of).collect()
}

impl Change {
    /// The kernels with it.
    ///
    /// # Errors
    /// They are no PTX.
    pub fn kernels(&self) -> Result<Module> {
        let text = format!("{}{}{}", &TEXT[..self.at], self.wrong, &TEXT[self.at + self.right.len()..]);
        Module::parse(&text).context("the changed kernels")
    }
}
