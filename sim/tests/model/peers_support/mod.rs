//! Several cards in one computer, model or RTL, driven through their functions: what a library
//! does, in as few words as tests need.

#![allow(dead_code, reason = "each test program uses its part")]

pub mod recovery;

/// Makes tests of what holds for all cards: one each for transaction-level cards, and one for all
/// on Verilated cards, which are made once a process.
#[macro_export]
macro_rules! on_both_cards {
    ($($test:ident),* $(,)?) => {
        mod model {
            $(#[test] fn $test() { super::$test($crate::peers_support::Cards::default()); })*
        }

        #[test]
        fn all_of_it_on_the_rtl() {
            let kind = $crate::peers_support::Cards::rtl();
            $(
                let name = stringify!($test);
                println!("{name}");
                $test(kind);
            )*
        }
    };
}

use std::sync::OnceLock;

use nearpm_driver::pci::{Caching, Mapping, PciFunction};
use nearpm_interface::command::{Command, Opcode, slot_offset};
use nearpm_interface::completion::PageStatus;
use nearpm_interface::geometry::{
    COMMAND_BAR, COMMAND_BAR_BYTES, PM_BAR, POOLS_BASE, REGISTER_BAR, REGISTER_BAR_BYTES, SLOTS_PER_PAGE,
};
use nearpm_interface::registers::{self, state};
use nearpm_sim::bench::provisioned;
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::host::{Parameters, Peers};
use nearpm_sim::machine::{Machine, Power, Socket};
use nearpm_sim::model::fault::Fault;
use nearpm_sim::model::{Config, ModelCard};
use nearpm_sim::rtl::{Options, RtlCards};

pub const PM_BYTES: usize = 2 << 20;
pub const POOL: u32 = 9;
/// The pool lies at [`POOLS_BASE`]: its data first, then a ring of [`RING_BYTES`] for each thread.
pub const POOL_BYTES: u64 = 512 << 10;
pub const RINGS: u64 = 128 << 10;
pub const RING_BYTES: u64 = 16 << 10;
/// Log slots of a ring, from its second line on, and their bytes: a head and a line.
pub const SLOTS: u64 = 16;
pub const SLOT_BYTES: u64 = 128;
/// Longer than any exchange of messages takes that are not lost, in nanoseconds.
pub const LONG: u64 = 60_000;
/// Polls until a card counts as stuck.
const POLLS: usize = 20_000;

/// A card that is powered up with a fault, and with a line whose writes fail.
#[derive(Clone, Copy, Default)]
pub struct Cards {
    /// Verilated; without a fault.
    pub rtl: Option<&'static RtlCards>,
    pub fault: Option<Fault>,
    pub bad_line: Option<u64>,
}

impl Cards {
    /// The Verilated card, which is built once.
    pub fn rtl() -> Cards {
        static CARDS: OnceLock<RtlCards> = OnceLock::new();
        let build = || {
            let card = nearpm_hdl::generated(&nearpm_hdl::Parameters::default());
            RtlCards::build(nearpm_hdl::MODULE, &card.simulated(), Options::default()).expect("the card builds")
        };
        Cards { rtl: Some(CARDS.get_or_init(build)), ..Cards::default() }
    }

    /// The transaction-level card with a fault.
    pub fn faulty(fault: Fault) -> Cards {
        Cards { fault: Some(fault), ..Cards::default() }
    }
}

impl Power for Cards {
    fn power_up(&self, medium: Medium) -> Box<dyn CardCore> {
        if let Some(rtl) = self.rtl {
            let mut card = rtl.card(medium).expect("the card powers up");
            self.bad_line.into_iter().for_each(|line| card.plant_memory_error(line));
            return Box::new(card);
        }
        let mut card = match self.fault {
            Some(fault) => ModelCard::with_fault(Config::default(), medium, fault),
            None => ModelCard::new(Config::default(), medium),
        };
        if let Some(line) = self.bad_line {
            card.plant_memory_error(line);
        }
        Box::new(card)
    }
}

/// A card as the program sees it.
pub struct View {
    registers: Box<dyn Mapping>,
    commands: Box<dyn Mapping>,
    memory: Box<dyn Mapping>,
    slot: usize,
}

/// A parked command as the registers show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParkedCommand {
    pub place: u32,
    pub thread: u16,
    pub opcode: u8,
    pub participants: u32,
    pub txid: u64,
    pub reached: u32,
}

