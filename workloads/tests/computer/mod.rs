//! A computer whose cards are known to the library under names of its own.

use std::sync::{Arc, OnceLock};

use nearpm::{Error, Problem, cards};
use nearpm_driver::{Card, CardError, CardOptions, Posting};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::host::{Parameters, Peers};
use nearpm_sim::machine::{Machine, Power, Socket};
use nearpm_sim::model::fault::Fault;
use nearpm_sim::model::{Config, ModelCard};
use nearpm_sim::rtl::{Options, RtlCards};

/// What the cards are.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "each test program uses its kinds")]
pub enum Cards {
    /// Transaction-level, with a fault or sound.
    Model(Option<Fault>),
    /// Verilated.
    Rtl,
}

impl Cards {
    /// Transaction-level and sound.
    pub const MODEL: Cards = Cards::Model(None);
}

/// The Verilated card, which is built once.
fn rtl() -> &'static RtlCards {
    static CARDS: OnceLock<RtlCards> = OnceLock::new();
    CARDS.get_or_init(|| {
        let card = nearpm_hdl::generated(&nearpm_hdl::Parameters::default());
        RtlCards::build(nearpm_hdl::MODULE, &card.simulated(), Options::default()).expect("the card builds")
    })
}

impl Power for Cards {
    fn power_up(&self, medium: Medium) -> Box<dyn CardCore> {
        match self {
            Cards::Model(Some(fault)) => Box::new(ModelCard::with_fault(Config::default(), medium, *fault)),
            Cards::Model(None) => Box::new(ModelCard::new(Config::default(), medium)),
            Cards::Rtl => rtl().power_up(medium),
        }
    }
}

pub struct Computer {
    pub machine: Machine,
    cards: Cards,
    name: String,
    posting: Posting,
}

impl Computer {
    /// A hostile computer, by `seed`, with so many cards, each with room for `bytes` bytes of
    /// pools.
    pub fn new(kind: Cards, name: String, seed: u64, cards: usize, bytes: u64) -> Computer {
        let parameters = Parameters::default().adversarial(seed);
        let peers = if seed.is_multiple_of(2) { Peers::default() } else { Peers::default().adversarial(seed) };
        let posting = [Posting::Line, Posting::WriteCombining, Posting::Uncached][seed as usize % 3];
        Computer::made_of(kind, parameters, peers, posting, name, cards, bytes)
    }

    /// A computer of such parts.
    pub fn made_of(
        kind: Cards,
        parameters: Parameters,
        peers: Peers,
        posting: Posting,
        name: String,
        cards: usize,
        bytes: u64,
    ) -> Computer {
        let medium = Medium::blank((POOLS_BASE + bytes) as usize + (2 << 20));
        let machine = Machine::with_cards(parameters, peers, &kind, vec![medium; cards]);
        // Names of cards are joined by it.
        let name = name.replace('+', "-");
        Computer { machine, cards: kind, name, posting }
    }

    /// Name of a card.
    pub fn card(&self, card: usize) -> String {
        format!("{}-{card}", self.name)
    }

    /// Opens the card of a slot and makes it known.
    pub fn plug_one(&self, card: usize) -> Result<(), CardError> {
        let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
        let options = CardOptions { firmware, posting: self.posting, ..CardOptions::default() };
        let open = Card::open(Arc::new(self.machine.function_of(card)), options)?;
        cards::register(&self.card(card), Arc::new(open));
        Ok(())
    }

    pub fn plug(&self) {
        (0..self.machine.cards()).for_each(|card| self.plug_one(card).expect("the card opens"));
    }

    /// The process knows the cards no more.
    pub fn unplug(&self) {
        (0..self.machine.cards()).for_each(|card| drop(cards::unregister(&self.card(card))));
    }

    /// Where the pool lies that is on all cards.
    pub fn pool(&self) -> String {
        let names: Vec<String> = (0..self.machine.cards()).map(|card| self.card(card)).collect();
        format!("card:{}/p", names.join("+"))
    }

    #[allow(dead_code, reason = "as above")]
    pub fn power_up(&self) {
        self.unplug();
        self.power_on();
        self.plug();
    }

    /// The power comes back; the process does not know the cards yet.
    #[allow(dead_code, reason = "as above")]
    pub fn power_on(&self) {
        self.machine.power_up_each(&vec![Socket::Card(&self.cards); self.machine.cards()]);
    }

    /// What the cards hold of pools, while the power is off.
    #[allow(dead_code, reason = "as above")]
    fn pools(&self) -> Vec<Vec<u8>> {
        let of = |card| self.machine.look_at_medium_of(card, |medium| medium.bytes[POOLS_BASE as usize..].to_vec());
        (0..self.machine.cards()).map(|card| of(card).expect("the power is off")).collect()
    }

    /// Behind a power cut one card is `away`, and `open` opens the pool, which must be refused:
    /// that card is named, and no card is changed. In the end all are there.
    #[allow(dead_code, reason = "as above")]
    pub fn refuses_without<P>(&self, away: usize, socket: Socket<'_>, open: impl Fn(&str) -> Result<P, Error>) {
        // What was saved is replayed first; from then on the pools are compared.
        self.unplug();
        self.power_on();
        self.plug();
        self.unplug();
        self.machine.settle();
        self.machine.cut_now(1);
        let before = self.pools();
        let mut sockets = vec![Socket::Card(&self.cards); self.machine.cards()];
        sockets[away] = socket;
        self.machine.power_up_each(&sockets);
        for card in 0..self.machine.cards() {
            assert_eq!(self.plug_one(card).is_ok(), card != away, "{}", self.name);
        }
        let refused = open(&self.pool()).err().unwrap_or_else(|| panic!("{}: it opens", self.name));
        let named =
            matches!(&refused, Error::Pool { problem: Problem::UnknownCard { name }, .. } if *name == self.card(away));
        assert!(named, "{}: {refused}", self.name);
        // Nor is a member taken for the whole.
        let other = (away + 1) % self.machine.cards();
        let alone = open(&format!("card:{}/p", self.card(other))).err();
        let named = matches!(&alone, Some(Error::Pool { problem: Problem::MemberAlone { .. }, .. }));
        assert!(named, "{}: {alone:?}", self.name);
        self.machine.settle();
        self.machine.cut_now(2);
        assert!(self.pools() == before, "{}: a card was changed while another one was away", self.name);
        self.power_up();
    }
}

impl Drop for Computer {
    fn drop(&mut self) {
        self.unplug();
    }
}
