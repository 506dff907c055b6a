//! A run without a card, on memory that knows what a power cut leaves.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use indicatif::ProgressBar;
use nearpm::Engine;
use nearpm::memory::{Image, TestMemory};
use nearpm_workloads::run::{self, Progress};
use nearpm_workloads::{Map, check};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::arguments::RunArguments;
use super::report::{After, Crash, During, Fall, Recovered, Report};
use super::{bar, model_of};
use crate::cut::{Moment, PowerCut};
use nearpm_text::grouped;

/// What `--power-cut` asks for.
enum When {
    Never,
    Operation(usize),
    Random,
}

impl When {
    fn of(arguments: &RunArguments) -> Result<When> {
        match arguments.power_cut.0[..] {
            [] => Ok(When::Never),
            [PowerCut { moment: Moment::Operation(at), energy: None }] => Ok(When::Operation(at)),
            [PowerCut { moment: Moment::Random, energy: None }] => Ok(When::Random),
            _ => bail!(
                "without a card there are no cycles, accesses or saves, and there is one cut: use --power-cut op:K or random"
            ),
        }
    }
}

/// Runs to the end; then opens what the power cut would have left, and checks that.
pub fn run<M: Map>(arguments: &RunArguments) -> Result<Report> {
    let when = When::of(arguments)?;
    let operations = arguments.operations();
    let options = arguments.pool_options(Engine::Cpu);
    let memory = TestMemory::new(arguments.pool_bytes() as usize);
    let pool = options.create_in(Box::new(memory.clone())).context("the pool cannot be created")?;
    let title = format!(
        "{}: {} operations, {}, no card, seed {}",
        M::NAME,
        grouped(arguments.ops as u64),
        arguments.mechanism.name(),
        arguments.seed
    );
    let bar = bar(arguments.ops, &title);
    let map = run::create::<M>(&pool).context("the structure cannot be made")?;
    let mut random = ChaCha8Rng::seed_from_u64(arguments.seed ^ 0x6375_7421);
    let (at, events) = match when {
        When::Operation(at) => (Some(at), 0),
        When::Random => (Some(random.random_range(0..arguments.ops.max(1))), random.random_range(0..40u64)),
        When::Never => (None, 0),
    };
    let progress = Arc::new(Progress::default());
    let left: Arc<Mutex<Option<Left>>> = Arc::default();
    run::run(&pool, map, &operations, arguments.epoch as usize, &progress, |i| {
        bar.set_position(i as u64);
        if at == Some(i) {
            leave_image(&memory, events, arguments.seed, &progress, &left);
        }
    })
    .context("an operation failed")?;
    memory.stop_probe();
    let found = check::contents::<M>(&pool).context("the structure is damaged")?;
    ensure!(found == model_of(&operations), "{title}: the pool does not hold what the model holds");
    drop(pool);
    let left = left.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(left) = left else {
        bar.finish_and_clear();
        return Ok(Report { title, crashes: Vec::new(), measured: None, entries: Some(found.len()) });
    };
    let (crash, entries) = after_the_cut::<M>(arguments, left, &bar)?;
    bar.finish_and_clear();
    Ok(Report { title, crashes: vec![crash], measured: None, entries: Some(entries) })
}

/// Recovers what the cut left, checks it, does the operations that are missing, and checks again.
fn after_the_cut<M: Map>(arguments: &RunArguments, left: Left, bar: &ProgressBar) -> Result<(Crash, usize)> {
    let Left { image, event, started, acknowledged } = left;
    let operations = arguments.operations();
    let pool = arguments
        .pool_options(Engine::Cpu)
        .open_in(Box::new(TestMemory::from_image(image)))
        .context("the pool that the power cut left does not open")?;
    let kept = check::prefix::<M>(&pool, &operations, acknowledged, started, arguments.durability())
        .context("CRASH CONSISTENCY IS VIOLATED")?;
    let after = After::Recovered(Recovered { kept, recovery: pool.recovery(), ns: None });
    let map = match pool.root()? {
        0 => run::create::<M>(&pool)?,
        _ => run::open::<M>(&pool)?,
    };
    let epoch = arguments.epoch as usize;
    run::run(&pool, map, &operations[kept..], epoch, &Progress::default(), |i| bar.set_position((kept + i) as u64))
        .context("an operation failed after recovery")?;
    let found = check::contents::<M>(&pool).context("the structure is damaged at the end")?;
    ensure!(found == model_of(&operations), "the pool does not hold what the model holds at the end");
    let cut = PowerCut { moment: Moment::Access(event), energy: None };
    let during = During::Operations;
    let fall = Fall { cut, card: None, lost_lines: 0, noticed_ns: 0, during, started, acknowledged };
    Ok((Crash { fall, after }, found.len()))
}

/// What a power cut left, and how far the run had come.
struct Left {
    image: Image,
    event: u64,
    started: usize,
    acknowledged: usize,
}

/// Takes what would be left of a power cut some events from now.
fn leave_image(memory: &TestMemory, events: u64, seed: u64, progress: &Arc<Progress>, left: &Arc<Mutex<Option<Left>>>) {
    let (progress, left) = (Arc::clone(progress), Arc::clone(left));
    let wanted = memory.events() + 1 + events;
    memory.probe(move |number, _, surviving| {
        if number == wanted {
            *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(Left {
                image: surviving(seed),
                event: number,
                started: progress.started(),
                acknowledged: progress.acknowledged(),
            });
        }
    });
}
