//! AXI4 and AXI4-Lite (ARM IHI 0022), as much of them as the card uses.
//!
//! `A` address bits, `D` data bits, `S` = `D / 8` strobe bits, `I` identifier bits. Locks, caches,
//! protection, quality of service and regions are constants of the Verilog wrapper.

use crate::dut::Ports;
use rust_hdl::prelude::*;

/// AXI4 port of a master.
#[derive(Clone, Debug, Default, LogicInterface, Ports)]
#[join = "AxiSlave"]
pub struct AxiMaster<const A: usize, const D: usize, const S: usize, const I: usize> {
    /// Transaction identifier of the write.
    pub awid: Signal<Out, Bits<I>>,
    /// Byte address of the write.
    pub awaddr: Signal<Out, Bits<A>>,
    /// Beats of the write less one.
    pub awlen: Signal<Out, Bits<8>>,
    /// log2 of the bytes of a beat.
    pub awsize: Signal<Out, Bits<3>>,
    /// Burst type; 1 is incrementing.
    pub awburst: Signal<Out, Bits<2>>,
    /// The write address is here.
    pub awvalid: Signal<Out, Bit>,
    /// The write address is taken.
    pub awready: Signal<In, Bit>,
    /// Write data.
    pub wdata: Signal<Out, Bits<D>>,
    /// Bytes of the data to write, one bit each.
    pub wstrb: Signal<Out, Bits<S>>,
    /// Last beat of the write.
    pub wlast: Signal<Out, Bit>,
    /// The write data is here.
    pub wvalid: Signal<Out, Bit>,
    /// The write data is taken.
    pub wready: Signal<In, Bit>,
    /// Transaction identifier of the response.
    pub bid: Signal<In, Bits<I>>,
    /// Write response; 0 is OKAY.
    pub bresp: Signal<In, Bits<2>>,
    /// The write response is here.
    pub bvalid: Signal<In, Bit>,
    /// The write response is taken.
    pub bready: Signal<Out, Bit>,
    /// Transaction identifier of the read.
    pub arid: Signal<Out, Bits<I>>,
    /// Byte address of the read.
    pub araddr: Signal<Out, Bits<A>>,
    /// Beats of the read less one.
    pub arlen: Signal<Out, Bits<8>>,
    /// log2 of the bytes of a beat.
    pub arsize: Signal<Out, Bits<3>>,
    /// Burst type; 1 is incrementing.
    pub arburst: Signal<Out, Bits<2>>,
    /// The read address is here.
    pub arvalid: Signal<Out, Bit>,
    /// The read address is taken.
    pub arready: Signal<In, Bit>,
    /// Transaction identifier of the data.
    pub rid: Signal<In, Bits<I>>,
    /// Read data.
    pub rdata: Signal<In, Bits<D>>,
    /// Read response; 0 is OKAY.
    pub rresp: Signal<In, Bits<2>>,
    /// Last beat of the read.
    pub rlast: Signal<In, Bit>,
    /// The read data is here.
    pub rvalid: Signal<In, Bit>,
    /// The read data is taken.
    pub rready: Signal<Out, Bit>,
}

