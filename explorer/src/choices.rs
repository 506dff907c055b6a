//! All ways through a run that asks what to do.

/// Decisions in the order in which they are asked for; a run is repeated until all have been made.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// What was chosen, of how many.
    made: Vec<(usize, usize)>,
    next: usize,
}

impl Choices {
    /// Decides between `0..of`.
    pub fn choose(&mut self, of: usize) -> usize {
        if of < 2 {
            return 0;
        }
        if self.next == self.made.len() {
            self.made.push((0, of));
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
        let mut choices = Choices::default();
        let mut seen = Vec::new();
        loop {
            let first = choices.choose(3);
            let second = if first == 1 { choices.choose(2) } else { choices.choose(1) };
            seen.push((first, second));
            if !choices.advance() {
                break;
            }
        }
        assert_eq!(seen, [(0, 0), (1, 0), (1, 1), (2, 0)]);
    }
}
