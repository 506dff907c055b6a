//! Every latency of the card, in card cycles, under the unit that it stands for.
//!
//! The values follow the table at the end of `docs/hardware.md`. They are to be fitted on micro-traces of the RTL, and
//! on nothing else: no figure of a workload ever changes them.

/// Stage latencies in card cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// HostPort: address handshake to numbering of a host access. A further access enters each cycle.
    pub host_accept: u64,
    /// HostPort: numbering of a write to its B.
    pub host_answer: u64,
    /// HostPort: a refusal, from the handshake to its answer.
    pub host_refuse: u64,
    /// HostQueue: numbering to a complete row of dependency bits.
    pub host_row: u64,
    /// HostQueue: last retirement that a line waited for to its request at the memory port.
    pub host_wake: u64,
    /// HostQueue: read data from the memory port to R at the host port, retirement included.
    pub host_return: u64,
    /// CommandPort: handshake of a beat that does not fill a slot to its B.
    pub command_merge: u64,
    /// CommandPort and Decoder: handshake of the beat that fills a slot to numbering or refusal.
    pub command_accept: u64,
    /// CommandPort: numbering, refusal or drop to B.
    pub command_answer: u64,
    /// CommandPort: handshake of a read to the status line.
    pub command_read: u64,
    /// Registers: handshake to answer.
    pub register: u64,
    /// OrderingPoint: numbering of a command to a complete row of dependency bits.
    pub command_row: u64,
    /// DependencyMatrix: last retirement that a command waited for to its slot being ready.
    pub command_wake: u64,
    /// Dispatcher: issue of a command to the first instruction.
    pub issue: u64,
    /// Sequencer: one instruction to the next.
    pub instruction: u64,
    /// Sequencer and DmaEngine: copy instruction to its first read burst at the memory port.
    pub copy_to_read: u64,
    /// DmaEngine: last line of a burst from memory to its write burst at the memory port.
    pub read_to_write: u64,
    /// MetadataGenerator, LoadStoreUnit: the operation at the front to its write burst at the memory port.
    pub word_to_write: u64,
    /// NearPmUnit: last B to `done` at the dispatcher.
    pub unit_done: u64,
    /// NearPmUnit: last B to `progress`, and from there to the next instruction.
    pub progress: u64,
    /// Dispatcher: `done` to retirement.
    pub retire: u64,
    /// CompletionWriter: retirement or refusal to the record on `m_axi_cpl`.
    pub completion: u64,
    /// CompletionWriter: one record to the next.
    pub completion_gap: u64,
    /// MemoryPort: direction batch, in beats.
    pub batch_beats: u32,
    /// Persistence: one step of its state machine to the request at the memory port.
    pub system_step: u64,
    /// Persistence: cycles without activity that count as quiet.
    pub quiet: u64,
    /// Persistence: read-out of a saved line, one line to the next.
    pub save_line: u64,
}

impl Timing {
    /// The card of `docs/hardware.md`.
    pub const CARD: Timing = Timing {
        host_accept: 2,
        host_answer: 1,
        host_refuse: 3,
        host_row: 2,
        host_wake: 2,
        host_return: 2,
        command_merge: 2,
        command_accept: 6,
        command_answer: 1,
        command_read: 3,
        register: 3,
        command_row: 4,
        command_wake: 2,
        issue: 2,
        instruction: 1,
        copy_to_read: 3,
        read_to_write: 3,
        word_to_write: 1,
        unit_done: 1,
        progress: 2,
        retire: 1,
        completion: 3,
        completion_gap: 3,
        batch_beats: 32,
        system_step: 2,
        quiet: 16,
        save_line: 4,
    };
}

impl Default for Timing {
    fn default() -> Self {
        Timing::CARD
    }
}
