//! One client: a connection, and what it asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use crate::connection::{Connection, Failure};
use crate::inserted::Inserted;
use crate::pace::Pace;
use crate::record::{Fields, Shape};
use crate::requests::{Request, Requests, key};
use crate::scans::Index;
use crate::tally::Tally;
use crate::workload::Kind;

/// What all clients of a phase share.
pub struct Shared {
    /// What records look like.
    pub shape: Shape,
    /// Records that were inserted.
    pub inserted: Arc<Inserted>,
    /// Operations that are done, for whoever watches.
    pub done: AtomicU64,
    /// The others are to end.
    pub over: AtomicBool,
    /// Records in the order of their keys, where they are scanned.
    pub index: Option<Index>,
}

/// How long a client goes on.
pub struct Limits {
    /// Operations at most.
    pub operations: u64,
    /// The last moment at which one begins.
    pub until: Option<Instant>,
    /// When they begin; `None`: one after the other.
    pub pace: Option<Pace>,
}

impl Limits {
    /// Waits until the next operation is to begin, and says from when its latency counts. `None`:
    /// it would be too late.
    fn begin(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let begin = self.pace.as_mut().map_or(now, Pace::next);
        if self.until.is_some_and(|until| begin >= until || now >= until) {
            return None;
        }
        if begin <= now {
            // It is late because the one before took long: that is the server's time.
            return Some(begin);
        }
        // That a sleep ends late is not.
        std::thread::sleep(begin - now);
        Some(Instant::now())
    }
}

/// A client.
pub struct Client<'a> {
    /// Its connection.
    pub connection: Box<dyn Connection>,
    /// What it asks.
    pub requests: Requests,
    /// What it shares with others.
    pub shared: &'a Shared,
}

