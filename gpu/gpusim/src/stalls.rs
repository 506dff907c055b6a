//! What warps and persist buffers wait for, where that is asked for.

/// Why a warp does not go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Why {
    #[default]
    Nothing,
    /// What it has loaded is not there yet.
    Memory,
    /// It loads again and again what another warp is to release.
    Acquire,
    Line,
    Room,
    Eviction,
    Durability,
}

/// Why the first entry of a persist buffer does not leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HeadState {
    /// There is none.
    #[default]
    Empty,
    /// A warp of it is marked.
    Marked,
    /// As many persists are under way as the window allows.
    Window,
}

/// Cycles that warps with a block, and persist buffers, have spent in each state: summed over all
/// warps, and over all SMs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stalls {
    /// Warps: they issue, or wait for arithmetic, for L1 or for their turn.
    pub issues: u64,
    /// They wait for what they have loaded.
    pub memory: u64,
    /// For another warp's release, in a loop of acquires.
    pub acquire: u64,
    /// For other warps at a barrier, or until their block ends.
    pub barrier: u64,
    /// For a buffered line that they have ordered since.
    pub line: u64,
    /// For room in the buffer.
    pub room: u64,
    /// For an eviction.
    pub eviction: u64,
    /// Until persists are durable.
    pub durability: u64,
    /// Persist buffers: no entry is there.
    pub head_empty: u64,
    /// The first entry waits for acknowledgements, as a warp of it is marked (FSM).
    pub head_marked: u64,
    /// It waits for the window.
    pub head_window: u64,
}

impl Stalls {
    pub(crate) fn warp(&mut self, why: Why, cycles: u64) {
        *match why {
            Why::Nothing => &mut self.issues,
            Why::Memory => &mut self.memory,
            Why::Acquire => &mut self.acquire,
            Why::Line => &mut self.line,
            Why::Room => &mut self.room,
            Why::Eviction => &mut self.eviction,
            Why::Durability => &mut self.durability,
        } += cycles;
    }

    pub(crate) fn head(&mut self, state: HeadState, cycles: u64) {
        *match state {
            HeadState::Empty => &mut self.head_empty,
            HeadState::Marked => &mut self.head_marked,
            HeadState::Window => &mut self.head_window,
        } += cycles;
    }

    /// All of warps' cycles.
    pub fn warps(&self) -> u64 {
        let waits = self.line + self.room + self.eviction + self.durability;
        self.issues + self.memory + self.acquire + self.barrier + waits
    }

    /// All of persist buffers' cycles.
    pub fn heads(&self) -> u64 {
        self.head_empty + self.head_marked + self.head_window
    }
}
