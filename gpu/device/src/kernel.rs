//! Kernels as PTX text, and launches of them.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

/// PTX text with a name. Devices load it when it is first launched.
#[derive(Clone, Debug)]
pub struct Module {
    name: Cow<'static, str>,
    ptx: Cow<'static, str>,
    identity: u64,
}

impl Module {
    /// A module of PTX text.
    pub fn new(name: impl Into<Cow<'static, str>>, ptx: impl Into<Cow<'static, str>>) -> Module {
        let (name, ptx) = (name.into(), ptx.into());
        let mut hasher = DefaultHasher::new();
        (&name, &ptx).hash(&mut hasher);
        Module { name, ptx, identity: hasher.finish() }
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its text.
    pub fn ptx(&self) -> &str {
        &self.ptx
    }

    /// Tells it from modules of other text, so that devices load it once.
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// A kernel of it.
    pub fn kernel(&self, entry: &'static str) -> Kernel<'_> {
        Kernel { module: self, entry }
    }
}

/// A kernel: a module and the name of one of its entries.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'m> {
    /// Where it is.
    pub module: &'m Module,
    /// Its name, as it is declared `extern "C"`.
    pub entry: &'static str,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// 32-bit integer.
    U32(u32),
    /// 64-bit integer, or an address of the device.
    U64(u64),
    /// `float`.
    F32(f32),
}

impl From<u32> for Argument {
    fn from(value: u32) -> Argument {
        Argument::U32(value)
    }
}

impl From<u64> for Argument {
    fn from(value: u64) -> Argument {
        Argument::U64(value)
    }
}

impl From<f32> for Argument {
    fn from(value: f32) -> Argument {
        Argument::F32(value)
    }
}

/// Shape and arguments of a one-dimensional launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Blocks, not 0.
    pub blocks: u32,
    /// Threads of a block, 1 to 1024.
    pub threads: u32,
    /// Arguments in order.
    pub arguments: Vec<Argument>,
}

impl Launch {
    /// A launch of `blocks` blocks of `threads` threads.
    pub fn new<const N: usize>(blocks: u32, threads: u32, arguments: [Argument; N]) -> Launch {
        Launch { blocks, threads, arguments: arguments.to_vec() }
    }

    /// As many blocks of `threads` threads as `items` items need, one a thread.
    pub fn over<const N: usize>(items: u64, threads: u32, arguments: [Argument; N]) -> Launch {
        Launch::new(items.div_ceil(threads.into()).max(1) as u32, threads, arguments)
    }
}
