//! The units of the card, as `docs/hardware.md` names them.

pub mod multi_device;
pub mod persistence;
pub mod completion_writer;
pub mod registers;
pub mod system_mux;
pub mod address_map;
pub mod decoder;
pub mod dependency_matrix;
pub mod range_table;
pub mod request_slots;
pub mod burst;
pub mod context;
pub mod dma_engine;
pub mod dma_read;
pub mod dma_write;
pub mod instruction;
pub mod lanes;
pub mod load_store_unit;
pub mod metadata_generator;
pub mod nearpm_unit;
pub mod sequencer;
pub mod memory_port;
pub mod dispatcher;
pub mod ordering_point;
pub mod firmware_store;
pub mod back;
