//! A card is opened when its own reset is done, whatever the reset of its function does and however
//! near it is.

use std::ops::Range;
use std::sync::Arc;

use nearpm_driver::card::PoolMapping;
use nearpm_driver::pci::{Caching, DmaBuffer, Mapping, PciError, PciFunction};
use nearpm_driver::{Card, CardOptions};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::host::Parameters;
use nearpm_sim::machine::{Function, Machine, Power};
use nearpm_sim::model::{Config, ModelCard};
use nearpm_tests::rig::{medium, nearby_host, rtl_cards};
use nearpm_tests::trace::POOL;

/// A function whose reset is another one than the simulated card's.
struct WithReset(Function, fn() -> Result<(), PciError>);

impl PciFunction for WithReset {
    fn config_read(&self, offset: u16, data: &mut [u8]) -> Result<(), PciError> {
        self.0.config_read(offset, data)
    }
    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        self.0.config_write(offset, data)
    }
    fn bar_bytes(&self, bar: usize) -> Option<u64> {
        self.0.bar_bytes(bar)
    }
    fn map(&self, bar: usize, range: Range<u64>, caching: Caching) -> Result<Box<dyn Mapping>, PciError> {
        self.0.map(bar, range, caching)
    }
    fn interrupt_vectors(&self) -> usize {
        self.0.interrupt_vectors()
    }
    fn wait_interrupt(&self, vector: usize, timeout_ns: u64) -> Result<bool, PciError> {
        self.0.wait_interrupt(vector, timeout_ns)
    }
    fn allocate_dma(&self, bytes: usize) -> Result<Box<dyn DmaBuffer>, PciError> {
        self.0.allocate_dma(bytes)
    }
    fn reset(&self) -> Result<(), PciError> {
        self.1()
    }
    fn host_boot(&self) -> Option<u64> {
        self.0.host_boot()
    }
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
    fn relax(&self, ns: u64) {
        self.0.relax(ns);
    }
    fn contended(&self) -> bool {
        self.0.contended()
    }
}

/// A copy of a page to one that is no other's.
fn copy(page: u64) -> Command {
    let (source, destination) = (8192 * page, 8192 * page + 4096);
    Command {
        opcode: Opcode::ShadowCopy as u8,
        pool: 1,
        txid: 1,
        source,
        destination,
        length: 4096,
        ..Command::default()
    }
}

/// Opens the card of a machine again and again: idle, and with work on its way. Each time its pool
/// is mapped and a command ends.
fn opens(power: &dyn Power, parameters: Parameters, function: impl Fn(Function) -> Arc<dyn PciFunction>) {
    let machine = Machine::new(parameters, power, medium());
    let mut was_busy = false;
    for busy in [false, true, true, false] {
        let card =
            Card::open(function(machine.function()), CardOptions { timeout_ns: 300_000, ..CardOptions::default() });
        let card = card.expect("the card opens");
        let mapping = PoolMapping {
            pool: 1,
            thread: 0,
            base: POOLS_BASE,
            bytes: POOL.bytes,
            ring: POOL.ring,
            ring_bytes: POOL.ring_bytes as u32,
            committed: 0,
        };
        card.map_pool(mapping).unwrap_or_else(|error| panic!("with work on its way {was_busy}: {error}"));
        let ended = card.post(1, copy(0), true).and_then(|ticket| card.wait(ticket));
        ended.unwrap_or_else(|error| panic!("with work on its way {was_busy}: {error}"));
        if busy {
            (1..16).for_each(|page| _ = card.post(2, copy(page), false).expect("it is posted"));
        }
        was_busy = busy;
    }
}

#[test]
fn a_card_opens_when_its_reset_is_done() {
    let model = |medium| Box::new(ModelCard::new(Config::default(), medium)) as Box<dyn nearpm_sim::core::CardCore>;
    let rtl = rtl_cards(MemoryPorts::One);
    let cards: [&dyn Power; 2] = [&model, &rtl];
    for power in cards {
        // The near one has a register loaded before an idle card has done its reset.
        for parameters in [Parameters::default(), nearby_host()] {
            opens(power, parameters, |function| Arc::new(function));
            let unsupported = || Err(PciError::Unsupported { what: "function-level reset" });
            opens(power, parameters, |function| Arc::new(WithReset(function, unsupported)));
            // What a system does where there is none, by the bus or the power state: the card
            // behind the function sees nothing of it.
            opens(power, parameters, |function| Arc::new(WithReset(function, || Ok(()))));
        }
    }
}
