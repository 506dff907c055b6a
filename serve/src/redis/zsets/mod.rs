//! Commands of sorted sets.
//!
//! | file | holds |
//! |---|---|
//! | `add.rs` | ZADD, ZINCRBY, ZREM |
//! | `look.rs` | scores and places of members; members by chance |
//! | `window.rs` | which places a range of scores, texts or places names |
//! | `range.rs` | everything that takes a range |
//! | `pop.rs` | the first and the last members, taken or waited for |
//! | `algebra.rs` | unions, intersections, differences |

mod add;
mod algebra;
mod look;
mod pop;
mod range;
mod window;

pub use add::{zadd, zincrby, zrem};
pub use algebra::{algebra, algebra_store, zintercard};
pub use look::{zcard, zmscore, zrandmember, zrank, zscore};
pub use pop::{bzmpop, bzpop, zmpop, zpop};
pub use range::{zcount, zrange, zrangestore, zremrange};

use nearpm::prelude::*;

use super::db::{Db, Found, Kind, Outcome, ZSet};
use super::reply::Reply;
use super::words::float_or;
use crate::store::Name;

fn zset(db: &Db<'_>, from: &impl Load, name: &Name) -> Outcome<Option<Found<ZSet>>> {
    db.collection(from, name, Kind::ZSet)
}

fn score(word: &[u8]) -> Outcome<f64> {
    float_or(word, "ERR value is not a valid float")
}

/// Replies with members and their scores, which version 3 has in pairs.
fn give(rows: &[(Vec<u8>, f64)], with_scores: bool, reply: &mut Reply<'_>) {
    let pairs = with_scores && reply.resp3();
    reply.array(if with_scores && !pairs { 2 * rows.len() } else { rows.len() });
    for (member, score) in rows {
        if pairs {
            reply.array(2);
        }
        reply.bulk(member);
        if with_scores {
            reply.double(*score);
        }
    }
}
