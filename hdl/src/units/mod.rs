//! The units of the card, as `docs/hardware.md` names them.

pub mod multi_device;
pub mod persistence;
pub mod completion_writer;
pub mod registers;
pub mod system_mux;