impl View {
    pub fn get(&self, register: u32) -> u32 {
        let mut word = [0; 4];
        self.registers.load(register.into(), &mut word);
        u32::from_le_bytes(word)
    }

    pub fn set(&self, register: u32, value: u32) {
        self.registers.store(register.into(), &value.to_le_bytes());
    }

    /// Writes a command in one piece, without a fence.
    pub fn post(&mut self, command: Command) {
        self.slot = (self.slot + 1) % SLOTS_PER_PAGE;
        self.commands.store_line(slot_offset(0, self.slot), &Command { pool: POOL, ..command }.encode());
    }

    /// Waits until everything that was sent is accepted.
    pub fn status(&self) -> PageStatus {
        self.commands.fence();
        let mut line = [0; 64];
        self.commands.load(0, &mut line);
        PageStatus::from_bytes(&line)
    }

    pub fn load(&self, offset: u64) -> u64 {
        let mut word = [0; 8];
        self.memory.load(POOLS_BASE + offset, &mut word);
        u64::from_le_bytes(word)
    }

    pub fn bytes(&self, offset: u64, data: &mut [u8]) {
        self.memory.load(POOLS_BASE + offset, data);
    }

    /// Stores a word around the caches and waits until it has left the core.
    pub fn store(&self, offset: u64, value: u64) {
        self.memory.store(POOLS_BASE + offset, &value.to_le_bytes());
        self.memory.fence();
    }

    pub fn fence(&self) {
        self.commands.fence();
    }

    pub fn parked(&self) -> Vec<ParkedCommand> {
        let mask = self.get(registers::PARKED);
        let show = |place| {
            self.set(registers::PARKED_SELECT, place);
            let word = self.get(registers::PARKED_THREAD);
            let [low, high] = [registers::PARKED_TXID_LO, registers::PARKED_TXID_HI].map(|r| self.get(r) as u64);
            ParkedCommand {
                place,
                thread: word as u16,
                opcode: (word >> 16) as u8,
                participants: word >> 24,
                txid: low | high << 32,
                reached: self.get(registers::PARKED_REACHED),
            }
        };
        (0..32).filter(|place| mask >> place & 1 == 1).map(show).collect()
    }

    pub fn act(&self, place: u32, action: u32) {
        self.set(registers::PARKED_ACT, place | action << 8);
    }

    pub fn number(&self, device: usize) {
        self.set(registers::DEVICE_NUMBER, device as u32);
    }
}

/// The epoch word of a thread, and the line that its transactions write.
pub fn epoch(thread: u16) -> u64 {
    RINGS + thread as u64 * RING_BYTES
}

pub fn data(thread: u16) -> u64 {
    4096 + 64 * thread as u64
}

/// The log slot of a transaction.
pub fn slot_of(thread: u16, txid: u64) -> u64 {
    epoch(thread) + 64 + txid % SLOTS * SLOT_BYTES
}

pub fn map(thread: u16, committed: u64) -> Command {
    Command {
        opcode: Opcode::Map as u8,
        thread,
        source: POOLS_BASE,
        destination: POOL_BYTES,
        auxiliary: epoch(thread),
        length: RING_BYTES as u32,
        sequence: committed,
        ..Command::default()
    }
}

pub fn log(thread: u16, txid: u64, participants: u32) -> Command {
    Command {
        opcode: Opcode::UndoLog as u8,
        thread,
        txid,
        participants,
        source: data(thread),
        destination: slot_of(thread, txid),
        sequence: txid,
        length: 8,
        ..Command::default()
    }
}

