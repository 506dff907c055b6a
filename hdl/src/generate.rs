//! The card as one Verilog file and a description of its ports.

use crate::MAKER;
use crate::card::Card;
use crate::dut::{PortRow, Ports, verilog_of};
use crate::pcie::bridge::PcieBridge;
use crate::simulation::for_simulation;
use crate::sizes::Sizes;
use crate::two_port_card::TwoPortCard;
use crate::units::registers::BUILD_HASH_NAME;
use crate::wrapper::{self, Names};
use nearpm_interface::geometry::UNITS;
pub use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_interface::registers::capability;
use rust_hdl::prelude::Block;
use serde_json::{Value, json};

/// Name of the card's top module.
pub const MODULE: &str = "nearpm_card";
/// Name of the bridge's top module.
pub const BRIDGE_MODULE: &str = "nearpm_pcie_bridge";

const CARD: Names = Names { module: MODULE, core: "nearpm_core" };
const BRIDGE: Names = Names { module: BRIDGE_MODULE, core: "nearpm_pcie_core" };

/// What can be chosen when a card is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The board keeps what the card acknowledged through a power cut: sets `POWER_FAIL_SAFE`.
    pub power_fail_safe: bool,
    /// AXI4 ports towards memory: with two, `m_axi_mem1` stands beside `m_axi_mem0`.
    pub memory_ports: MemoryPorts,
    /// The port to other cards is connected: sets `PEERS`.
    pub peers: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { power_fail_safe: true, memory_ports: MemoryPorts::One, peers: true }
    }
}

impl Parameters {
    /// The `CAPABILITIES` register.
    fn capabilities(&self) -> u32 {
        let safe = if self.power_fail_safe { capability::POWER_FAIL_SAFE } else { 0 };
        let peers = if self.peers { capability::PEERS } else { 0 };
        capability::HOST_ORDERED | capability::COMPLETION_RECORDS | peers | safe
    }
}

/// A generated card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedCard {
    /// One self-contained file; its top module is [`MODULE`].
    pub verilog: String,
    /// Module, hash, parameters and ports, as JSON.
    pub ports_json: String,
}

impl GeneratedCard {
    /// The Verilog that stands for this card in simulations: [`for_simulation`].
    pub fn simulated(&self) -> String {
        for_simulation(&self.verilog)
    }

    /// What `generate` of this crate gives for a name, kept by [`nearpm_verilate::kept`] for all
    /// programs that are built of the same sources. The name says all that `generate` is called
    /// with.
    ///
    /// # Errors
    /// The cache cannot be used.
    pub fn kept(name: &str, generate: impl FnOnce() -> Self) -> Result<Self, nearpm_verilate::Error> {
        let [verilog, ports_json] = nearpm_verilate::kept(MAKER, name, ["card.v", "card.json"], || {
            let Self { verilog, ports_json } = generate();
            [verilog, ports_json]
        })?;
        Ok(Self { verilog, ports_json })
    }
}

/// rust-hdl passes the card by value on its way to the heap.
const STACK_BYTES: usize = 4 << 30;

/// Generates the card.
///
/// The register `BUILD_HASH` of the result reads as the CRC-32C of the whole text with that
/// constant zero.
///
/// # Panics
/// When rust-hdl's checks of the design fail, which is a defect of this crate.
pub fn generate(parameters: &Parameters) -> GeneratedCard {
    let parameters = *parameters;
    on_big_stack(move || match parameters.memory_ports {
        MemoryPorts::One => generate_from(parameters, card::<UNITS>(&parameters, &Sizes::FULL)),
        MemoryPorts::Two => generate_from(parameters, Box::new(TwoPortCard::new(parameters.capabilities()))),
    })
}

/// The card of [`generate`], which is generated once for all programs of the same sources: seconds,
/// which no other process takes again.
///
/// # Errors
/// The cache of the simulated models ([`nearpm_verilate`]) cannot be used.
///
/// # Panics
/// As [`generate`].
pub fn try_generated(parameters: &Parameters) -> Result<GeneratedCard, nearpm_verilate::Error> {
    GeneratedCard::kept(&format!("card {parameters:?}"), || generate(parameters))
}

