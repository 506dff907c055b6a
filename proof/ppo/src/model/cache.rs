//! The processor's caches: coherent among its threads, not with the cards (C9).
//!
//! Any dirty line may be written back at any time, as a whole line with the words that were not
//! stored to. A line that a card writes may also be fetched and dropped at any time; for other
//! lines that makes no difference.

use super::{Blocked, Cached, Model, Packet, State, Work, bit, with};
use crate::litmus::Value;
use crate::rules::Rule;

impl Model<'_> {
    /// A load or store through the caches: at once, if the line is there or always acts as if it
    /// were; otherwise the line is asked for.
    pub(super) fn cached_access(
        &self,
        state: &State,
        thread: usize,
        word: usize,
        next: &mut Vec<State>,
        access: impl FnOnce(&Self, &mut State) -> bool,
    ) {
        let line = self.line_of(word);
        if self.combines(state, thread, line) {
            // What the thread stored around the caches to this line drains first.
            return;
        }
        if state.cache[line].is_none() && self.is_exposed(line) {
            if !self.in_flight(state, line) {
                self.ask(state, thread, self.device_of(line), Packet::Load(Some(thread), line), Blocked::Load, next);
            }
            return;
        }
        next.push(with(state, |s| {
            if access(self, s) {
                s.threads[thread].counter += 1;
            }
        }));
    }

    pub(super) fn write_cached(&self, state: &mut State, word: usize, value: Value) {
        let line = self.line_of(word);
        let words = &self.test.lines[line].words;
        let mut values = match &state.cache[line] {
            Some(cached) => cached.values.clone(),
            None => words.iter().map(|w| self.newest(state, *w)).collect(),
        };
        values[words.iter().position(|w| *w == word).expect("a word lies in its line")] = value;
        state.cache[line] = Some(Cached { values, dirty: true });
    }

    pub(super) fn read_cached(&self, state: &State, word: usize) -> Value {
        let line = self.line_of(word);
        let place = self.test.lines[line].words.iter().position(|w| *w == word).expect("a word lies in its line");
        match &state.cache[line] {
            Some(cached) => cached.values[place],
            None => self.newest(state, word),
        }
    }

    /// The newest value of a word that only the processor writes, outside its caches.
    fn newest(&self, state: &State, word: usize) -> Value {
        let device = self.device_of(self.line_of(word));
        let of = |writes: &[(usize, Value)]| writes.iter().find(|(w, _)| *w == word).map(|(_, v)| *v);
        let on_link = state.links[device].iter().rev().find_map(|packet| match packet {
            Packet::Store(writes) => of(writes),
            _ => None,
        });
        let accepted = || {
            let stores = state.cards[device].items.iter().rev().filter(|item| item.work == Work::Store);
            stores.flat_map(|item| &item.unanswered).find_map(|group| of(group))
        };
        on_link.or_else(accepted).unwrap_or(state.medium[word])
    }

    /// Write-backs: of lines that an instruction named, and of any dirty line.
    pub(super) fn write_back_steps(&self, state: &State, next: &mut Vec<State>) {
        for (line, cached) in state.cache.iter().enumerate() {
            let Some(cached) = cached else { continue };
            let asked = |mask: fn(&super::ThreadState) -> u32| state.threads.iter().any(|t| mask(t) & bit(line) != 0);
            let invalidated = asked(|t| t.invalidations);
            if !cached.dirty {
                if invalidated {
                    next.push(with(state, |s| self.end_invalidation(s, line)));
                }
                continue;
            }
            if !self.link_has_room(state, self.device_of(line)) {
                continue;
            }
            let written = with(state, |s| self.write_back(s, line));
            if !self.is_exposed(line) {
                // Whether a copy stays makes no difference: no copy is the canonical form.
                next.push(with(&written, |s| self.drop_line(s, line)));
                continue;
            }
            if !invalidated {
                next.push(with(&written, |s| self.drop_line(s, line)));
                if asked(|t| t.write_backs) {
                    next.push(written);
                }
            } else {
                next.push(with(&written, |s| self.end_invalidation(s, line)));
            }
        }
    }

    /// What the caches do without being asked and without any effect on memory: they fetch and drop
    /// lines.
    pub(super) fn prefetch_steps(&self, state: &State, next: &mut Vec<State>) {
        for (line, cached) in state.cache.iter().enumerate() {
            if !self.is_exposed(line) || !self.touched(line) {
                continue;
            }
            let device = self.device_of(line);
            match cached {
                Some(cached) if cached.dirty => {}
                Some(_) => next.push(with(state, |s| self.drop_line(s, line))),
                None if self.in_flight(state, line) || !self.link_has_room(state, device) => {}
                None => next.push(with(state, |s| s.links[device].push(Packet::Load(None, line)))),
            }
        }
    }

    /// Whether a line has been asked for and has not come.
    pub(super) fn in_flight(&self, state: &State, line: usize) -> bool {
        let device = self.device_of(line);
        state.links[device].iter().any(|p| matches!(p, Packet::Load(_, l) if *l == line))
            || state.cards[device].items.iter().any(|i| matches!(i.work, Work::Load(_, l) if l == line))
    }

    /// Whether some thread loads or stores a line through the caches: otherwise its copies concern
    /// nobody.
    fn touched(&self, line: usize) -> bool {
        use crate::litmus::Instruction::{Load, Store};
        let touches =
            |i: &crate::litmus::Instruction| matches!(i, Store(w, _) | Load(w, _) if self.line_of(*w) == line);
        self.test.threads.iter().any(|t| t.program.iter().any(touches))
    }

    /// Puts a line as memory has it into the cache.
    pub(super) fn fill(&self, state: &mut State, line: usize) {
        let values = self.test.lines[line].words.iter().map(|w| state.medium[*w]).collect();
        state.cache[line] = Some(Cached { values, dirty: false });
    }

    /// Sends the line and leaves it clean.
    fn write_back(&self, state: &mut State, line: usize) {
        let cached = state.cache[line].as_mut().expect("a line that is written back is in the cache");
        cached.dirty = false;
        let words = self.test.lines[line].words.iter().copied().zip(cached.values.iter().copied()).collect();
        state.links[self.device_of(line)].push(Packet::Store(words));
        state.threads.iter_mut().for_each(|t| t.write_backs &= !bit(line));
    }

    fn end_invalidation(&self, state: &mut State, line: usize) {
        if self.keep(Rule::InvalidateDropsLine) {
            self.drop_line(state, line);
        }
        state.threads.iter_mut().for_each(|t| t.invalidations &= !bit(line));
    }

    pub(super) fn drop_line(&self, state: &mut State, line: usize) {
        state.cache[line] = None;
        for thread in &mut state.threads {
            thread.write_backs &= !bit(line);
            thread.invalidations &= !bit(line);
        }
    }
}
