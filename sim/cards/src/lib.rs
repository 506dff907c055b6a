//! Simulated cards by name, and computers that have one.
//!
//! [`SimulatedCard`] says which card, and gives what makes such cards; [`Rig`] is a computer with
//! one and the pool of a job on it.

mod kind;
mod rig;
mod rtl;
pub mod waves;

pub use kind::{Cards, SimulatedCard};
pub use rig::{CardCounters, Rig};
pub use rtl::{rtl_cards, traced_rtl_cards};

/// One line with every cause: what, where, why. Some errors say their cause themselves.
pub fn sentence(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        whole if whole.contains(&cause) => said,
        whole => format!("{whole}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_cause_is_said_once() {
        let io = || std::io::Error::from_raw_os_error(libc::EISDIR);
        let plain = anyhow::Error::from(io()).context("cannot open it");
        assert_eq!(super::sentence(&plain), format!("cannot open it: {}", io()));
        let open = nearpm::Error::System { what: "open it".to_owned(), source: io() };
        assert_eq!(super::sentence(&open.into()).matches(&io().to_string()).count(), 1);
    }
}
