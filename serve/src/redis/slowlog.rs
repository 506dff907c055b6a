//! The slow log: commands that took long to run. What they wait for the pool's synchronisation is
//! none of it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::clients::Client;
use super::config::PASSWORD;
use super::db::{Db, Outcome, refuse};
use super::reply::Reply;
use super::request::Command;
use super::settings::Settings;
use super::spec::Id;
use super::subcommands::wrong_form;
use super::words::{integer, is};

/// Words of a command that are kept, and bytes of a word.
const MOST_WORDS: usize = 32;
const MOST_BYTES: usize = 128;

struct Entry {
    number: u64,
    at_s: u64,
    took_us: u64,
    words: Vec<Vec<u8>>,
    address: String,
    name: Vec<u8>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    entries: VecDeque<Entry>,
}

/// The log, the newest entry first.
#[derive(Default)]
pub struct SlowLog(Mutex<Inner>);

/// Words of a command, without what only its client may know.
fn without_secrets(command: &Command) -> Vec<Vec<u8>> {
    let words = &command.words;
    let secret = |at: usize| match command.spec.id {
        Id::Acl => at > 2,
        Id::Config => at > 2 && is(&words[at - 1], PASSWORD),
        _ => false,
    };
    let told = |(at, word): (usize, &Vec<u8>)| if secret(at) { b"(redacted)".to_vec() } else { word.clone() };
    words.iter().enumerate().map(told).collect()
}

/// The first words of a command, shortened as Redis shortens them.
fn shortened(words: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let cut = |word: &Vec<u8>| {
        let more = word.len().saturating_sub(MOST_BYTES);
        let mut text = word[..word.len() - more].to_vec();
        if more > 0 {
            text.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
        }
        text
    };
    if words.len() <= MOST_WORDS {
        return words.iter().map(cut).collect();
    }
    let more = format!("... ({} more arguments)", words.len() - MOST_WORDS + 1);
    words[..MOST_WORDS - 1].iter().map(cut).chain([more.into_bytes()]).collect()
}

impl SlowLog {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command took so long.
    pub fn note(&self, settings: &Settings, now_ms: u64, took: Duration, command: &Command, client: &Client) {
        let (limit, took_us) = (settings.slower_than.get(), took.as_micros() as u64);
        if limit < 0 || took_us < limit as u64 {
            return;
        }
        let mut inner = self.lock();
        let number = inner.next;
        inner.next += 1;
        inner.entries.push_front(Entry {
            number,
            at_s: now_ms / 1000,
            took_us,
            words: shortened(&without_secrets(command)),
            address: client.address.clone(),
            name: client.texts().name.clone(),
        });
        inner.entries.truncate(settings.slowlog_length.get().max(0) as usize);
    }
}

/// SLOWLOG GET [count], LEN, RESET
pub fn slowlog(db: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let mut inner = db.state.slowlog.lock();
    let sub = words[1].to_ascii_lowercase();
    match (sub.as_slice(), &words[2..]) {
        (b"len", []) => reply.integer(inner.entries.len() as i64),
        (b"reset", []) => {
            inner.entries.clear();
            reply.simple("OK");
        }
        (b"get", count @ ([] | [_])) => {
            let count = count.first().map_or(Some(10), |word| integer(word).ok()).filter(|&count| count >= -1);
            let count = count.map_or_else(|| refuse("ERR count should be greater than or equal to -1"), Ok)?;
            let taken = if count < 0 { inner.entries.len() } else { inner.entries.len().min(count as usize) };
            reply.array(taken);
            for entry in inner.entries.iter().take(taken) {
                reply.array(6);
                reply.integer(entry.number as i64);
                reply.integer(entry.at_s as i64);
                reply.integer(entry.took_us as i64);
                reply.bulks(entry.words.iter().map(Vec::as_slice));
                reply.bulk(entry.address.as_bytes());
                reply.bulk(&entry.name);
            }
        }
        _ => return Err(wrong_form(words)),
    }
    Ok(())
}
