//! Every latency of the card, in card cycles, under the unit that it stands for.
//!
//! The values are fitted on micro-traces of the RTL, and on nothing else: no figure of a workload
//! ever changes them. A test of the `nearpm-tests` package runs the micro-traces and says which
//! value has to change when the RTL did.

/// Beats of a direction batch at the memory port; a constant of the hardware, not fitted.
pub const BATCH_BEATS: u32 = 32;

/// Makes the struct, its values in force, and access to each latency by name.
macro_rules! timing {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)+) => {
        /// Stage latencies in card cycles.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Timing {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl Timing {
            /// The card of `docs/hardware.md`.
            pub const CARD: Timing = Timing { $($name: $value,)+ };

            /// Every latency with its name, to be looked at or changed.
            pub fn latencies(&mut self) -> Vec<(&'static str, &mut u64)> {
                vec![$((stringify!($name), &mut self.$name),)+]
            }
        }
    };
}

timing! {
    /// HostPort: address handshake to numbering of a host access.
    host_accept = 3,
    /// HostPort: numbering of a write to its B.
    host_answer = 0,
    /// HostPort: handshake of a store to the next store's.
    write_to_write = 2,
    /// HostPort: handshake of a store to that of a load behind it.
    write_to_read = 3,
    /// HostPort: handshake of a load to the next access'.
    read_gap = 1,
    /// CommandPort: handshake of a host access to that of a command behind it.
    host_to_command = 2,
    /// HostPort: a refusal, from the handshake to its answer.
    host_refuse = 3,
    /// HostQueue: numbering to a complete row of dependency bits.
    host_row = 5,
    /// HostQueue: last retirement that a line waited for to its request at the memory port.
    host_wake = 6,
    /// HostQueue: one request of a direction to the next.
    host_issue_gap = 4,
    /// HostQueue: read data from the memory port to R at the host port, retirement included.
    host_return = 0,
    /// CommandPort: handshake of a beat that does not fill a slot to its B.
    command_merge = 2,
    /// CommandPort and Decoder: handshake of the beat that fills a slot to numbering or refusal.
    command_accept = 13,
    /// CommandPort: numbering, refusal or drop to B.
    command_answer = 1,
    /// CommandPort: handshake of a whole command to the next one's.
    command_gap = 8,
    /// HostPort: numbering of a command to the handshake of a host access behind it.
    command_to_host = 0,
    /// CommandPort: handshake of a read to the status line.
    command_read = 3,
    /// Registers: handshake to answer.
    register = 3,
    /// OrderingPoint: numbering of a command to a complete row of dependency bits.
    command_row = 11,
    /// DependencyMatrix: last retirement that a command waited for to its slot being ready.
    command_wake = 6,
    /// Dispatcher: issue of a command to the first instruction.
    issue = 0,
    /// Dispatcher: one issue to the next.
    issue_gap = 6,
    /// Sequencer: one instruction to the next.
    instruction = 7,
    /// Sequencer and DmaEngine: copy instruction to its first read burst at the memory port.
    copy_to_read = 6,
    /// DmaEngine: last line of a burst from memory to its write burst at the memory port.
    read_to_write = 2,
    /// DmaEngine: one burst of a direction to the next.
    burst_gap = 0,
    /// MetadataGenerator, LoadStoreUnit: the operation at the front to its write burst at the
    /// memory port.
    word_to_write = 6,
    /// NearPmUnit: last B to `done` at the dispatcher.
    unit_done = 3,
    /// NearPmUnit: last B to `progress`, and from there to the next instruction.
    progress = 6,
    /// Dispatcher: `done` to retirement.
    retire = 0,
    /// Dispatcher: one retirement to the next.
    retire_gap = 4,
    /// CompletionWriter: retirement or refusal to the record on `m_axi_cpl`.
    completion = 0,
    /// CompletionWriter: one record to the next.
    completion_gap = 1,
    /// Persistence: one step of its state machine to the request at the memory port.
    system_step = 2,
    /// Persistence: cycles without activity that count as quiet.
    quiet = 16,
    /// Persistence: read-out of a saved line, one line to the next.
    save_line = 4,
}

impl Default for Timing {
    fn default() -> Self {
        Timing::CARD
    }
}
