//! Why a card cannot be reached over vfio-user, and what to do about it.

nearpm_interface::debug_as_display!(VfioUserError);

/// Why [`super::open`] gave up.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum VfioUserError {
    /// Nobody serves the socket.
    #[error("nobody serves a card on {path} ({source}): start the simulator (nearpm-sim --socket {path})")]
    Absent {
        /// The socket.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The card has another user.
    #[error("the card on {path} is in use by another process: end that one first")]
    Busy {
        /// The socket.
        path: String,
    },
    /// The card is shared, and has as many users as it can have.
    #[error("every command page of the shared card on {path} has a process: end one of them first")]
    Full {
        /// The socket.
        path: String,
    },
    /// The server does not speak as a card's does.
    #[error("the server on {path} is none of a card: {what}; give the socket of nearpm-sim")]
    NotACard {
        /// The socket.
        path: String,
        /// What is missing.
        what: &'static str,
    },
    /// The server did not answer, ended, or refused.
    #[error("{path}: cannot {what}: {source}; look at what the simulator says, and start it again")]
    Failed {
        /// The socket.
        path: String,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}
