//! Redo logging: new values are collected, logged at commit, and then applied.
//!
//! Invariant: nothing of an open transaction is in persistent memory outside the log.

use std::collections::BTreeMap;

use nearpm_interface::geometry::{LINE, LINE_U64};

use super::redo_log::{RedoLog, Values};
use super::{Acknowledged, Context, Protocol};
use crate::error::Error;
use crate::options::Durability;

/// New bytes of a line.
struct NewLine {
    bytes: [u8; LINE],
    /// One bit per byte that was written.
    written: u64,
}

/// State of redo logging.
#[derive(Default)]
pub(crate) struct Redo {
    /// By line number in the pool.
    lines: BTreeMap<u64, NewLine>,
    log: RedoLog,
    /// A commit was asynchronous, and no durable one followed.
    unacknowledged: bool,
}

/// The lines of a range: line number, part of the line, part of the range.
fn split(place: u64, length: u64) -> impl Iterator<Item = (u64, std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < length).then(|| {
            let at = place + done;
            let inside = at % LINE_U64;
            let bytes = (LINE_U64 - inside).min(length - done);
            let part =
                (at / LINE_U64, inside as usize..(inside + bytes) as usize, done as usize..(done + bytes) as usize);
            done += bytes;
            part
        })
    })
}

fn mask(range: &std::ops::Range<usize>) -> u64 {
    (u64::MAX >> (LINE - range.len())) << range.start
}

impl Protocol for Redo {
    fn read(&mut self, cx: &mut Context, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        let mut done = 0;
        while done < data.len() {
            let (place, bytes) = cx.pages.locate(offset + done as u64, (data.len() - done) as u64);
            let data = &mut data[done..done + bytes as usize];
            done += bytes as usize;
            self.log.touch(cx, place..place + bytes)?;
            cx.medium.load_checked(place, data)?;
            if self.lines.is_empty() {
                continue;
            }
            let first = place / LINE_U64;
            for (&line, new) in self.lines.range(first..(place + bytes).div_ceil(LINE_U64)) {
                let from = (line * LINE_U64).max(place);
                let to = ((line + 1) * LINE_U64).min(place + bytes);
                for at in from..to {
                    let inside = (at % LINE_U64) as usize;
                    if new.written >> inside & 1 == 1 {
                        data[(at - place) as usize] = new.bytes[inside];
                    }
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, cx: &mut Context, offset: u64, data: &[u8]) -> Result<(), Error> {
        for (place, part) in cx.pages.pieces(offset, data.len() as u64) {
            let data = &data[part];
            for (line, inside, from) in split(place, data.len() as u64) {
                let new = self.lines.entry(line).or_insert(NewLine { bytes: [0; LINE], written: 0 });
                new.written |= mask(&inside);
                new.bytes[inside].copy_from_slice(&data[from]);
            }
        }
        Ok(())
    }

    fn prepare(&mut self, cx: &mut Context) -> Result<(), Error> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let mut values = Values::default();
        for (&line, new) in &self.lines {
            // Exactly the written bytes: a whole line would carry old bytes of a neighbour.
            let mut at = 0;
            while at < LINE {
                let rest = new.written >> at;
                let skip = rest.trailing_zeros() as usize;
                if skip >= LINE - at {
                    break;
                }
                let start = at + skip;
                let run = (new.written >> start).trailing_ones() as usize;
                values.push(line * LINE_U64 + start as u64, &new.bytes[start..start + run]);
                at = start + run;
            }
        }
        self.log.prepare(cx, values)
    }

    fn commit(&mut self, cx: &mut Context, durability: Durability) -> Result<Acknowledged, Error> {
        let wrote = !self.lines.is_empty();
        self.log.publish(cx, false, durability)?;
        self.lines.clear();
        match durability {
            Durability::Durable => {
                if !wrote && self.unacknowledged {
                    cx.lane.executor.persist(&cx.medium)?;
                }
                self.unacknowledged = false;
                Ok(Acknowledged::All)
            }
            Durability::Asynchronous => {
                self.unacknowledged |= wrote;
                Ok(if self.unacknowledged { Acknowledged::Nothing } else { Acknowledged::All })
            }
        }
    }

    fn abort(&mut self, _cx: &mut Context) -> Result<(), Error> {
        self.lines.clear();
        self.log.discard();
        Ok(())
    }

    fn persist(&mut self, cx: &mut Context) -> Result<(), Error> {
        if std::mem::take(&mut self.unacknowledged) { cx.lane.executor.persist(&cx.medium) } else { Ok(()) }
    }

    fn finish(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.persist(cx)?;
        self.log.settle(cx)
    }
}
