//! Every parameter of the memory, with its unit and its source.
//!
//! Sources: *JEDEC* is JESD79-4 (DDR4 SDRAM), table "Timing parameters by speed bin" for
//! DDR4-2400; *Micron* is the data sheet of the 8 Gb part MT40A1G8 at speed grade -083
//! (17-17-17); *PG150* is AMD's product guide of the UltraScale memory controller (MIG).

/// Rules between DRAM commands, in DRAM clocks of 833.3 ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Read command to first data. Micron -083: 17.
    pub cl: u64,
    /// Write command to first data. JEDEC, mode register 2 for 2400 MT/s with one preamble
    /// clock: 12.
    pub cwl: u64,
    /// Activate to read or write. Micron -083: 14.16 ns = 17.
    pub rcd: u64,
    /// Precharge to activate. Micron -083: 14.16 ns = 17.
    pub rp: u64,
    /// Activate to precharge. JEDEC: 32 ns = 39.
    pub ras: u64,
    /// Data clocks of a burst of eight: 4.
    pub burst: u64,
    /// Column command to column command, other bank group. JEDEC: 4.
    pub ccd_s: u64,
    /// Column command to column command, same bank group. JEDEC: 5 ns = 6.
    pub ccd_l: u64,
    /// Activate to activate, other bank group, 1 KiB page. JEDEC: 3.3 ns = 4.
    pub rrd_s: u64,
    /// Activate to activate, same bank group, 1 KiB page. JEDEC: 4.9 ns = 6.
    pub rrd_l: u64,
    /// Window that holds at most four activates, 1 KiB page. JEDEC: 21 ns = 26.
    pub faw: u64,
    /// Read to precharge. JEDEC: 7.5 ns = 9.
    pub rtp: u64,
    /// End of write data to precharge. JEDEC: 15 ns = 18.
    pub wr: u64,
    /// End of write data to read, other bank group. JEDEC: 2.5 ns = 3.
    pub wtr_s: u64,
    /// End of write data to read, same bank group. JEDEC: 7.5 ns = 9.
    pub wtr_l: u64,
    /// Read command to write command: CL - CWL + burst + 2. JEDEC, "read burst followed by write
    /// burst": 11.
    pub rtw: u64,
    /// Average distance of refreshes. JEDEC: 7.8 us = 9360.
    pub refi: u64,
    /// Length of a refresh, 8 Gb. JEDEC: 350 ns = 420.
    pub rfc: u64,
}

/// The controller, in its own cycles of four DRAM clocks (300 MHz).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Read address handshake to the scheduler: AXI shim, address decode and group queue. PG150 has
    /// no table of these; 8 + 8 makes an idle read of a closed row 27 cycles, in the middle of what
    /// simulations of the MIG give (25 to 30).
    pub read_front: u64,
    /// Last read data on the DRAM pins to the AXI port: PHY capture, read FIFO, reorder buffer, AXI
    /// shim.
    pub read_back: u64,
    /// Write beat handshake to the scheduler.
    pub write_front: u64,
    /// Last write beat in the write queue to B on the port.
    pub write_answer: u64,
    /// Lines that reads hold at most, from acceptance to the AXI port.
    pub read_lines: usize,
    /// Lines of the write queue. It is what must drain when power fails: 4 KiB.
    pub write_lines: usize,
    /// Read bursts that wait in front of the read queue, and write bursts in front of theirs.
    pub bursts: usize,
    /// Queued writes at which reads stop and writes are served.
    pub write_high: usize,
    /// Queued writes at which waiting reads are served again.
    pub write_low: usize,
    /// Longest batch in one direction while the other waits, in lines.
    pub batch: u32,
    /// Cycles without a queued read after which writes are served although there are few.
    pub idle_before_writes: u64,
    /// Age in cycles at which the oldest request of a bank is no longer passed by row hits.
    pub age_limit: u64,
    /// Cycles of the receiving clock for each crossing between the card's clock and the
    /// controller's where they differ: two synchroniser flip-flops and the FIFO's output register.
    pub crossing: u64,
}

/// Timing rules and controller of one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Rules between DRAM commands.
    pub timing: Timing,
    /// The controller.
    pub controller: Controller,
}

/// Clock of the controller, in MHz: the DRAM clock of DDR4-2400 by four (PG150).
pub const CONTROLLER_MHZ: u64 = 300;
/// DRAM clocks in a cycle of the controller.
pub const CLOCKS: u64 = 4;

impl Config {
    /// DDR4-2400 17-17-17, eight 8 Gb x8 devices, behind a MIG.
    pub const DDR4_2400: Config = Config {
        timing: Timing {
            cl: 17,
            cwl: 12,
            rcd: 17,
            rp: 17,
            ras: 39,
            burst: 4,
            ccd_s: 4,
            ccd_l: 6,
            rrd_s: 4,
            rrd_l: 6,
            faw: 26,
            rtp: 9,
            wr: 18,
            wtr_s: 3,
            wtr_l: 9,
            rtw: 11,
            refi: 9360,
            rfc: 420,
        },
        controller: Controller {
            read_front: 8,
            read_back: 8,
            write_front: 4,
            write_answer: 8,
            read_lines: 64,
            write_lines: 64,
            bursts: 8,
            write_high: 48,
            write_low: 16,
            batch: 64,
            idle_before_writes: 2,
            age_limit: 256,
            crossing: 3,
        },
    };
}

impl Default for Config {
    fn default() -> Self {
        Config::DDR4_2400
    }
}
