//! How commands come to the ordering point.

/// What a command has behind it when it comes to the ordering point.
#[derive(Clone, Copy, Default)]
pub struct Origin {
    /// Instruction at which a replay resumes; 0 for the entry of the program.
    pub resume: u8,
    /// It has waited for other devices.
    pub released: bool,
    /// Order number under which it was accepted; 0 for one that comes first now.
    pub accepted: u64,
}

/// How a command fared at the ordering point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    Numbered,
    Refused,
    /// Every slot is taken.
    Full,
}
