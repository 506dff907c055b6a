//! The rules of the model, one by one, with their sources.
//!
//! Each rule can be dropped, which is how the litmus tests are themselves tested.

/// What the rule binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The processor and the link.
    Processor,
    /// A card that runs.
    Card,
    /// Several cards together.
    Cards,
    /// Power failure, save and replay.
    Failure,
    /// The recovery by software.
    Recovery,
}

macro_rules! rules {
    ($($variant:ident, $name:literal, $part:ident, $source:literal, $text:literal;)*) => {
        /// A rule of the model.
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

            /// What the rule binds.
            pub fn part(self) -> Part {
                match self { $(Rule::$variant => Part::$part),* }
            }

            /// Where the rule comes from: "paper" is NearPM (EuroSys '23), C1 to C10 and "several
            /// devices" are the contract.
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
    FenceDrainsStores, "fence-drains-stores", Processor, "C3",
        "A fence waits until the thread's write-combining buffers have gone to their links.";
    FenceWaitsForWriteBacks, "fence-waits-for-write-backs", Processor, "C9",
        "A fence waits for the write-backs and invalidations that the thread began before it.";
    LinkKeepsOrder, "link-keeps-order", Processor, "C1",
        "A link delivers posted writes, commands and reads in the order in which they were sent.";
    UncachedKeepsOrder, "uncached-keeps-order", Processor, "C3",
        "Uncached stores of one thread leave in program order.";
    ReadBackWaits, "read-back-waits", Processor, "C1, C4",
        "A read-back answers when everything that was sent on its link before it is accepted.";
    InvalidateDropsLine, "invalidate-drops-line", Processor, "C9",
        "An invalidation leaves no copy of the line in the caches.";
    WholeCommands, "whole-commands", Card, "C3",
        "A command is accepted when all its pieces have arrived, and never in part.";
    StoreWaitsForCommand, "store-waits-for-command", Card, "paper 4.1 invariants 1 and 2, C1",
        "A host store waits for every earlier command that reads or writes its line.";
    CommandWaitsForStore, "command-waits-for-store", Card, "paper 4.1 invariants 1 and 2, C1",
        "A command waits for every earlier host store to a line that it reads or writes.";
    CommandWaitsForCommand, "command-waits-for-command", Card, "paper 5.3.1, C1",
        "A command waits for every earlier command that it conflicts with.";
    StoreWaitsForStore, "store-waits-for-store", Card, "C1",
        "A host store waits for every earlier host store to its line.";
    LoadWaits, "load-waits", Card, "paper 4.1 invariant 1, C1",
        "A load waits for everything earlier that writes its line.";
    CommitWaitsForThread, "commit-waits-for-thread", Card, "C1",
        "A commit or switch waits for every earlier command of its pool and thread.";
    ReleaseAfterAnswer, "release-after-answer", Card, "C2; paper 4.1 invariant 2 permits an earlier release of what is only read",
        "The ranges of a command are released when the memory has answered all its writes.";
    RecordAfterAnswer, "record-after-answer", Card, "C2, C4",
        "A completion record comes when all writes of its command are durable.";
    WaitIsABarrier, "wait-is-a-barrier", Card, "paper 4.1 invariant 1, second half",
        "The `wait` of a procedure is passed when the procedure's earlier writes are durable.";
    ResetDrains, "reset-drains", Card, "C8",
        "A function-level reset executes what is accepted, and forgets only parts of commands.";
    ResetForgetsParts, "reset-forgets-parts", Card, "C3, C8",
        "A function-level reset forgets the pieces of incomplete commands.";
    LatchHoldsStores, "latch-holds-stores", Card, "C5",
        "The stores that a failed log covers are held and never reach memory.";
    LatchRefusesCommit, "latch-refuses-commit", Card, "C5",
        "A commit of a thread whose log failed is refused.";
    LostStoreLatches, "lost-store-latches", Card, "C5",
        "A store that memory refuses latches every thread of its pool, as a failed log does.";
    LostStoreIsTold, "lost-store-is-told", Card, "C5",
        "A read-back behind a lost store ends with an error.";
    SyncWaitsForPeers, "sync-waits-for-peers", Cards, "paper 4.2, 5.3.2, several devices",
        "What stands behind a `sync` starts when every participant has reported.";
    PersistBeforeSync, "persist-before-sync", Cards, "paper 4.2 invariant 3",
        "A device reports when every earlier command of the thread on it is durable.";
    ParkedHoldsNothing, "parked-holds-nothing", Cards, "several devices, C10",
        "A command that waits for its peers holds no slot of the FIFO, no unit and no range.";
    AcceptedIsSaved, "accepted-is-saved", Failure, "paper 5.3.3, C7",
        "What is accepted and not retired survives the power failure.";
    ParkedIsSaved, "parked-is-saved", Failure, "paper 5.3.3, several devices",
        "So does a command that waits for its peers.";
    ReplayInOrder, "replay-in-order", Failure, "C7",
        "The replay executes saved items in the order of their arrival.";
    ReplayResumes, "replay-resumes", Failure, "C7, decision 3",
        "A replay that is cut goes on behind the last item that is durable.";
    ProgressAtWait, "progress-at-wait", Failure, "C7, decision 3",
        "A saved command goes on behind the last `wait` that it passed.";
    WindowClosed, "window-closed", Failure, "C7",
        "Nobody reads the memory before the replay is complete.";
    TornSaveIsLoss, "torn-save-is-loss", Failure, "C7",
        "A torn save is a reported loss; no older image is used instead.";
    LostStoreIsLoss, "lost-store-is-loss", Failure, "C7, decision 13",
        "A store that memory refused before the failure, or refuses in the replay, is a reported loss.";
    EntriesCertify, "entries-certify", Recovery, "C6",
        "A log entry counts when its head and its data are whole.";
    PastHoles, "past-holes", Recovery, "C6",
        "Recovery scans past entries that do not count.";
    ExactBytes, "exact-bytes", Recovery, "C6",
        "Undoing restores exactly the words that were logged.";
    NewestFirst, "newest-first", Recovery, "C6",
        "Entries of one thread are undone newest first.";
    EpochDeletes, "epoch-deletes", Recovery, "C6",
        "Entries up to the committed epoch do not count.";
    UncommittedIsUndone, "uncommitted-is-undone", Recovery, "paper 4.2 invariant 4, C6",
        "A transaction that is not committed is undone.";
    AnyEpochCommits, "any-epoch-commits", Recovery, "several devices",
        "A transaction is committed if the epoch of any participant has reached it.";
    AllAcceptedCommits, "all-accepted-commits", Recovery, "several devices",
        "A transaction is committed if every participant holds its accepted commit.";
    DiscardFirst, "discard-first", Recovery, "several devices; the order is this model's",
        "Recovery discards the waiting commands of what it will undo before it touches an epoch.";
    UndoBeforeDelete, "undo-before-delete", Recovery, "C7, several devices; the order is this model's",
        "Recovery undoes on all devices before it deletes a log on any.";
}

impl Rule {
    /// The rule of a name.
    pub fn from_name(name: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|rule| rule.name() == name)
    }
}

/// The rules in force: all, or all but one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    dropped: Option<Rule>,
}

impl Rules {
    /// Every rule.
    pub fn all() -> Rules {
        Rules::default()
    }

    /// Every rule but one.
    pub fn without(rule: Rule) -> Rules {
        Rules { dropped: Some(rule) }
    }

    /// Whether a rule is in force.
    pub fn keep(&self, rule: Rule) -> bool {
        self.dropped != Some(rule)
    }
}
