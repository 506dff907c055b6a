//! Faults in the work of several members, and in what the log leaves out or holds once, which a
//! test plants to show that it finds them.

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A member writes its commit word before the others have their part of the transaction.
    CommitsWithoutAgreement,
    /// Members that were only stored to are not waited for.
    ForgetsStores,
    /// Asynchronous commits on other members are not waited for before a later one is sent.
    ForgetsEarlierCommits,
    /// What an asynchronous commit on one member has freed is stored to at once on another.
    ReusesFreedSpaceAtOnce,
    /// A durable commit returns when it is sent.
    AcknowledgesOnSending,
    /// A redo log frees the slots of the one before on members that it has nothing on.
    FreesSlotsOfOthers,
    /// Recovery judges each member by its own words.
    JudgesMembersAlone,
    /// Recovery deletes the logs of a member before it has undone on the next.
    DeletesBeforeOthersUndo,
    /// Recovery leaves redo logs that were not committed as they are.
    LeavesRedoLogs,
    /// Recovery takes bytes at home for right, whatever their checksum.
    SkipsHomeSums,
    /// Recovery compares the bytes at home also of records that are known to have been durable.
    IgnoresWhatIsKnown,
    /// New objects go home to space that was freed by a commit that is not durable.
    ReusesFreedSpace,
    /// What the log holds goes home over bytes of which the log does not show that they were
    /// durable.
    LeavesRecordsUnconfirmed,
    /// Recovery leaves records that do not count in the log while it replays the others.
    LeavesTornRecords,
    /// Of a place that is longer than its object the log holds the object alone, where it leaves
    /// out what is as it was.
    ForgetsWhatIsBehind,
    /// New bytes go home over old ones of which a recovery would replay older records.
    LeavesRecordsBeneath,
}

#[cfg(test)]
impl Fault {
    pub const ALL: [Fault; 9] = [
        Fault::CommitsWithoutAgreement,
        Fault::ForgetsStores,
        Fault::ForgetsEarlierCommits,
        Fault::ReusesFreedSpaceAtOnce,
        Fault::AcknowledgesOnSending,
        Fault::FreesSlotsOfOthers,
        Fault::JudgesMembersAlone,
        Fault::DeletesBeforeOthersUndo,
        Fault::LeavesRedoLogs,
    ];
    /// Those of bytes that are written once.
    pub const WRITTEN_ONCE: [Fault; 5] = [
        Fault::SkipsHomeSums,
        Fault::IgnoresWhatIsKnown,
        Fault::ReusesFreedSpace,
        Fault::LeavesRecordsUnconfirmed,
        Fault::LeavesTornRecords,
    ];
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Whether this fault was planted on this thread.
#[cfg(test)]
pub(crate) fn planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// Nothing is planted outside of tests.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn planted(_: Fault) -> bool {
    false
}

/// Plants a fault on this thread, from now on.
#[cfg(test)]
pub(crate) fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
}
