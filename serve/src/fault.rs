//! Errors of the system.

use std::io;

use nearpm::Error;

/// An error of the system as one of the library, which says what was tried.
pub fn system(what: &str, source: io::Error) -> Error {
    Error::System { what: what.to_owned(), source }
}
