//! `NEARPM_CARD_CUT`: when the power fails.

use std::env::var;

/// A power cut of computer and card, and what the processor is like until then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardCut {
    /// Cycle of the card since it was switched on.
    pub cycle: u64,
    /// Draws what becomes of writes that the memory has not answered.
    pub seed: u64,
    /// The processor evicts and loads lines unasked, and empties its buffers late and in any order.
    pub hostile: bool,
}

impl CardCut {
    fn parse(text: &str) -> Option<CardCut> {
        let mut cut = CardCut::default();
        for part in text.split(',') {
            let (key, value) = part.split_once('=')?;
            let value: u64 = value.parse().ok()?;
            match key {
                "cycle" => cut.cycle = value,
                "seed" => cut.seed = value,
                "hostile" if value < 2 => cut.hostile = value == 1,
                _ => return None,
            }
        }
        (cut.cycle > 0).then_some(cut)
    }
}

/// The cut that the environment asks for.
pub fn from_environment() -> Result<Option<CardCut>, String> {
    match var("NEARPM_CARD_CUT").as_deref() {
        Err(_) | Ok("") => Ok(None),
        Ok(text) => CardCut::parse(text)
            .map(Some)
            .ok_or_else(|| format!("NEARPM_CARD_CUT is {text:?}: use cycle=N,seed=N,hostile=0 or 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_needs_a_moment_and_nothing_unknown() {
        let cut = CardCut { cycle: 700, seed: 3, hostile: true };
        assert_eq!(CardCut::parse("cycle=700,seed=3,hostile=1"), Some(cut));
        assert_eq!(CardCut::parse("cycle=9"), Some(CardCut { cycle: 9, ..CardCut::default() }));
        for bad in ["", "seed=3", "cycle=0", "cycle=x", "cycle", "cycle=1,hostile=2", "cycle=1,fence=2"] {
            assert_eq!(CardCut::parse(bad), None, "{bad:?}");
        }
    }
}