impl Client<'_> {
    /// Goes on until its limits, or until another one has lost its connection.
    ///
    /// # Errors
    /// It has lost its own. What was counted before stands in `tally`.
    pub fn run(&mut self, mut limits: Limits, tally: &mut Tally) -> Result<(), String> {
        for _ in 0..limits.operations {
            if self.shared.over.load(Ordering::Relaxed) {
                break;
            }
            let request = self.requests.draw();
            let fields = match request.kind {
                Kind::Read | Kind::Scan => Fields::new(),
                Kind::Insert => {
                    self.shared.index.iter().for_each(|index| index.add(request.number));
                    self.shared.shape.record(request.number, &mut self.requests)
                }
                Kind::Update | Kind::ReadModifyWrite => self.shared.shape.update(request.number, &mut self.requests),
            };
            let Some(begin) = limits.begin() else { break };
            let answer = self.perform(request, &fields);
            let latency = begin.elapsed();
            let is_answered = !matches!(answer, Err(Failure::Lost(_)));
            if request.kind == Kind::Insert && is_answered {
                self.shared.inserted.settle(request.number);
            }
            match answer {
                Ok((found, read)) => {
                    tally.answered(request.kind, latency, found);
                    if let Err(wrong) = self.check(request, &read) {
                        tally.wrong(request.kind, wrong);
                    }
                }
                Err(Failure::Refused(why)) => tally.refused(request.kind, why),
                Err(Failure::Lost(why)) => {
                    self.shared.over.store(true, Ordering::Relaxed);
                    return Err(why);
                }
            }
            self.shared.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether what was read is what was written.
    fn check(&self, request: Request, read: &[(String, Fields)]) -> Result<(), String> {
        let shape = &self.shared.shape;
        match &self.shared.index {
            Some(index) if request.kind == Kind::Scan => index.check(shape, &key(request.number), request.count, read),
            _ => read
                .iter()
                .try_for_each(|(_, read)| shape.check(request.number, read).map_err(|wrong| wrong.to_string())),
        }
    }

    /// Does what is asked: whether the record was there, and what was read.
    fn perform(&mut self, request: Request, fields: &Fields) -> Result<(bool, Vec<(String, Fields)>), Failure> {
        let (key, connection) = (key(request.number), &mut self.connection);
        let one = |read: Option<Fields>| read.map(|read| (String::new(), read)).into_iter().collect::<Vec<_>>();
        match request.kind {
            Kind::Read => connection.read(&key).map(|read| (read.is_some(), one(read))),
            Kind::Update => connection.update(&key, fields).map(|found| (found, Vec::new())),
            Kind::Insert => connection.insert(&key, fields).map(|()| (true, Vec::new())),
            Kind::ReadModifyWrite => {
                let read = connection.read(&key)?;
                connection.update(&key, fields).map(|found| (found && read.is_some(), one(read)))
            }
            Kind::Scan => {
                let read = connection.scan(&key, request.count)?;
                Ok((read.first().is_some_and(|(first, _)| *first == key), read))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::Layout;
    use crate::workload::Workload;

    const SHAPE: Shape = Shape { layout: Layout::Value, fields: 1, field_bytes: 64, most_more: 0 };

    /// A server that answers what a test has in mind.
    type Answer = Box<dyn FnMut(&str) -> Result<Option<Fields>, Failure> + Send>;

    struct Fake(Answer);

    impl Connection for Fake {
        fn insert(&mut self, key: &str, _: &Fields) -> Result<(), Failure> {
            (self.0)(key).map(drop)
        }

        fn update(&mut self, key: &str, _: &Fields) -> Result<bool, Failure> {
            (self.0)(key).map(|found| found.is_some())
        }

        fn read(&mut self, key: &str) -> Result<Option<Fields>, Failure> {
            (self.0)(key)
        }
    }

    fn run(workload: Workload, limits: Limits, answer: Answer) -> (Result<(), String>, Tally, Shared) {
        let inserted = Arc::new(Inserted::after(1));
        let (done, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let shared = Shared { shape: SHAPE, inserted: Arc::clone(&inserted), done, over, index: None };
        let requests = Requests::new(workload, 1, inserted, 1, 0);
        let mut tally = Tally::default();
        let ended = Client { connection: Box::new(Fake(answer)), requests, shared: &shared }.run(limits, &mut tally);
        (ended, tally, shared)
    }

    fn operations(operations: u64) -> Limits {
        Limits { operations, until: None, pace: None }
    }

    /// A record as it was written.
    fn record(number: u64) -> Fields {
        SHAPE.record(number, &mut Requests::new(Workload::A, 1, Arc::new(Inserted::after(1)), 5, 0))
    }

    #[test]
    fn answers_are_counted_by_what_they_are() {
        let mut answers = 0;
        let answer = move |_: &str| {
            answers += 1;
            match answers % 4 {
                0 => Ok(None),
                1 => Ok(Some(record(0))),
                2 => Ok(Some(record(1))),
                _ => Err(Failure::Refused("no room".to_owned())),
            }
        };
        let (ended, tally, shared) = run(Workload::C, operations(400), Box::new(answer));
        assert_eq!(ended, Ok(()));
        let read = &tally.kinds[&Kind::Read];
        assert_eq!((read.latencies.len(), read.misses, read.wrong, read.errors), (300, 100, 100, 100));
        assert!(tally.first.expect("something went wrong").contains("never written"));
        assert_eq!(shared.done.into_inner(), 400);
    }

    #[test]
    fn a_lost_connection_ends_it_for_all() {
        let mut answers = 0;
        let answer = move |_: &str| {
            answers += 1;
            if answers > 7 { Err(Failure::Lost("gone".to_owned())) } else { Ok(None) }
        };
        let (ended, tally, shared) = run(Workload::C, operations(400), Box::new(answer));
        assert_eq!((ended, tally.operations()), (Err("gone".to_owned()), 7));
        assert!(shared.over.into_inner());
    }

    #[test]
    fn inserts_are_there_when_they_are_answered() {
        let (_, tally, shared) = run(Workload::Load, operations(9), Box::new(|_| Ok(None)));
        assert_eq!((tally.operations(), shared.inserted.visible()), (9, 10));
    }

    #[test]
    fn an_insert_without_an_answer_is_not_there() {
        let (ended, _, shared) =
            run(Workload::Load, operations(9), Box::new(|_| Err(Failure::Lost("gone".to_owned()))));
        assert_eq!((ended, shared.inserted.visible()), (Err("gone".to_owned()), 1));
    }

    #[test]
    fn nothing_begins_when_time_is_up() {
        let limits = Limits { until: Some(Instant::now()), ..operations(5) };
        let (ended, tally, _) = run(Workload::C, limits, Box::new(|_| Ok(None)));
        assert_eq!((ended, tally.operations()), (Ok(()), 0));
    }

    #[test]
    fn those_that_wait_behind_a_stall_are_charged_for_it() {
        // All are to begin within 50 ms, and the first one is answered after 100.
        let mut first = true;
        let answer = move |_: &str| {
            if std::mem::take(&mut first) {
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok(Some(record(0)))
        };
        let limits = Limits { pace: Some(Pace::new(Instant::now(), 10_000.0, 0, 1)), ..operations(500) };
        let (_, tally, _) = run(Workload::C, limits, Box::new(answer));
        let latencies = &tally.kinds[&Kind::Read].latencies;
        assert_eq!(latencies.len(), 500);
        assert!(latencies.min() >= 49_000_000, "{} ns", latencies.min());
    }
}
