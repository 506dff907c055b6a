//! What is known of stores that memory refused.

use crate::dut::PortValue;
use rust_hdl::prelude::*;

/// Stores that were accepted and that memory refused: how many, and between which lines they lie.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct, PortValue)]
pub struct Lost {
    /// How many; stays at its highest value. 0 where there are none.
    pub count: Bits<32>,
    /// Lowest line address; 0 where there are none.
    pub first: Bits<34>,
    /// Highest line address.
    pub last: Bits<34>,
}
