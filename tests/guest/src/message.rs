//! What the guest says on the serial line, among what its kernel says there.

use std::fmt;
use std::str::FromStr;

/// With what each line begins that the guest's program writes.
const MARK: &str = "guest: ";

/// A line of the guest's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestMessage {
    /// What it does next.
    Step(String),
    /// So many operations are acknowledged.
    Acknowledged(usize),
    /// The card failed, with so many operations acknowledged and so many started.
    Gone {
        /// Acknowledged operations.
        acknowledged: usize,
        /// Started operations.
        started: usize,
        /// What the library said.
        why: String,
    },
    /// So many items were under way in the card when the power failed, and were done at power-up.
    Replayed(u64),
    /// After recovery the effects of so many operations are there, and nothing else.
    Kept(usize),
    /// Everything was as it must be.
    Passed,
    /// Something was not.
    Failed(String),
}

impl fmt::Display for GuestMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line each, whatever the text is.
        let plain = |text: &str| text.replace(['\n', '\r'], " ");
        match self {
            GuestMessage::Step(what) => write!(f, "{MARK}step {}", plain(what)),
            GuestMessage::Acknowledged(count) => write!(f, "{MARK}acknowledged {count}"),
            GuestMessage::Gone { acknowledged, started, why } => {
                write!(f, "{MARK}gone {acknowledged} {started} {}", plain(why))
            }
            GuestMessage::Replayed(count) => write!(f, "{MARK}replayed {count}"),
            GuestMessage::Kept(count) => write!(f, "{MARK}kept {count}"),
            GuestMessage::Passed => write!(f, "{MARK}passed"),
            GuestMessage::Failed(why) => write!(f, "{MARK}failed {}", plain(why)),
        }
    }
}

impl FromStr for GuestMessage {
    type Err = ();

    fn from_str(text: &str) -> Result<GuestMessage, ()> {
        let text = text.trim_end().strip_prefix(MARK).ok_or(())?;
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let number = |text: &str| text.parse().map_err(|_| ());
        match word {
            "step" => Ok(GuestMessage::Step(rest.into())),
            "acknowledged" => Ok(GuestMessage::Acknowledged(number(rest)?)),
            "gone" => {
                let mut parts = rest.splitn(3, ' ');
                let mut next = || parts.next().ok_or(());
                let (acknowledged, started) = (number(next()?)?, number(next()?)?);
                Ok(GuestMessage::Gone { acknowledged, started, why: next()?.into() })
            }
            "replayed" => Ok(GuestMessage::Replayed(rest.parse().map_err(|_| ())?)),
            "kept" => Ok(GuestMessage::Kept(number(rest)?)),
            "passed" if rest.is_empty() => Ok(GuestMessage::Passed),
            "failed" => Ok(GuestMessage::Failed(rest.into())),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for line in [
            GuestMessage::Step("nearpm card list".into()),
            GuestMessage::Acknowledged(70),
            GuestMessage::Gone { acknowledged: 5, started: 6, why: "the card has gone".into() },
            GuestMessage::Replayed(3),
            GuestMessage::Kept(6),
            GuestMessage::Passed,
            GuestMessage::Failed("no card".into()),
        ] {
            assert_eq!(format!("{line}\r\n").parse(), Ok(line));
        }
        let two = GuestMessage::Failed("one\ntwo".into()).to_string();
        assert_eq!(two.lines().count(), 1);
    }

    #[test]
    fn what_the_kernel_says_and_half_a_line_are_no_lines() {
        for text in [
            "",
            "[    1.2] vfio-pci 0000:01:00.0: enabling device",
            "guest: acknowledged ",
            "guest: acknowledged 7x",
            "guest: gone 5",
            "guest: passed?",
            "guest: passed by",
            "xguest: passed",
        ] {
            assert_eq!(text.parse::<GuestMessage>(), Err(()), "{text}");
        }
    }
}
