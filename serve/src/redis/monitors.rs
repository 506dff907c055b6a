//! MONITOR: clients that are told what all others ask for.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::clients::Client;
use super::db::{Db, Outcome};
use super::reply::Reply;
use crate::effects::{Mail, Mailbox};

/// Those who are told, by their numbers.
#[derive(Default)]
pub struct Monitors {
    clients: Mutex<BTreeMap<u64, Mailbox>>,
    /// How many, to be looked at before the lock is taken.
    count: AtomicUsize,
}

impl Monitors {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Mailbox>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<u64, Mailbox>)) {
        let mut clients = self.lock();
        change(&mut clients);
        self.count.store(clients.len(), Ordering::Release);
    }

    /// A client is told nothing any more.
    pub fn remove(&self, client: &Client) {
        if client.monitors.swap(false, Ordering::Relaxed) {
            self.change(|clients| drop(clients.remove(&client.number)));
        }
    }

    /// Whether anybody is told.
    pub fn are_there(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// A client asks for something.
    pub fn tell(&self, asks: &Client, words: &[Vec<u8>]) {
        let line: std::sync::Arc<[u8]> = line(&asks.address, words).into_bytes().into();
        self.lock().values().for_each(|mailbox| mailbox.send(Mail::Message(line.clone())));
    }
}

/// As Redis says it.
fn line(address: &str, words: &[Vec<u8>]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut text = format!("+{}.{:06} [0 {address}]", now.as_secs(), now.subsec_micros());
    for word in words {
        text.push_str(" \"");
        word.iter().for_each(|byte| quote(*byte, &mut text));
        text.push('"');
    }
    text + "\r\n"
}

fn quote(byte: u8, to: &mut String) {
    match byte {
        b'\\' | b'"' => to.extend(['\\', byte.into()]),
        b'\n' => to.push_str("\\n"),
        b'\r' => to.push_str("\\r"),
        b'\t' => to.push_str("\\t"),
        7 => to.push_str("\\a"),
        8 => to.push_str("\\b"),
        b' '..=b'~' => to.push(byte.into()),
        // A string takes everything.
        _ => drop(write!(to, "\\x{byte:02x}")),
    }
}

/// MONITOR
pub fn monitor(db: &Db<'_>, _: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    if let Some(client) = db.client
        && !client.monitors.swap(true, Ordering::Relaxed)
    {
        db.state.monitors.change(|clients| drop(clients.insert(client.number, client.mailbox.clone())));
    }
    reply.simple("OK");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn words_are_quoted_as_redis_does() {
        let said = line("1.2.3.4:5", &[b"set".to_vec(), b"a \"b\"\\".to_vec(), b"\x00\xff\n\x07".to_vec()]);
        let said = said.split_once(' ').expect("a time is in front").1;
        assert_eq!(said, "[0 1.2.3.4:5] \"set\" \"a \\\"b\\\"\\\\\" \"\\x00\\xff\\n\\a\"\r\n");
    }
}
