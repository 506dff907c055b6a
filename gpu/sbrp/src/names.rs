//! The vocabulary of GPU persistency: models, scopes, operations.

use std::fmt;

/// A persistency model: which stores to persistent memory (PM) must be durable when another is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Model {
    /// Stores become durable in the order in which they become visible (Pelley et al., ISCA '14;
    /// section 2 of the paper).
    Strict,
    /// GPM's implicit model (section 4): every ordering operation is a barrier of the whole system
    /// that waits until the thread's earlier persists are durable. It drains volatile stores, too.
    Epoch,
    /// The same, but a barrier drains stores to PM only ("Epoch" of the paper's figures, section
    /// 7). What may be durable after a crash is the same; what a barrier costs is not.
    EpochPm,
    /// Boxes 1 and 2 of the paper to the letter, with their holes.
    SbrpAsPublished,
    /// Scoped buffered release persistency, completed: same location, cumulativity, flags in PM,
    /// end of a kernel.
    Sbrp,
}

impl Model {
    /// All models, from the strongest on.
    pub const ALL: [Model; 5] = [Model::Strict, Model::Epoch, Model::EpochPm, Model::Sbrp, Model::SbrpAsPublished];

    /// The name in litmus files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Model::Strict => "strict",
            Model::Epoch => "epoch",
            Model::EpochPm => "epoch-pm",
            Model::SbrpAsPublished => "sbrp-as-published",
            Model::Sbrp => "sbrp",
        }
    }

    /// The model of a name.
    pub fn from_name(name: &str) -> Option<Model> {
        Model::ALL.into_iter().find(|model| model.name() == name)
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which threads an operation is about; wider scopes are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The threads of the block.
    Block,
    /// The threads of the GPU.
    Device,
    /// The threads of all GPUs and of the host. Of fences only: no persist operation has it.
    System,
}

impl Scope {
    /// The name in litmus files.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Block => "block",
            Scope::Device => "dev",
            Scope::System => "sys",
        }
    }

    /// Whether the scope of a thread's operation holds another thread, which is of the same block
    /// or not. There is one GPU.
    pub fn holds(self, same_block: bool) -> bool {
        same_block || self >= Scope::Device
    }
}

/// What a thread does, as far as persistency is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A store, to PM or to volatile memory.
    Store,
    /// A load.
    Load,
    /// `oFence()`: persists before it are ordered before persists behind it.
    OFence,
    /// `dFence()`: as `oFence`, and persists before it are durable when it returns.
    DFence,
    /// `pAcq_block(x)`, `pAcq_dev(x)`.
    Acquire(Scope),
    /// `pRel_block(x, value)`, `pRel_dev(x, value)`.
    Release(Scope),
    /// A fence of the volatile memory model: `__threadfence_block()`, `__threadfence()`,
    /// `__threadfence_system()`.
    Fence(Scope),
    /// `__syncthreads()`.
    Barrier,
}
