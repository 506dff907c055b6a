//! Which card is simulated.

use std::sync::Arc;

use anyhow::{Result, bail};
use clap::ValueEnum;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::core::CardCore;
use nearpm_sim::machine::Power;
use nearpm_sim::model::{self, ModelCard};

use crate::rtl::rtl_cards;

/// Clock of the simulated cards, in MHz.
const CARD_MHZ: u64 = 300;

/// Cards that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SimulatedCard {
    /// The transaction-level model
    Model,
    /// The Verilated RTL
    Rtl,
}

/// What makes cards, for several computers at once.
pub type Cards = Arc<dyn Power + Send + Sync>;

impl SimulatedCard {
    /// Name, for people.
    pub fn name(self) -> &'static str {
        match self {
            SimulatedCard::Model => "transaction-level card",
            SimulatedCard::Rtl => "Verilated RTL",
        }
    }

    /// Name with its memory ports, for people.
    pub fn named_with(self, memory_ports: MemoryPorts) -> String {
        match memory_ports {
            MemoryPorts::One => self.name().into(),
            MemoryPorts::Two => format!("{} with two memory ports", self.name()),
        }
    }

    /// What makes such cards.
    ///
    /// # Errors
    /// If the RTL cannot be built, or the model is to have more than its one memory port.
    pub fn cards(self, memory_ports: MemoryPorts) -> Result<Cards> {
        self.check(memory_ports)?;
        Ok(match self {
            SimulatedCard::Model => {
                Arc::new(|medium| Box::new(ModelCard::new(model::Config::default(), medium)) as Box<dyn CardCore>)
            }
            SimulatedCard::Rtl => Arc::new(rtl_cards(CARD_MHZ, memory_ports)?),
        })
    }

    /// Whether such cards can have so many memory ports.
    ///
    /// # Errors
    /// If not.
    pub fn check(self, memory_ports: MemoryPorts) -> Result<()> {
        if self == SimulatedCard::Model && memory_ports != MemoryPorts::One {
            bail!("the transaction-level card has one memory port");
        }
        Ok(())
    }
}
