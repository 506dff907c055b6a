//! All ways through a run that asks what to do.

/// Decisions in the order in which they are asked for; a run is repeated until all have been made.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// What was chosen, of how many.
    made: Vec<(usize, usize)>,
    next: usize,
    /// What is chosen at first, before zeros.
    script: Vec<usize>,
}

impl Choices {
    /// One way, to be repeated; beyond its end the first of all is chosen, and so is the last where
    /// there are fewer to choose from.
    pub fn repeat(script: Vec<usize>) -> Choices {
        Choices { script, ..Choices::default() }
    }

    /// Goes all ways through a run.
    pub fn all<T>(mut run: impl FnMut(&mut Choices) -> T) -> impl Iterator<Item = (T, Vec<usize>)> {
        let mut choices = Some(Choices::default());
        std::iter::from_fn(move || {
            let mut now = choices.take()?;
            let result = run(&mut now);
            let chosen = now.made[..now.next].iter().map(|made| made.0).collect();
            choices = now.advance().then_some(now);
            Some((result, chosen))
        })
    }

    /// Decides between `0..of`.
    pub fn choose(&mut self, of: usize) -> usize {
        if of < 2 {
            return 0;
        }
        if self.next == self.made.len() {
            let scripted = self.script.get(self.next).copied().unwrap_or(0);
            self.made.push((scripted.min(of - 1), of));
        }
        let (chosen, known) = self.made[self.next];
        assert_eq!(known, of, "a run that is repeated asks the same questions");
        self.next += 1;
        chosen
    }

    /// Turns to the next way; false when all were gone.
    pub fn advance(&mut self) -> bool {
        self.made.truncate(self.next);
        self.next = 0;
        while let Some((chosen, of)) = self.made.pop() {
            if chosen + 1 < of {
                self.made.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_gone_once() {
        let run = |choices: &mut Choices| {
            let first = choices.choose(3);
            (first, if first == 1 { choices.choose(2) } else { choices.choose(1) })
        };
        let (seen, chosen): (Vec<_>, Vec<_>) = Choices::all(run).unzip();
        assert_eq!(seen, [(0, 0), (1, 0), (1, 1), (2, 0)]);
        assert_eq!(chosen, [vec![0], vec![1, 0], vec![1, 1], vec![2]]);
        let repeated: Vec<_> = chosen.into_iter().map(|way| run(&mut Choices::repeat(way))).collect();
        assert_eq!(repeated, seen);
    }
}