/// As [`try_generated`], for tests.
///
/// # Panics
/// As [`generate`], and where the cache cannot be used.
pub fn generated(parameters: &Parameters) -> GeneratedCard {
    try_generated(parameters).unwrap_or_else(|error| panic!("{error}"))
}

/// Generates the card with one unit, and tables of these sizes. The number is no parameter: who
/// names one compiles the whole card again.
///
/// # Panics
/// When the sizes are out of range ([`Sizes::check`]), when it is to have more than one port to
/// memory, and as [`generate`].
pub fn generate_small_card(parameters: &Parameters, sizes: Sizes) -> GeneratedCard {
    let parameters = *parameters;
    assert_eq!(parameters.memory_ports, MemoryPorts::One, "a small card has one port to memory");
    on_big_stack(move || generate_from(parameters, card::<1>(&parameters, &sizes)))
}

fn card<const U: usize>(parameters: &Parameters, sizes: &Sizes) -> Box<Card<U>> {
    Box::new(Card::new(parameters.capabilities(), sizes))
}

/// Generates the bridge between the PCIe block and the card; its top module is [`BRIDGE_MODULE`].
///
/// # Panics
/// As [`generate`].
pub fn generate_bridge() -> GeneratedCard {
    on_big_stack(|| {
        let bridge = Box::<PcieBridge>::default();
        let rows = rows_of(bridge.as_ref());
        let verilog = wrapper::wrap(&BRIDGE, &verilog_of(bridge), &rows);
        let description = json!({ "module": BRIDGE_MODULE, "ports": ports_of(&rows) });
        GeneratedCard { verilog, ports_json: pretty(&description) }
    })
}

/// The bridge of [`generate_bridge`], which is generated once for all programs of the same sources.
///
/// # Panics
/// As [`generate`], and where the cache of the simulated models cannot be used.
pub fn generated_bridge() -> GeneratedCard {
    GeneratedCard::kept("bridge", generate_bridge).unwrap_or_else(|error| panic!("{error}"))
}

/// Generates the execution side of the card alone: firmware store, `U` units (a card has four),
/// memory port. Its top module is `top`, its ports are those of [`Back`](crate::units::back::Back).
///
/// # Panics
/// As [`generate`].
pub fn generate_execution_side<const U: usize>() -> String {
    on_big_stack(|| verilog_of(Box::<crate::units::back::Back<U>>::default()))
}

fn on_big_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().name("generate".into()).stack_size(STACK_BYTES).spawn(work);
    thread.expect("the system has a thread left").join().expect("the design passes its checks")
}

fn rows_of(unit: &dyn Ports) -> Vec<PortRow> {
    let mut rows = Vec::new();
    unit.list(&PortRow::root(), &mut rows);
    rows
}

/// The wrapper's ports, described.
fn ports_of(rows: &[PortRow]) -> Vec<Value> {
    let describe = |port: &wrapper::Port| {
        let direction = if port.input { "input" } else { "output" };
        json!({ "name": port.name, "direction": direction, "bits": port.bits })
    };
    wrapper::ports(rows).iter().map(describe).collect()
}

fn pretty(description: &Value) -> String {
    serde_json::to_string_pretty(description).expect("plain data is JSON") + "\n"
}

fn generate_from<C: Block + Ports>(parameters: Parameters, card: Box<C>) -> GeneratedCard {
    let rows = rows_of(card.as_ref());
    let text = wrapper::wrap(&CARD, &verilog_of(card), &rows);
    let (verilog, hash) = with_hash(&text);
    let description = json!({
        "module": MODULE,
        "build_hash": format!("{hash:08x}"),
        "parameters": {
            "power_fail_safe": parameters.power_fail_safe,
            "memory_ports": parameters.memory_ports.count(),
            "peers": parameters.peers,
        },
        "ports": ports_of(&rows),
    });
    GeneratedCard { verilog, ports_json: pretty(&description) }
}

/// Puts the hash of the text into its own constant.
fn with_hash(text: &str) -> (String, u32) {
    let constant = |hash: u32| format!("{BUILD_HASH_NAME} = 32'h{hash:08x};");
    assert_eq!(text.matches(&constant(0)).count(), 1, "one constant holds the hash");
    let hash = crc32c::crc32c(text.as_bytes());
    (text.replacen(&constant(0), &constant(hash), 1), hash)
}
