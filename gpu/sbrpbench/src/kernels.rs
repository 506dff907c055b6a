//! The programs' kernels, in the three lowerings of `gpu/kernels/nearpm_sbrp.cuh`.

use std::sync::LazyLock;

use anyhow::{Context, Result};
use nearpm_ptx::{Entry, Module, ParseError};

/// What the six operations are lowered to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    /// Operations of hardware that knows SBRP.
    Hardware,
    /// The same, each with a fence for volatile memory.
    Gpm,
    /// A GPU of today.
    Card,
}

type Parsed = LazyLock<Result<Module, ParseError>>;

static HARDWARE: Parsed = LazyLock::new(|| Module::parse(include_str!("../../kernels/ptx/sbrp.ptx")));
static GPM: Parsed = LazyLock::new(|| Module::parse(include_str!("../../kernels/ptx/sbrp_gpm.ptx")));
static CARD: Parsed = LazyLock::new(|| Module::parse(include_str!("../../kernels/ptx/sbrp_card.ptx")));

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