pub fn commit(thread: u16, txid: u64, participants: u32) -> Command {
    let (destination, auxiliary) = (epoch(thread), txid);
    Command { opcode: Opcode::Commit as u8, thread, txid, participants, destination, auxiliary, ..Command::default() }
}

/// The computer.
pub struct Computer {
    pub machine: Machine,
    pub cards: Cards,
    pub views: Vec<View>,
}

impl Computer {
    pub fn new(cards: usize, peers: Peers, parameters: Parameters, power: Cards) -> Computer {
        let media = vec![provisioned(PM_BYTES, nearpm_firmware::standard().bytes()); cards];
        let machine = Machine::with_cards(parameters, peers, &power, media);
        Computer { machine, cards: power, views: Vec::new() }
    }

    /// The same with all cards open, numbered, and mapped for so many threads.
    pub fn open(cards: usize, threads: u16, power: Cards) -> Computer {
        let mut computer = Computer::new(cards, Peers::default(), Parameters::default(), power);
        computer.attach();
        (0..cards).for_each(|card| computer.join(card, threads, |_| 0));
        computer
    }

    /// Opens the functions of all cards up to the first that is absent, and waits until the cards
    /// are open.
    pub fn attach(&mut self) {
        self.reach_functions();
        for card in 0..self.views.len() {
            self.wait_for("a card to open", |c| c.views[card].get(registers::STATE) == state::OPEN);
        }
    }

    /// The same without waiting.
    pub fn reach_functions(&mut self) {
        self.views.clear();
        for function in self.machine.functions() {
            function.config_write(4, &[6, 0]).unwrap();
            let Some(bytes) = function.bar_bytes(PM_BAR) else { return };
            let view = |bar, bytes| function.map(bar, 0..bytes, Caching::Uncached).unwrap();
            self.views.push(View {
                registers: view(REGISTER_BAR, REGISTER_BAR_BYTES as u64),
                commands: view(COMMAND_BAR, COMMAND_BAR_BYTES as u64),
                memory: view(PM_BAR, bytes),
                slot: 0,
            });
        }
    }

    /// Numbers a card and maps the pool for threads with what each has committed.
    pub fn join(&mut self, card: usize, threads: u16, committed: impl Fn(u16) -> u64) {
        let view = &mut self.views[card];
        view.number(card);
        (0..threads).for_each(|thread| view.post(map(thread, committed(thread))));
        view.status();
    }

    pub fn boot_again(&mut self) {
        self.machine.power_up(&self.cards);
        self.attach();
    }

    pub fn boot_without(&mut self, absent: usize) {
        let sockets: Vec<Socket> = (0..self.machine.cards())
            .map(|card| if card == absent { Socket::Absent } else { Socket::Card(&self.cards) })
            .collect();
        self.machine.power_up_each(&sockets);
        self.attach();
    }

    /// Polls with half a microsecond between, until something holds.
    ///
    /// # Panics
    /// If it never does.
    pub fn wait_for(&self, what: &str, test: impl Fn(&Computer) -> bool) {
        for _ in 0..POLLS {
            if test(self) {
                return;
            }
            self.machine.function().relax(500);
        }
        panic!("waited in vain for {what}");
    }

    /// Lets time pass.
    pub fn rest(&self, ns: u64) {
        self.machine.function().relax(ns);
    }

    pub fn wait_for_epoch(&self, card: usize, thread: u16, txid: u64) {
        let reached = |c: &Computer| c.views[card].load(epoch(thread)) >= txid;
        self.wait_for(&format!("transaction {txid} of thread {thread} on card {card}"), reached);
    }

    pub fn epochs(&self, thread: u16) -> Vec<u64> {
        self.views.iter().map(|view| view.load(epoch(thread))).collect()
    }
}
