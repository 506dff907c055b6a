//! Commands of lists.
//!
//! | file | holds |
//! |---|---|
//! | `ends.rs` | pushes and pops |
//! | `look.rs` | reading |
//! | `edit.rs` | changes in the middle |
//! | `between.rs` | moves from list to list, and commands that wait |

mod between;
mod edit;
mod ends;
mod look;

pub use between::{blmove, blmpop, bpop, brpoplpush, lmove, lmpop, rpoplpush};
pub use edit::{linsert, lrem, lset, ltrim};
pub use ends::{pop, push};
pub use look::{lindex, llen, lpos, lrange};

use nearpm::prelude::*;

use super::db::{Db, Found, Kind, List, Outcome};
use crate::store::Name;

fn list(db: &Db<'_>, from: &impl Load, name: &Name) -> Outcome<Option<Found<List>>> {
    db.collection(from, name, Kind::List)
}

/// Whether a command works at the front: its name begins with L, or with BL.
fn is_left(words: &[Vec<u8>]) -> bool {
    let name = words[0].to_ascii_lowercase();
    name.starts_with(b"l") || name.starts_with(b"bl")
}
