//! The rules of the models, one by one. Each can be dropped in both forms, which is how the litmus
//! tests are themselves tested.

use crate::Model;

macro_rules! rules {
    ($($variant:ident, $name:literal, $source:literal, $text:literal;)*) => {
        /// A rule of a model.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule {
            $(#[doc = $text] $variant,)*
        }

        impl Rule {
            /// All rules.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),*];

            /// The name in litmus files.
            pub fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name),* }
            }

            /// Where the rule comes from: a section of the paper, or "completed" with the choice
            /// that `docs/sbrp.md` defends.
            pub fn source(self) -> &'static str {
                match self { $(Rule::$variant => $source),* }
            }

            /// The rule in a sentence.
            pub fn text(self) -> &'static str {
                match self { $(Rule::$variant => $text),* }
            }
        }
    };
}

rules! {
    OFenceOrders, "ofence-orders", "Box 2, intra-thread",
        "Persists before an `oFence` or `dFence` of a thread are ordered before those behind it.";
    ReleaseAcquireOrders, "release-acquire-orders", "Box 2, inter-thread",
        "Persists before a release are ordered before persists behind an acquire that reads its value.";
    ScopesLimit, "scopes-limit", "Box 2, inter-thread",
        "A release and an acquire order only if the scope of each holds the other's thread.";
    FenceOrders, "fence-orders", "5.2",
        "A CUDA fence orders persists of its thread as an `oFence` does.";
    FencePattern, "fence-pattern", "2, 5 and 5.2",
        "Fences around a store and a load that reads it, or around a barrier, order as release and acquire of the narrowest scope do.";
    DFenceWaits, "dfence-waits", "Box 2, durability",
        "A `dFence` returns when the thread's earlier persists are durable.";
    DFenceCoversAcquired, "dfence-covers-acquired", "completed 5",
        "It waits for persists of others that are ordered before it, too.";
    Coherence, "coherence", "completed 1",
        "Stores of one block to one word become durable in the order in which they are visible.";
    Cumulativity, "cumulativity", "completed 2",
        "What a thread has acquired is ordered before what it releases.";
    ReleaseIsAPersist, "release-is-a-persist", "completed 3",
        "The store of a release to PM is ordered behind the thread's earlier persists.";
    FlagBeforeAcquirer, "flag-before-acquirer", "completed 3",
        "The store of a release to PM is ordered before the persists of who acquires it.";
    Buffered, "buffered", "completed 4; sections 1 and 4",
        "Ordering does not wait: only a `dFence` and the end of a kernel do.";
    KernelEndDrains, "kernel-end-drains", "completed 6",
        "The host is told of the end of a kernel when all its persists are durable.";
    BarrierWaits, "barrier-waits", "4, GPM's persistency model",
        "Epoch: a barrier waits until the thread's earlier persists are durable.";
    BarrierCoversObserved, "barrier-covers-observed", "4; GPM 5.4",
        "Epoch: and those whose values it has loaded, or that were handed to it.";
    PersistsFollowVisibility, "persists-follow-visibility", "2",
        "Strict: a store is durable only if every store that is visible before it is.";
}

impl Rule {
    /// The rule of a name.
    pub fn from_name(name: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|rule| rule.name() == name)
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// A model with the rules that are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semantics {
    /// The model.
    pub model: Model,
    rules: u32,
}

impl Semantics {
    /// A model with all its rules.
    pub fn of(model: Model) -> Semantics {
        use Rule::*;
        let all = Rule::ALL.iter().fold(0, |bits, rule| bits | rule.bit());
        let missing: &[Rule] = match model {
            Model::SbrpAsPublished => {
                &[DFenceCoversAcquired, Coherence, Cumulativity, ReleaseIsAPersist, FlagBeforeAcquirer, KernelEndDrains]
            }
            _ => &[],
        };
        Semantics { model, rules: missing.iter().fold(all, |bits, rule| bits & !rule.bit()) }
    }

    /// The same without a rule.
    pub fn without(self, rule: Rule) -> Semantics {
        Semantics { rules: self.rules & !rule.bit(), ..self }
    }

    /// Whether a rule is in force.
    pub fn keeps(&self, rule: Rule) -> bool {
        self.rules & rule.bit() != 0
    }

    /// Whether ordering operations are barriers without a scope.
    pub fn is_epoch(&self) -> bool {
        matches!(self.model, Model::Epoch | Model::EpochPm)
    }

    /// Whether persists follow the order of visibility.
    pub fn is_strict(&self) -> bool {
        self.model == Model::Strict
    }
}
