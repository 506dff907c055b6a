//! Where the card stands between power-up and power cut.

/// Where the card stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading the arm, progress and firmware words.
    Words,
    /// Loading the firmware in force.
    BootFirmware,
    /// Reading its body.
    Body,
    /// Replaying items one after the other.
    Replay,
    /// Storing the arm word of the next generation.
    Arm,
    /// Taking work.
    Open,
    /// Draining for a function-level reset.
    Reset,
    /// Draining for a shutdown.
    ShutDown,
    /// Storing the clean word.
    Clean,
    /// Saving.
    Saving,
    /// Clean or saved: waiting for power to go.
    Saved,
    /// A save was torn.
    Loss,
    /// A save waits for its firmware.
    Missing,
}
