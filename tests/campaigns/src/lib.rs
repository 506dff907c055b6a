//! The campaigns that show what is claimed: one list, one command that runs them, one page with
//! what they counted.
//!
//! | module | holds |
//! |---|---|
//! | [`built`] | what the workspace's build has left |
//! | [`campaigns`] | the list: claim, command, what must be reached |
//! | [`run`] | running one, and what it counted |
//! | [`packed`] | a folder with what campaigns run, for a machine without Rust |
//! | [`page`] | `docs/verification.md` |
//! | [`times`] | where the time of a test run goes |
//! | [`coverage`] | lines and toggles of the generated Verilog, and what is waived |
//!
//! A campaign is any program that ends with success, prints a line `{"counts":{...}}` and counts
//! its violations there. Lines of several parts of one campaign add up. Nothing here knows what the
//! counts mean.

pub mod built;
pub mod campaigns;
pub mod coverage;
pub mod packed;
pub mod page;
pub mod run;
pub mod times;

use std::path::{Path, PathBuf};

/// Folder of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate lies in the workspace").to_owned()
}
