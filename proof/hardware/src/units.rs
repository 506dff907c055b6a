//! The units that properties are about, as the Verilog that becomes hardware.

use nearpm_hdl::cells::{Fifo, RoundRobin};
use nearpm_hdl::dut::default_verilog;
use nearpm_hdl::persist_buffer::SmallBuffer;
use nearpm_hdl::units::address_map::AddressMap;
use nearpm_hdl::units::command_port::CommandPort;
use nearpm_hdl::units::completion_writer::CompletionWriter;
use nearpm_hdl::units::decoder::Decoder;
use nearpm_hdl::units::dependency_matrix::DependencyMatrix;
use nearpm_hdl::units::dispatcher::Dispatcher;
use nearpm_hdl::units::dma_read::DmaRead;
use nearpm_hdl::units::dma_write::DmaWrite;
use nearpm_hdl::units::host_port::HostPort;
use nearpm_hdl::units::host_queue::HostQueue;
use nearpm_hdl::units::memory_port::MemoryPort;
use nearpm_hdl::units::memory_split::MemorySplit;
use nearpm_hdl::units::multi_device::MultiDevice;
use nearpm_hdl::units::ordering_point::OrderingPoint;
use nearpm_hdl::units::parked_places::ParkedPlaces;
use nearpm_hdl::units::range_table::RangeTable;
use nearpm_hdl::units::request_slots::RequestSlots;
use rust_hdl::prelude::Bits;

macro_rules! units {
    ($($(#[$doc:meta])* $name:ident: $unit:ty),+ $(,)?) => {
        /// A unit; its top module is `top`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Unit { $($(#[$doc])* $name),+ }

        impl Unit {
            /// All of them.
            pub const ALL: &[Unit] = &[$(Unit::$name),+];

            /// Its name in the hardware's source.
            pub fn name(self) -> &'static str {
                match self { $(Unit::$name => stringify!($name)),+ }
            }

            /// Its Verilog.
            ///
            /// # Panics
            /// When rust-hdl's checks of the unit fail, which is a defect of the unit, or when the
            /// cache of the simulated models cannot be used.
            pub fn verilog(self) -> String {
                match self { $(Unit::$name => default_verilog::<$unit>()),+ }
            }
        }
    };
}

units! {
    /// A queue of 16 entries of 8 bits: the cell is the same at every size.
    Fifo: Fifo<Bits<8>, 4, 5>,
    /// See `nearpm_hdl::units`.
    AddressMap: AddressMap,
    /// See `nearpm_hdl::units`.
    CommandPort: CommandPort,
    /// See `nearpm_hdl::units`.
    CompletionWriter: CompletionWriter,
    /// See `nearpm_hdl::units`.
    Decoder: Decoder,
    /// See `nearpm_hdl::units`.
    DependencyMatrix: DependencyMatrix,
    /// See `nearpm_hdl::units`.
    Dispatcher: Dispatcher,
    /// See `nearpm_hdl::units`.
    DmaRead: DmaRead,
    /// See `nearpm_hdl::units`.
    DmaWrite: DmaWrite,
    /// See `nearpm_hdl::units`.
    HostPort: HostPort,
    /// See `nearpm_hdl::units`.
    HostQueue: HostQueue,
    /// See `nearpm_hdl::units`.
    MemoryPort: MemoryPort,
    /// See `nearpm_hdl::units`.
    MemorySplit: MemorySplit,
    /// See `nearpm_hdl::units`.
    MultiDevice: MultiDevice,
    /// See `nearpm_hdl::units`.
    OrderingPoint: OrderingPoint,
    /// See `nearpm_hdl::units`.
    ParkedPlaces: ParkedPlaces,
    /// See `nearpm_hdl::persist_buffer`; of 4 warps, 4 entries and 4 lines.
    PersistBuffer: SmallBuffer,
    /// See `nearpm_hdl::units`.
    RangeTable: RangeTable,
    /// See `nearpm_hdl::units`.
    RequestSlots: RequestSlots,
    /// Takes turns among 32: the cell is the same at every size.
    RoundRobin: RoundRobin<32, 5>,
}
