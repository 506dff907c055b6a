//! Memory that knows what could have persisted.

/// What a probe was called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A store.
    Store,
    /// A write-back.
    WriteBack,
    /// A fence.
    Fence,
}

/// What survives a power cut.
pub type Image = Vec<u8>;

/// Memory with a model of the processor's caches.
pub struct TestMemory {}
