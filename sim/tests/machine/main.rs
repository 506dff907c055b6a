//! The computer around a card: host model, cores, several cards, and the driver on all of it.

mod cores;
mod flat;
mod host;
mod several;
mod whole;
