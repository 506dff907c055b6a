//! A program of typed objects on a simulated card: it is cut, recovered, compared with a model, and
//! goes on to its end.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use anyhow::{Context, Result, ensure};
use nearpm::prelude::*;
use nearpm::{Engine, Mechanism};
use nearpm_cards::{Cards, Rig, SimulatedCard};
use nearpm_cuts::cut::{Moment, PowerCut, PowerCuts, Strike};
use nearpm_cuts::job::{After, Crash, During, Fall, Recovered, Report};
use nearpm_driver::Posting;
use nearpm_sim::host::Parameters;
use nearpm_sim::machine::until_power_cut;
use nearpm_sim::rng::Rng;
use nearpm_text::grouped;

const POOL_BYTES: u64 = 4 << 20;
/// Accounts that there may be.
const ACCOUNTS: u64 = 500;
/// Transfers that the journal keeps.
const KEPT: u64 = 16;

/// What the pool holds.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Bank {
    /// What is on an account, by its name; it is opened by its first transfer.
    accounts: PBTreeMap<PString, i64>,
    /// The last transfers, the newest at the end.
    journal: PQueue<Transfer>,
}

/// Money that goes from one account to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Persistent)]
#[repr(C)]
struct Transfer {
    number: u64,
    from: u64,
    to: u64,
    amount: i64,
}

impl Transfer {
    /// The transfer with a number, in the sequence of a seed.
    fn drawn(seed: u64, number: u64) -> Transfer {
        let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
        Transfer { number, from: rng.below(ACCOUNTS), to: rng.below(ACCOUNTS), amount: 1 + rng.below(1000) as i64 }
    }

    /// The two accounts by name, and what each gets.
    fn sides(&self) -> [(String, i64); 2] {
        [(format!("account {}", self.from), -self.amount), (format!("account {}", self.to), self.amount)]
    }

    /// Carries it out: all of it, or nothing.
    fn make(&self, pool: &DirectPool, bank: Ptr<Bank>) -> Result<(), Error> {
        pool.tx(|tx| {
            for (name, amount) in self.sides() {
                let before = bank.accounts().get(tx, &name)?.unwrap_or(0);
                bank.accounts().insert(tx, &name, before + amount)?;
            }
            bank.journal().push(tx, *self)?;
            if bank.journal().len(tx)? > KEPT {
                bank.journal().pop(tx)?;
            }
            Ok(())
        })
    }
}

/// What a bank holds.
#[derive(Clone, Default, PartialEq, Eq)]
struct State {
    accounts: BTreeMap<String, i64>,
    journal: VecDeque<Transfer>,
}

impl State {
    /// After the first transfers of a seed.
    fn after(seed: u64, transfers: usize) -> State {
        let mut state = State::default();
        for transfer in (0..transfers as u64).map(|number| Transfer::drawn(seed, number)) {
            transfer.sides().into_iter().for_each(|(name, amount)| *state.accounts.entry(name).or_default() += amount);
            state.journal.push_back(transfer);
            if state.journal.len() as u64 > KEPT {
                state.journal.pop_front();
            }
        }
        state
    }

    fn of(pool: &DirectPool, bank: Ptr<Bank>) -> Result<State, Error> {
        pool.read(|from| {
            let accounts = bank.accounts().iter(from)?.collect::<Result<_, _>>()?;
            let journal = bank.journal().iter(from)?.collect::<Result<_, _>>()?;
            Ok(State { accounts, journal })
        })
    }
}

/// What came of the program.
pub struct Shown {
    report: Report,
    commands: u64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  posted         {} commands before the cut", self.report, grouped(self.commands))
    }
}

/// What the program has done when the power fails.
#[derive(Default)]
struct Progress {
    started: Cell<usize>,
    acknowledged: Cell<usize>,
    commands: Cell<u64>,
}

/// Makes so many transfers on the transaction-level card, through one power cut.
pub fn run(transfers: usize, seed: u64, cards: &Cards) -> Result<Shown> {
    let rig = Rig::new(cards.clone(), "typed", Parameters::default(), Posting::Line, POOL_BYTES);
    let options = Options::new().mechanism(Mechanism::Undo).engine(Engine::Card).id(1);
    let strikes = PowerCuts::random().strikes(transfers, seed);
    let progress = Progress::default();
    let outcome = until_power_cut(|| until_the_cut(&rig, &options, transfers, seed, strikes[0], &progress));
    ensure!(!rig.is_powered(), "the program ended without a power cut: {outcome:?}");
    let (record, saved) = rig.last_cut().expect("the power is off");
    let (started, acknowledged) = (progress.started.get(), progress.acknowledged.get());
    let fall = Fall {
        cut: PowerCut { moment: Moment::of(&record), energy: None },
        card: Some((record, saved)),
        lost_lines: rig.lost_lines(),
        noticed_ns: rig.now_ns(),
        during: During::Operations,
        started,
        acknowledged,
    };

    rig.power_up();
    let start_ns = rig.now_ns();
    rig.open_card().context("the card does not open after the power cut")?;
    let pool = DirectPool::open(&rig.location(), &options).context("the pool does not open after the power cut")?;
    let ns = Some(rig.now_ns() - start_ns);
    let bank = pool.tx(|tx| tx.root_or_zeroed::<Bank>())?;
    let found = State::of(&pool, bank)?;
    let kept = (acknowledged..=started).find(|&transfers| found == State::after(seed, transfers));
    let kept = kept.context("CRASH CONSISTENCY IS VIOLATED: the accounts are those after no number of transfers")?;
    let after = After::Recovered(Recovered { kept, recovery: pool.recovery(), ns });

    // Where it was cut the program goes on.
    for number in kept..transfers {
        Transfer::drawn(seed, number as u64).make(&pool, bank)?;
    }
    let found = State::of(&pool, bank)?;
    ensure!(found == State::after(seed, transfers), "the pool does not hold what the model holds at the end");
    pool.close()?;
    let title = format!(
        "Typed Rust, accounts in a PBTreeMap: {} transfers, {}, {}, seed {seed}",
        grouped(transfers as u64),
        Mechanism::Undo.name(),
        SimulatedCard::Model.name()
    );
    let entries = Some(found.accounts.len());
    let report = Report { title, crashes: vec![Crash { fall, after }], measured: None, entries };
    Ok(Shown { report, commands: progress.commands.get() })
}

/// The program until the power fails, behind the last transfer at the latest.
fn until_the_cut(
    rig: &Rig,
    options: &Options,
    transfers: usize,
    seed: u64,
    strike: Strike,
    progress: &Progress,
) -> Result<()> {
    let save_cycles = Parameters::default().save_cycles;
    rig.open_card()?;
    let pool = DirectPool::create(&rig.location(), POOL_BYTES, options)?;
    let bank = pool.tx(|tx| tx.root_or_zeroed::<Bank>())?;
    for number in 0..transfers {
        if strike.operation == Some(number) {
            rig.cut(strike.cut, save_cycles, seed);
        }
        progress.started.set(number + 1);
        Transfer::drawn(seed, number as u64).make(&pool, bank)?;
        progress.acknowledged.set(number + 1);
        progress.commands.set(pool.statistics().commands);
    }
    rig.cut(None, save_cycles, seed);
    Ok(())
}
