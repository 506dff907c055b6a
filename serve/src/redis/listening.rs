//! SUBSCRIBE and its like: what is replied is known when they come, and who listens changes when
//! they are run.

use std::sync::atomic::Ordering;

use super::channels::Change;
use super::reply::Reply;
use super::request::Request;
use super::session::Session;
use super::words::is;

impl Session {
    /// Whether the client listens to anything.
    pub(super) fn listens(&self) -> bool {
        !self.channels.is_empty() || !self.patterns.is_empty()
    }

    pub(super) fn count_listening(&self) {
        self.client.channels.store(self.channels.len(), Ordering::Relaxed);
        self.client.patterns.store(self.patterns.len(), Ordering::Relaxed);
    }

    /// The end of everything that the client listens to.
    pub(super) fn all_listening(&self) -> Vec<Change> {
        let end = |pattern| move |name: &Vec<u8>| Change { pattern, name: name.clone(), begins: false };
        self.channels.iter().map(end(false)).chain(self.patterns.iter().map(end(true))).collect()
    }

    fn confirm(&self, reply: &mut Reply<'_>, what: &str, name: Option<&[u8]>) {
        reply.push(3);
        reply.bulk(what.as_bytes());
        reply.bulk_or_null(name);
        reply.integer((self.channels.len() + self.patterns.len()) as i64);
    }

    /// SUBSCRIBE, PSUBSCRIBE channel ...
    pub(super) fn subscribe(&mut self, words: &[Vec<u8>]) -> Request {
        let pattern = is(&words[0], "psubscribe");
        let (mut say, mut changes) = (Vec::new(), Vec::new());
        for name in &words[1..] {
            let names = if pattern { &mut self.patterns } else { &mut self.channels };
            names.insert(name.clone());
            changes.push(Change { pattern, name: name.clone(), begins: true });
            let what = if pattern { "psubscribe" } else { "subscribe" };
            self.confirm(&mut Reply::new(&mut say, self.resp3), what, Some(name));
        }
        self.count_listening();
        Request::Listen { say, changes, client: self.client.clone() }
    }

    /// UNSUBSCRIBE, PUNSUBSCRIBE [channel ...]
    pub(super) fn unsubscribe(&mut self, words: &[Vec<u8>]) -> Request {
        let pattern = is(&words[0], "punsubscribe");
        let what = if pattern { "punsubscribe" } else { "unsubscribe" };
        let names = if pattern { &self.patterns } else { &self.channels };
        let ended: Vec<_> = if words.len() > 1 { words[1..].to_vec() } else { names.iter().cloned().collect() };
        let (mut say, mut changes) = (Vec::new(), Vec::new());
        if ended.is_empty() {
            self.confirm(&mut Reply::new(&mut say, self.resp3), what, None);
        }
        for name in ended {
            let names = if pattern { &mut self.patterns } else { &mut self.channels };
            names.remove(&name);
            self.confirm(&mut Reply::new(&mut say, self.resp3), what, Some(&name));
            changes.push(Change { pattern, name, begins: false });
        }
        self.count_listening();
        Request::Listen { say, changes, client: self.client.clone() }
    }
}
