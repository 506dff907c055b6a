//! What plays the card of a case: the transaction-level model with the RTL's timing, or the RTL
//! itself.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use nearpm_interface::geometry::UNITS;
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::machine::Power;
use nearpm_sim::model::{Busy, Config, ModelCard};
use nearpm_sim::profile::Profile;
use serde::{Deserialize, Serialize};

/// What plays the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// The transaction-level card.
    #[default]
    Model,
    /// The Verilated RTL.
    Rtl,
}

impl Device {
    /// Every one.
    pub const ALL: [Device; 2] = [Device::Model, Device::Rtl];

    /// What its times are, in tables of results. Host and link are modelled beside either.
    pub fn origin(self) -> &'static str {
        match self {
            Device::Model => "model",
            Device::Rtl => "RTL cycles",
        }
    }

    /// Whether it is the transaction-level card.
    pub fn is_model(&self) -> bool {
        *self == Device::Model
    }
}

/// What makes cards, each time the power comes.
pub type Cards = Box<dyn Power + Send + Sync>;

/// Makes what makes Verilated cards of a clock in MHz. It is handed in by whoever has the
/// hardware's tool chain, which this crate has not.
pub type MakeRtl<'m> = dyn Fn(u64) -> Result<Cards> + Sync + 'm;

/// Transaction-level cards of a profile, which say when they work on commands.
pub fn model(profile: &Profile, units: usize, busy: &Arc<Busy>) -> Cards {
    let (config, busy) = (profile.card(units), busy.clone());
    Box::new(move |medium: Medium| Box::new(ModelCard::new(config, medium).metered(busy.clone())) as Box<dyn CardCore>)
}

/// Verilated cards with the clock of a profile.
///
/// # Errors
/// If the profile's card is not the one that was built in RTL, nobody makes Verilated cards here,
/// or they cannot be built.
pub fn rtl(profile: &Profile, units: usize, make: Option<&MakeRtl<'_>>) -> Result<Cards> {
    let (card, built) = (profile.card(units), Config::default());
    let is_built = |config: &Config| (config.timing, config.units, config.line_percent, config.ddr4);
    ensure!(
        is_built(&card) == is_built(&built),
        "the RTL has {UNITS} units and no further cycles or narrower bus: a card of {units} units as in the profile {} was not built",
        profile.name
    );
    make.context("there is no RTL here")?(card.card_mhz)
}
