//! The bridge between the PCIe block of an UltraScale+ part (Xilinx PG213) and the card's AXI
//! ports.
//!
//! | unit | guarantees |
//! |---|---|
//! | [`completer`] | each request of the host is performed in the order of arrival |
//! | [`line_access`] | accesses at the port that their BAR stands for, of one port and direction at a time |
//! | [`responder`] | requests are answered as PCIe asks, in their order |
//! | [`function_reset`] | a function-level reset drains the card, and ends in time |
//! | [`requester`] | completion records and interrupts reach the host in this order |
//! | [`msix`] | the table of MSI-X vectors, which the PCIe block leaves to the user |
//! | [`header`], [`lanes`] | fields and data of packets |
//! | [`bridge`] | all of them together |
//!
//! The streams have 512 bits, Dword-aligned, without straddling.

pub mod bridge;
pub mod completer;
pub mod function_reset;
pub mod header;
pub mod lanes;
pub mod line_access;
pub mod msix;
pub mod requester;
pub mod responder;
