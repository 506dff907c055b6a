//! Rounding: the modes of PTX, and results that a processor has rounded to nearest moved to the
//! side that another mode wants.

/// How a value that the target type has not is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
}

impl Rounding {
    /// Of `.rn .rz .rm .rp` (to a float) and `.rni .rzi .rmi .rpi` (to an integer).
    pub fn parse(modifier: &str) -> Option<Rounding> {
        match modifier {
            "rn" | "rni" => Some(Rounding::Nearest),
            "rz" | "rzi" => Some(Rounding::Zero),
            "rm" | "rmi" => Some(Rounding::Down),
            "rp" | "rpi" => Some(Rounding::Up),
            _ => None,
        }
    }

    #[inline(always)]
    pub fn integral(self, x: f64) -> f64 {
        match self {
            Rounding::Nearest => x.round_ties_even(),
            Rounding::Zero => x.trunc(),
            Rounding::Down => x.floor(),
            Rounding::Up => x.ceil(),
        }
    }
}

/// Moves a nearest-rounded result to the side that `rounding` wants; `order` is how it compares
/// with the exact value.
#[inline(always)]
pub(super) fn directed(
    rounding: Rounding,
    nearest: f64,
    order: std::cmp::Ordering,
    step: impl Fn(f64, bool) -> f64,
) -> f64 {
    use std::cmp::Ordering::*;
    let (up, down) = match rounding {
        Rounding::Nearest => (false, false),
        Rounding::Zero => (order == Less && nearest < 0.0, order == Greater && nearest > 0.0),
        Rounding::Down => (false, order == Greater),
        Rounding::Up => (order == Less, false),
    };
    if up || down { step(nearest, up) } else { nearest }
}

pub(super) fn step32(x: f64, up: bool) -> f64 {
    f64::from(if up { (x as f32).next_up() } else { (x as f32).next_down() })
}

pub(super) fn step64(x: f64, up: bool) -> f64 {
    if up { x.next_up() } else { x.next_down() }
}
