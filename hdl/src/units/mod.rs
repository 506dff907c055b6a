//! The units of the card, as `docs/hardware.md` names them.

pub mod persistence;
