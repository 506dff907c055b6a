//! What the `nearpm` program is made of: each command is a module with its arguments and a function that runs it.
//!
//! Results go to standard output and depend on nothing but the arguments, so that the same seed prints the same bytes; those
//! of [`bench`] and of the client in [`serve`], which are measured, are the exceptions.
//! Progress and wall-clock times go to standard error.

pub mod arguments;
pub mod bench;
pub mod card;
pub mod cut;
pub mod cuts;
pub mod demo;
pub mod figures;
pub mod firmware;
pub mod gpu;
pub mod hardware;
pub mod job;
pub mod pool;
pub mod rig;
pub use nearpm_sim::saved;
pub mod serve;
pub mod shell;
pub mod table;

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
