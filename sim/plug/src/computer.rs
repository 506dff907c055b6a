//! The simulated computer with the card.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use nearpm::cards;
use nearpm::memory::{CUT_STATUS, not_cut};
use nearpm_driver::{Card, CardOptions};
use nearpm_sim::core::{Access, Answer, CardCore, DmaWrite, Medium, Ticket};
use nearpm_sim::host::{Cut, Parameters};
use nearpm_sim::machine::Machine;
use nearpm_sim::model::{Config, ModelCard};

use crate::commands::Commands;
use crate::cut::CardCut;
use crate::image::Image;

/// A card that writes what arrives to its file.
struct KeptCard {
    card: Box<ModelCard>,
    image: Arc<Image>,
    commands: Commands,
    /// Has the virtual time of what arrived last, for whoever follows the program.
    clock: Option<Arc<File>>,
}

impl CardCore for KeptCard {
    fn cycle(&self) -> u64 {
        self.card.cycle()
    }

    fn period_ps(&self) -> u64 {
        self.card.period_ps()
    }

    fn advance_to(&mut self, cycle: u64) {
        self.card.advance_to(cycle);
    }

    fn submit(&mut self, access: Access) -> Ticket {
        if let Some(clock) = &self.clock {
            let ps = self.card.cycle() * self.card.period_ps();
            if let Err(error) = clock.write_all_at(&ps.to_le_bytes(), 0) {
                // The program has nothing to do with who follows it, and goes on.
                eprintln!("nearpm: NEARPM_CARD_CLOCK stands still, it cannot be written: {error}");
                self.clock = None;
            }
        }
        match &access {
            Access::PmWrite { address, data, strobes } => self.image.store(*address, data, *strobes),
            Access::CommandWrite { offset, data, strobes } => self.commands.write(*offset, data, *strobes, &self.image),
            _ => {}
        }
        self.card.submit(access)
    }

    fn take(&mut self, ticket: Ticket) -> Option<Answer> {
        self.card.take(ticket)
    }

    fn take_dma(&mut self) -> Option<DmaWrite> {
        self.card.take_dma()
    }

    fn next_output(&self) -> Option<u64> {
        self.card.next_output()
    }

    fn is_idle(&self) -> bool {
        self.card.is_idle()
    }

    /// The power fails for the computer as well: the process ends here.
    fn power_fail(self: Box<Self>, save_cycles: u64, seed: u64) -> Medium {
        let KeptCard { card, image, .. } = *self;
        if let Err(error) = image.replace(&card.power_fail(save_cycles, seed)) {
            eprintln!("nearpm: {error}");
            std::process::abort();
        }
        // SAFETY: ends the process without a handler or destructor, as a power cut does.
        unsafe { libc::_exit(CUT_STATUS) }
    }
}

/// The computer, with its power on. Dropping it takes the card out.
pub struct Computer {
    machine: Machine,
    image: Arc<Image>,
    name: String,
    cut: Option<CardCut>,
}

fn open_card(machine: &Machine, file: &Path) -> Result<Card, String> {
    let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
    let options = CardOptions { firmware, ..CardOptions::default() };
    Card::open(Arc::new(machine.function()), options)
        .map_err(|error| format!("the card in {}: {error}", file.display()))
}

/// Boots a card, which replays what a power cut left, and shuts it down.
fn at_rest(file: &Path, medium: Medium) -> Result<Medium, String> {
    let power = |medium| Box::new(ModelCard::new(Config::default(), medium)) as Box<dyn CardCore>;
    let machine = Machine::new(Parameters::default(), &power, medium);
    let card = open_card(&machine, file)?;
    card.shut_down().map_err(|error| format!("the card in {}: {error}", file.display()))?;
    machine.cut_now(0);
    Ok(machine.medium().expect("the power is off"))
}

/// Bytes of the time in the file of `NEARPM_CARD_CLOCK`.
const CLOCK_BYTES: u64 = 8;

/// The file that `NEARPM_CARD_CLOCK` names: a new one, an empty one, or one that has a time.
fn clock_from_environment() -> Result<Option<File>, String> {
    let Some(path) = std::env::var_os("NEARPM_CARD_CLOCK").filter(|path| !path.is_empty()) else { return Ok(None) };
    let name = Path::new(&path).display();
    let made = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let file = made.map_err(|error| format!("NEARPM_CARD_CLOCK: {name} cannot be made: {error}"))?;
    let bytes = file.metadata().map_err(|error| format!("NEARPM_CARD_CLOCK: {name}: {error}"))?.len();
    if bytes != 0 && bytes != CLOCK_BYTES {
        return Err(format!("NEARPM_CARD_CLOCK: {name} has {bytes} bytes, and is no clock: nothing was written"));
    }
    Ok(Some(file))
}

impl Computer {
    /// Puts the card in and makes it known under a name.
    pub fn start(file: &Path, name: &str, cut: Option<CardCut>) -> Result<Computer, String> {
        let (image, medium) = Image::open(file, |medium| at_rest(file, medium))?;
        let image = Arc::new(image);
        let hostile = cut.filter(|cut| cut.hostile);
        let parameters = hostile.map_or(Parameters::default(), |cut| Parameters::default().adversarial(cut.seed));
        let kept = image.clone();
        let clock = clock_from_environment()?.map(Arc::new);
        let power = move |medium| {
            let card = Box::new(ModelCard::new(Config::default(), medium));
            Box::new(KeptCard { card, image: kept.clone(), commands: Commands::default(), clock: clock.clone() })
                as Box<dyn CardCore>
        };
        let machine = Machine::new(parameters, &power, medium);
        if let Some(cut) = cut {
            machine.arm_cut(Cut::AtCycle(cut.cycle), cut.seed);
        }
        cards::register(name, Arc::new(open_card(&machine, file)?));
        Ok(Computer { machine, image, name: name.to_owned(), cut })
    }
}

impl Drop for Computer {
    fn drop(&mut self) {
        cards::unregister(&self.name);
        self.machine.settle();
        if self.cut.is_some() {
            eprintln!("nearpm: the card's {}", not_cut(self.machine.cycle(), "cycles"));
        }
        if let Err(error) = self.image.sync() {
            eprintln!("nearpm: {error}");
        }
    }
}