/// AXI4 port of a slave.
#[derive(Clone, Debug, Default, LogicInterface, Ports)]
#[join = "AxiMaster"]
pub struct AxiSlave<const A: usize, const D: usize, const S: usize, const I: usize> {
    /// Transaction identifier of the write.
    pub awid: Signal<In, Bits<I>>,
    /// Byte address of the write.
    pub awaddr: Signal<In, Bits<A>>,
    /// Beats of the write less one.
    pub awlen: Signal<In, Bits<8>>,
    /// log2 of the bytes of a beat.
    pub awsize: Signal<In, Bits<3>>,
    /// Burst type; 1 is incrementing.
    pub awburst: Signal<In, Bits<2>>,
    /// The write address is here.
    pub awvalid: Signal<In, Bit>,
    /// The write address is taken.
    pub awready: Signal<Out, Bit>,
    /// Write data.
    pub wdata: Signal<In, Bits<D>>,
    /// Bytes of the data to write, one bit each.
    pub wstrb: Signal<In, Bits<S>>,
    /// Last beat of the write.
    pub wlast: Signal<In, Bit>,
    /// The write data is here.
    pub wvalid: Signal<In, Bit>,
    /// The write data is taken.
    pub wready: Signal<Out, Bit>,
    /// Transaction identifier of the response.
    pub bid: Signal<Out, Bits<I>>,
    /// Write response; 0 is OKAY.
    pub bresp: Signal<Out, Bits<2>>,
    /// The write response is here.
    pub bvalid: Signal<Out, Bit>,
    /// The write response is taken.
    pub bready: Signal<In, Bit>,
    /// Transaction identifier of the read.
    pub arid: Signal<In, Bits<I>>,
    /// Byte address of the read.
    pub araddr: Signal<In, Bits<A>>,
    /// Beats of the read less one.
    pub arlen: Signal<In, Bits<8>>,
    /// log2 of the bytes of a beat.
    pub arsize: Signal<In, Bits<3>>,
    /// Burst type; 1 is incrementing.
    pub arburst: Signal<In, Bits<2>>,
    /// The read address is here.
    pub arvalid: Signal<In, Bit>,
    /// The read address is taken.
    pub arready: Signal<Out, Bit>,
    /// Transaction identifier of the data.
    pub rid: Signal<Out, Bits<I>>,
    /// Read data.
    pub rdata: Signal<Out, Bits<D>>,
    /// Read response; 0 is OKAY.
    pub rresp: Signal<Out, Bits<2>>,
    /// Last beat of the read.
    pub rlast: Signal<Out, Bit>,
    /// The read data is here.
    pub rvalid: Signal<Out, Bit>,
    /// The read data is taken.
    pub rready: Signal<In, Bit>,
}

/// AXI4 port of a master that only writes.
#[derive(Clone, Debug, Default, LogicInterface, Ports)]
#[join = "AxiWriteSlave"]
pub struct AxiWriteMaster<const A: usize, const D: usize, const S: usize, const I: usize> {
    /// Transaction identifier of the write.
    pub awid: Signal<Out, Bits<I>>,
    /// Byte address of the write.
    pub awaddr: Signal<Out, Bits<A>>,
    /// Beats of the write less one.
    pub awlen: Signal<Out, Bits<8>>,
    /// log2 of the bytes of a beat.
    pub awsize: Signal<Out, Bits<3>>,
    /// Burst type; 1 is incrementing.
    pub awburst: Signal<Out, Bits<2>>,
    /// The write address is here.
    pub awvalid: Signal<Out, Bit>,
    /// The write address is taken.
    pub awready: Signal<In, Bit>,
    /// Write data.
    pub wdata: Signal<Out, Bits<D>>,
    /// Bytes of the data to write, one bit each.
    pub wstrb: Signal<Out, Bits<S>>,
    /// Last beat of the write.
    pub wlast: Signal<Out, Bit>,
    /// The write data is here.
    pub wvalid: Signal<Out, Bit>,
    /// The write data is taken.
    pub wready: Signal<In, Bit>,
    /// Transaction identifier of the response.
    pub bid: Signal<In, Bits<I>>,
    /// Write response; 0 is OKAY.
    pub bresp: Signal<In, Bits<2>>,
    /// The write response is here.
    pub bvalid: Signal<In, Bit>,
    /// The write response is taken.
    pub bready: Signal<Out, Bit>,
}

