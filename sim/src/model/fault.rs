//! Protections that a test can switch off, one at a time, to show that its check would notice.

/// One disabled protection. The rule in brackets is the one of `docs/contract.md` that it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A host access is compared only with commands that run, not with those that wait (C1).
    StorePassesWaitingCommand,
    /// A command is not compared with held host accesses (C1).
    CommandPassesHeldStore,
    /// Host loads wait for nothing (C1).
    LoadsAreNotOrdered,
    /// Ordered commands wait only for conflicts, not for all earlier commands of (pool, thread)
    /// (C1, C4).
    CommitIsNotOrdered,
    /// A command retires when its writes have been handed to the memory, not when they were
    /// answered (C2).
    ReleaseBeforeAnswer,
    /// A filled slot executes whatever its checksum (C3).
    HalfCommandExecutes,
    /// A read-back counts commands that have arrived but are not numbered (C4).
    AcceptedTooEarly,
    /// Ranges are not checked against the pool (C5).
    RangesAreNotChecked,
    /// A log that failed retires like any other: its stores go on (C5).
    FailedLogReleasesStores,
    /// A commit is executed although a log of its (pool, thread) failed (C5).
    CommitAfterFailedLog,
    /// Exact copies write the whole lines that they touch (C6).
    RollbackRoundsToLines,
    /// The head of the save is written before the body, and its seal is not checked (C7). Each
    /// alone does no harm.
    TornSaveIsReplayed,
    /// Any valid save is replayed, whatever the arm word says (C7).
    TornSaveFallsBack,
    /// Replay ignores the progress word (C7).
    ReplayStartsOver,
    /// Host accesses are served while a replay runs (C7).
    WindowOpensEarly,
    /// A function-level reset forgets what was accepted (C8).
    ResetDropsWork,
    /// A commit waits for no other device (several devices).
    SynchronisesWithNobody,
    /// A device reports when a commit is accepted, not when everything of its thread before it is
    /// durable (several devices).
    ReportsWhenAccepted,
    /// A device reports a commit that stays behind one that waits (several devices).
    ReportsBehindParked,
    /// A later commit passes an earlier one of its thread that waits (several devices).
    LaterPassesParked,
    /// A command that waits for other devices keeps its request slot (several devices, C10).
    ParkedHoldsItsSlot,
    /// A command that finds no place to wait in stops the command port instead of being refused
    /// (several devices, C10).
    FullTableStalls,
    /// Commands that wait for other devices are not in the save (several devices, C7).
    ParkedIsNotSaved,
    /// A command that waits can be taken away while its device speaks (several devices).
    DiscardsWhileSpeaking,
    /// Nobody asks for a message that was lost (several devices).
    NobodyAsks,
    /// The dispatcher prefers the lowest page instead of taking turns (C10).
    FloodStarves,
}
