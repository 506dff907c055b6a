//! The two ways to run a command, by the rows of `table.rs`.

use nearpm::prelude::*;

use super::db::{Db, Outcome};
use super::reply::Reply;
use super::request::Command;
use super::spec::Id;
use super::table::rows;
use super::{
    Redis, about, acl, bitfield, bits, channels, client, commands, config, dump, expiry, generic, hashes, info, lcs,
    lists, monitors, numbers, object, ranges, rename, scan, sets, slowlog, sort, strings, zsets,
};

macro_rules! dispatch {
    ($($id:ident $name:literal $arity:literal $flags:literal $first:literal $last:literal $step:literal $group:ident $kind:ident $handler:path;)*) => {
        impl Redis {
            /// Runs a command that changes nothing.
            pub fn ask(&self, db: &Db<'_>, from: &impl Load, command: &Command, reply: &mut Reply<'_>) -> Outcome {
                let words = command.words.as_slice();
                match command.spec.id {
                    $(Id::$id => dispatch!(@ask $kind $handler, self, db, from, words, reply),)*
                }
            }

            /// Runs any command. One that waits looks at one key alone, if that is given.
            pub fn act(
                &self,
                db: &Db<'_>,
                tx: &mut impl Store,
                command: &Command,
                key: Option<&[u8]>,
                reply: &mut Reply<'_>,
            ) -> Outcome {
                let words = command.words.as_slice();
                match command.spec.id {
                    $(Id::$id => dispatch!(@act $kind $handler, self, db, tx, words, key, reply),)*
                }
            }
        }
    };
    (@ask look $f:path, $redis:expr, $db:expr, $from:expr, $words:expr, $reply:expr) => { $f($db, $from, $words, $reply) };
    (@ask tell $f:path, $redis:expr, $db:expr, $from:expr, $words:expr, $reply:expr) => { $f($redis, $db, $from, $words, $reply) };
    (@ask talk $f:path, $redis:expr, $db:expr, $from:expr, $words:expr, $reply:expr) => { $f($db, $words, $reply) };
    (@ask $kind:ident $f:path, $redis:expr, $db:expr, $from:expr, $words:expr, $reply:expr) => {
        unreachable!("it is answered by the session, or changes something")
    };
    (@act act $f:path, $redis:expr, $db:expr, $tx:expr, $words:expr, $key:expr, $reply:expr) => { $f($db, $tx, $words, $reply) };
    (@act wait $f:path, $redis:expr, $db:expr, $tx:expr, $words:expr, $key:expr, $reply:expr) => { $f($db, $tx, $words, $key, $reply) };
    (@act $kind:ident $f:path, $redis:expr, $db:expr, $tx:expr, $words:expr, $key:expr, $reply:expr) => {
        dispatch!(@ask $kind $f, $redis, $db, $tx, $words, $reply)
    };
}

rows!(dispatch);