/// AXI4 port of a slave that is only written.
#[derive(Clone, Debug, Default, LogicInterface, Ports)]
#[join = "AxiWriteMaster"]
pub struct AxiWriteSlave<const A: usize, const D: usize, const S: usize, const I: usize> {
    /// Transaction identifier of the write.
    pub awid: Signal<In, Bits<I>>,
    /// Byte address of the write.
    pub awaddr: Signal<In, Bits<A>>,
    /// Beats of the write less one.
    pub awlen: Signal<In, Bits<8>>,
    /// log2 of the bytes of a beat.
    pub awsize: Signal<In, Bits<3>>,
    /// Burst type; 1 is incrementing.
    pub awburst: Signal<In, Bits<2>>,
    /// The write address is here.
    pub awvalid: Signal<In, Bit>,
    /// The write address is taken.
    pub awready: Signal<Out, Bit>,
    /// Write data.
    pub wdata: Signal<In, Bits<D>>,
    /// Bytes of the data to write, one bit each.
    pub wstrb: Signal<In, Bits<S>>,
    /// Last beat of the write.
    pub wlast: Signal<In, Bit>,
    /// The write data is here.
    pub wvalid: Signal<In, Bit>,
    /// The write data is taken.
    pub wready: Signal<Out, Bit>,
    /// Transaction identifier of the response.
    pub bid: Signal<Out, Bits<I>>,
    /// Write response; 0 is OKAY.
    pub bresp: Signal<Out, Bits<2>>,
    /// The write response is here.
    pub bvalid: Signal<Out, Bit>,
    /// The write response is taken.
    pub bready: Signal<In, Bit>,
}

/// AXI4-Lite port of a master.
#[derive(Clone, Debug, Default, LogicInterface, Ports)]
#[join = "AxiLiteSlave"]
pub struct AxiLiteMaster<const A: usize, const D: usize, const S: usize> {
    /// Byte address of the write.
    pub awaddr: Signal<Out, Bits<A>>,
    /// The write address is here.
    pub awvalid: Signal<Out, Bit>,
    /// The write address is taken.
    pub awready: Signal<In, Bit>,
    /// Write data.
    pub wdata: Signal<Out, Bits<D>>,
    /// Bytes of the data to write, one bit each.
    pub wstrb: Signal<Out, Bits<S>>,
    /// The write data is here.
    pub wvalid: Signal<Out, Bit>,
    /// The write data is taken.
    pub wready: Signal<In, Bit>,
    /// Write response; 0 is OKAY.
    pub bresp: Signal<In, Bits<2>>,
    /// The write response is here.
    pub bvalid: Signal<In, Bit>,
    /// The write response is taken.
    pub bready: Signal<Out, Bit>,
    /// Byte address of the read.
    pub araddr: Signal<Out, Bits<A>>,
    /// The read address is here.
    pub arvalid: Signal<Out, Bit>,
    /// The read address is taken.
    pub arready: Signal<In, Bit>,
    /// Read data.
    pub rdata: Signal<In, Bits<D>>,
    /// Read response; 0 is OKAY.
    pub rresp: Signal<In, Bits<2>>,
    /// The read data is here.
    pub rvalid: Signal<In, Bit>,
    /// The read data is taken.
    pub rready: Signal<Out, Bit>,
}

/// AXI4-Lite port of a slave.
#[derive(Clone, Debug, Default, LogicInterface, Ports)]
#[join = "AxiLiteMaster"]
pub struct AxiLiteSlave<const A: usize, const D: usize, const S: usize> {
    /// Byte address of the write.
    pub awaddr: Signal<In, Bits<A>>,
    /// The write address is here.
    pub awvalid: Signal<In, Bit>,
    /// The write address is taken.
    pub awready: Signal<Out, Bit>,
    /// Write data.
    pub wdata: Signal<In, Bits<D>>,
    /// Bytes of the data to write, one bit each.
    pub wstrb: Signal<In, Bits<S>>,
    /// The write data is here.
    pub wvalid: Signal<In, Bit>,
    /// The write data is taken.
    pub wready: Signal<Out, Bit>,
    /// Write response; 0 is OKAY.
    pub bresp: Signal<Out, Bits<2>>,
    /// The write response is here.
    pub bvalid: Signal<Out, Bit>,
    /// The write response is taken.
    pub bready: Signal<In, Bit>,
    /// Byte address of the read.
    pub araddr: Signal<In, Bits<A>>,
    /// The read address is here.
    pub arvalid: Signal<In, Bit>,
    /// The read address is taken.
    pub arready: Signal<Out, Bit>,
    /// Read data.
    pub rdata: Signal<Out, Bits<D>>,
    /// Read response; 0 is OKAY.
    pub rresp: Signal<Out, Bits<2>>,
    /// The read data is here.
    pub rvalid: Signal<Out, Bit>,
    /// The read data is taken.
    pub rready: Signal<In, Bit>,
}
