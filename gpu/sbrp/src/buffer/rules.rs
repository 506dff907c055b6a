//! The rules of the buffer, one by one.

macro_rules! rules {
    ($($variant:ident, $name:literal, $source:literal, $text:literal;)*) => {
        /// A rule of the persist buffer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum BufferRule {
            $(#[doc = $text] $variant,)*
        }

        impl BufferRule {
            /// All rules.
            pub const ALL: &'static [BufferRule] = &[$(BufferRule::$variant),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(BufferRule::$variant => $name),* }
            }

            /// Where it comes from.
            pub fn source(self) -> &'static str {
                match self { $(BufferRule::$variant => $source),* }
            }

            /// The rule in a sentence.
            pub fn text(self) -> &'static str {
                match self { $(BufferRule::$variant => $text),* }
            }
        }
    };
}

rules! {
    HitLooksForOrder, "hit-looks-for-order", "6.1, persist operation",
        "A persist that hits a line waits if an ordering entry of its warp lies behind the line's entry.";
    FenceMarks, "fence-marks", "6.1, intra-thread PMO",
        "An `oFence` at the head marks its warps in the flush status mask (FSM).";
    AcquireMarks, "acquire-marks", "6.1, intra-threadblock PMO",
        "So does a block acquire.";
    DeviceAcquireMarks, "device-acquire-marks", "ours: the paper only invalidates the line",
        "So does a device acquire, which may read a block release of its own block.";
    ReleaseMarks, "release-marks", "6.1, intra-threadblock PMO",
        "So does a block release: for its own store, if that goes to PM.";
    HeadWaits, "head-waits", "6.1, intra-thread PMO",
        "A persist at the head whose warp is marked waits until no flush is outstanding.";
    MarksClearAtZero, "marks-clear-at-zero", "6.1, intra-thread PMO",
        "Marks are cleared when the counter of outstanding flushes (ACTR) is zero, not before.";
    FlushCounts, "flush-counts", "6, hardware modifications",
        "Every flush counts as outstanding until it is acknowledged.";
    CounterHolds, "counter-holds", "ours: 8 bits, and more lines than they count",
        "A flush waits while the counter is full.";
    EvictionLooksForOrder, "eviction-looks-for-order", "6.1, eviction",
        "A line is evicted only if no ordering entry lies before its entry.";
    EvictionLooksAtMarks, "eviction-looks-at-marks", "6.1, intra-thread PMO",
        "And only if none of its warps is marked.";
    MergeAdjacent, "merge-adjacent", "6.1, intra-thread PMO",
        "Fences of two warps share an entry only if nothing lies between.";
    DeviceReleaseWaits, "device-release-waits", "6.1, inter-threadblock PMO",
        "A device release, and a device fence, holds its warp (ODM, then EDM).";
    DFenceHolds, "dfence-holds", "6.1, durability",
        "So does a `dFence`.";
    HeldUntilZero, "held-until-zero", "6.1, inter-threadblock PMO",
        "What is held at the head goes on when no flush is outstanding.";
    HoldsTheHead, "holds-the-head", "ours: or others' persists keep the counter above zero for ever",
        "Nothing behind it is flushed until then.";
    OrderFrees, "order-frees", "ours: as above; the paper's text has it wait for the counter alone",
        "A warp that waits for a line (EDM) goes on when its order leaves the head, too.";
    FlagDurableFirst, "flag-durable-first", "ours: completed 3",
        "The store of a device release to PM is durable before others see it.";
    EndDrains, "end-drains", "ours: completed 6",
        "The end of a kernel is told when the buffers are empty and no flush is outstanding.";
}

/// The rules in force: all, or all but one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BufferRules {
    dropped: Option<BufferRule>,
}

impl BufferRules {
    /// Every rule.
    pub fn all() -> BufferRules {
        BufferRules::default()
    }

    /// Every rule but one.
    pub fn without(rule: BufferRule) -> BufferRules {
        BufferRules { dropped: Some(rule) }
    }

    /// Whether a rule is in force.
    pub fn keep(&self, rule: BufferRule) -> bool {
        self.dropped != Some(rule)
    }
}
