//! The modules of the VCU118's design.

use nearpm_hdl::{BRIDGE_MODULE, GeneratedCard, MODULE, MemoryPorts, Parameters};

/// The card and the bridge by their modules' names.
///
/// The board's memory is volatile and the board has no energy of its own: the card does not say that it is safe from power cuts. No link to
/// other cards is on the board, nor does it say that there is one.
pub fn modules() -> [(&'static str, GeneratedCard); 2] {
    let parameters = Parameters { power_fail_safe: false, memory_ports: MemoryPorts::Two, peers: false };
    [(MODULE, nearpm_hdl::generate(&parameters)), (BRIDGE_MODULE, nearpm_hdl::generate_bridge())]
}
