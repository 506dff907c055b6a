//! What the host counts.

/// Makes the struct, and the sum of two.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Counters since the machine was made: of one card, or the sum over all with what belongs
        /// to none.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Statistics {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl std::ops::AddAssign for Statistics {
            fn add_assign(&mut self, other: Statistics) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

counters! {
    /// Load calls.
    loads,
    /// Store calls, whole-line stores included.
    stores,
    /// Lines that loads found in the cache.
    load_hits,
    /// Lines that loads had to wait for.
    load_misses,
    /// Lines fetched because part of them was stored to.
    store_misses,
    /// Lines fetched ahead of their use: as the program said, or unasked by an adversarial host.
    prefetches,
    /// Dirty lines written back on request.
    write_backs,
    /// Dirty lines written back by eviction.
    evictions,
    /// Fences: of no card.
    fences,
    /// Reads sent over the link.
    reads_sent,
    /// Posted writes sent over the link.
    writes_sent,
    /// Posted writes to command pages among them.
    command_writes,
    /// Time that cores stalled for posted credits, in picoseconds.
    credit_stall_ps,
    /// Payload bytes towards the card.
    bytes_down,
    /// Payload bytes from the card.
    bytes_up,
    /// Writes of the card to host memory.
    dma_writes,
    /// Writes of the card to addresses where it may not write: dropped.
    dma_faults,
    /// Messages that the card sent to its peers.
    peer_messages,
    /// Messages of the card to one of its peers that a test dropped.
    peer_drops,
    /// Power cuts: of no card.
    cuts,
}
