//! What tests on whole cards begin with.

use nearpm_hdl::Parameters;
use nearpm_interface::geometry::{POOLS_BASE, SAVE_BASE, SAVE_BYTES};
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::bench::provisioned;
use nearpm_sim::core::Medium;
use nearpm_sim::host::Parameters as Host;
use nearpm_sim::rtl::{Options, RtlCards};

use crate::trace::POOL;

pub use nearpm_tier::thorough;

/// A medium with firmware, whose pool holds a pattern.
pub fn medium() -> Medium {
    let bytes = (POOLS_BASE + POOL.bytes) as usize;
    let mut medium = provisioned(bytes, nearpm_firmware::standard().bytes());
    for address in (POOLS_BASE as usize..bytes).step_by(64) {
        medium.bytes[address..address + 64].copy_from_slice(&nearpm_sim::bench::line_pattern(address as u64));
    }
    medium
}

/// How many memory ports the cards of a test have in turn: two only in the long form, because that
/// is a design of its own to build.
pub fn memory_ports() -> &'static [MemoryPorts] {
    if thorough() { &MemoryPorts::ALL } else { &[MemoryPorts::One] }
}

/// The generated card on Verilator.
///
/// # Panics
/// When it does not build, with Verilator's words, or has not as many memory ports.
pub fn rtl_cards(memory_ports: MemoryPorts) -> RtlCards {
    let card = nearpm_hdl::generated(&Parameters { memory_ports, ..Parameters::default() });
    let has_second = card.ports_json.contains("\"m_axi_mem1_araddr\"");
    assert_eq!(has_second, memory_ports == MemoryPorts::Two, "the design has other memory ports");
    RtlCards::build(nearpm_hdl::MODULE, &card.simulated(), Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// A host so close to its cards that what happens is dense: few cycles are there in which a link
/// alone is at work.
pub fn nearby_host() -> Host {
    let far = Host::default();
    Host {
        load_miss_ps: far.card_read_ps + 10_000,
        leave_ps: 2_000,
        poll_miss_ps: 2_000,
        load_parallelism_percent: 1_200,
        ..far.x16()
    }
}

/// Everything but the save area, which holds order numbers and generations.
pub fn without_save(medium: &Medium) -> Vec<u8> {
    let mut bytes = medium.bytes.clone();
    bytes[SAVE_BASE as usize..(SAVE_BASE + SAVE_BYTES) as usize].fill(0);
    bytes
}
