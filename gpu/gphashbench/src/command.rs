//! What the programs `nearpm-gphashbench` and `nearpm gpu hash` do.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use nearpm_gpmbench::record::{self, Saved};
use nearpm_gpmbench::report::Report;
use nearpm_gpmbench::workers;
use nearpm_gpu::{Device, Interpreted};

pub use crate::arguments::HashCommand;
use crate::arguments::{
    BenchArguments, CampaignArguments, DeviceArguments, ExhaustArguments, ModelArguments, RunArguments, SoakArguments,
};
use crate::campaign::{Record, Tally};
use crate::exhaust::{self, Bounds, By, Gone};
use crate::figures;
use crate::measure::{self, Bench};
use crate::model::{self, Model};
use crate::named::SubjectArguments;
use crate::soak;

fn exhaust_of(arguments: &ExhaustArguments) -> Result<()> {
    let ExhaustArguments { threads, preemptions, limit, crashes, by, .. } = *arguments;
    let bounds = Bounds { preemptions, limit, crashes, by };
    arguments.subject.check(arguments.hole)?;
    arguments.subject.check_one_bucket()?;
    bounds.check()?;
    let trials = exhaust::trials(threads);
    if let Some(trial) = arguments.trial {
        let subject = arguments.subject.subject(arguments.hole).one_bucket();
        let mut gone = Gone::default();
        exhaust::all(&subject, threads, bounds, trials.get(trial..=trial).context("no such trial")?, &mut gone)?;
        return workers::say(trial as u64, &gone);
    }
    println!("on the interpreter: no GPU is used");
    let until = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let name = arguments.subject.name();
    let mut record = match &arguments.record {
        Some(path) => exhaust::Record::load(path, &name, threads, bounds)?,
        None => exhaust::Record::new(&name, threads, bounds),
    };
    while (record.gone.trials as usize) < trials.len() && until.is_none_or(|until| Instant::now() < until) {
        let first = record.gone.trials as usize;
        let ahead = first..trials.len().min(first + arguments.workers as usize);
        let commands = ahead.map(|trial| one_of(arguments, trial)).collect::<Result<Vec<_>>>()?;
        // A choice of operations is gone through wholly, also when the time is over.
        workers::in_order(commands, None, first as u64, |gone: Gone| {
            record.gone = record.gone.plus(&gone);
            arguments.record.as_ref().map_or(Ok(()), |path| record::write(path, &record))?;
            Ok(ControlFlow::Continue(()))
        })?;
    }
    let gone = record.gone;
    println!(
        "{name}, {threads} threads on one bucket, at most {preemptions} preemptions: {} of {} trials, {} of them wholly; \
         {}; each is durably linearizable",
        gone.trials,
        trials.len(),
        gone.complete,
        match by {
            By::States => format!(
                "{} states, {} ways to an end, {} images that ends and crashes leave",
                gone.states, gone.tally.histories, gone.tally.crashes
            ),
            By::Schedules => format!("{} schedules, {} crashes that differ", gone.tally.histories, gone.tally.crashes),
        }
    );
    Ok(())
}

/// A process that goes through one choice of operations.
fn one_of(arguments: &ExhaustArguments, trial: usize) -> Result<std::process::Command> {
    let mut command = workers::itself("exhaust", "exhaust")?;
    command.args(arguments.subject.words());
    if let Some(hole) = arguments.hole.and_then(|hole| hole.to_possible_value()) {
        command.arg("--hole").arg(hole.get_name());
    }
    let ExhaustArguments { threads, preemptions, limit, crashes, by, .. } = arguments;
    command.args([format!("--threads={threads}"), format!("--preemptions={preemptions}"), format!("--limit={limit}")]);
    let named =
        [("--crashes", crashes.and_then(|crashes| crashes.to_possible_value())), ("--by", by.to_possible_value())];
    for (option, value) in named {
        command.args(value.map(|value| format!("{option}={}", value.get_name())));
    }
    command.arg(format!("--trial={trial}"));
    Ok(command)
}

/// Runs a command. Whether what it looked at is sound.
///
/// # Errors
/// What was refused, or is wrong.
pub fn command(command: &HashCommand) -> Result<bool> {
    match command {
        HashCommand::Run(arguments) => run(arguments).map(|()| true),
        HashCommand::Campaign(arguments) => campaign_of(arguments).map(|()| true),
        HashCommand::Exhaust(arguments) => exhaust_of(arguments).map(|()| true),
        HashCommand::Bench(arguments) => bench(arguments),
        HashCommand::Model(arguments) => model_of(arguments).map(|()| true),
        HashCommand::Soak(arguments) => soak_of(arguments).map(|()| true),
        HashCommand::Report { results, figures } => {
            let text =
                std::fs::read_to_string(results).with_context(|| format!("cannot read {}", results.display()))?;
            let report: Report = serde_json::from_str(&text)
                .with_context(|| format!("{} holds no results of nearpm gpu hash bench --json", results.display()))?;
            print!("{}", if *figures { figures::beside_the_paper(&report) } else { report.table() });
            Ok(true)
        }
    }
}

fn run(arguments: &RunArguments) -> Result<()> {
    arguments.subject.check(arguments.hole)?;
    let subject = arguments.subject.subject(arguments.hole);
    let (every, mut tally) = (arguments.every.unwrap_or(1), Tally::default());
    let seed = |number: u64| arguments.seed.checked_add(number.checked_mul(every)?);
    for seed in (0..arguments.histories).map_while(seed) {
        let mut one = Tally::default();
        arguments.subject.history(&subject, seed, arguments.crashes, &mut one)?;
        if arguments.every.is_some() {
            workers::say(seed, &one)?;
        }
        tally = tally.plus(&one);
    }
    if arguments.every.is_some() {
        return Ok(());
    }
    println!("on the interpreter: no GPU is used");
    println!("{}: {tally}; each is durably linearizable", arguments.subject.name());
    Ok(())
}

/// Histories of a subject that a worker does before it is another subject's turn, for each unit of
/// its weight: a second or two, beside which the workers' start is little.
const TURN: u64 = 32;

fn campaign_of(arguments: &CampaignArguments) -> Result<()> {
    println!("on the interpreter: no GPU is used");
    let until = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let load = |(subject, file, weight): (SubjectArguments, String, u64)| -> Result<_> {
        let path = arguments.records.join(file);
        Ok((Record::load(&path, &subject.name(), arguments.crashes)?, subject, path, weight))
    };
    let mut all = SubjectArguments::all().into_iter().map(load).collect::<Result<Vec<_>>>()?;
    loop {
        let sum = all.iter().fold(Tally::default(), |sum, (record, ..)| sum.plus(&record.tally));
        let done = sum.histories >= arguments.histories && sum.crashes >= arguments.histories;
        if done || until.is_some_and(|until| Instant::now() >= until) {
            println!("{sum}; each is durably linearizable");
            return Ok(());
        }
        // Whoever has come least far for its weight.
        let next = all.iter_mut().min_by_key(|(record, .., weight)| record.tally.histories / *weight);
        let (record, named, path, weight) = next.expect("there are subjects");
        let (first, every, crashes) = (record.next_seed, arguments.workers, record.crashes);
        let turn_of = TURN * *weight;
        // Seeds go round the workers, so that all before one of them are done soon.
        let turn = |worker: u64| -> Result<std::process::Command> {
            let mut command = workers::itself("campaign", "run")?;
            command.args(named.words()).args([format!("--seed={}", first + worker), format!("--every={every}")]);
            command.args([format!("--histories={turn_of}"), format!("--crashes={crashes}")]);
            Ok(command)
        };
        let commands = (0..arguments.workers).map(turn).collect::<Result<Vec<_>>>()?;
        let mut saved = Saved::now();
        let outcome = workers::in_order(commands, until, first, |tally: Tally| {
            record.tally = record.tally.plus(&tally);
            record.next_seed += 1;
            saved.keep(path, record)?;
            Ok(ControlFlow::Continue(()))
        });
        record::write(path, record)?;
        outcome.with_context(|| named.name())?;
    }
}

fn model_of(arguments: &ModelArguments) -> Result<()> {
    let device = device(&arguments.device)?;
    println!("on {}", device.name());
    let ModelArguments { operations, batch, keys, seed, .. } = *arguments;
    let started = Instant::now();
    let model = Model { design: arguments.design.design(), operations, batch, keys, seed };
    let tested = model::run(&device, &model)?;
    println!("{tested:?} in {:.1} s; no difference from the model", started.elapsed().as_secs_f64());
    Ok(())
}

fn soak_of(arguments: &SoakArguments) -> Result<()> {
    let (design, sizes) = (arguments.design.design(), soak::Sizes { keys: 1 << 18, batch: 1 << 14 });
    if let Some(path) = &arguments.child {
        return soak::child(device(&arguments.device)?, path, design, sizes, arguments.answered, u32::MAX);
    }
    ensure!(
        !arguments.device.interpreted,
        "the interpreter keeps PM in the process that is killed: `run` crashes tables there"
    );
    let path = PathBuf::from(format!("/dev/shm/nearpm-hash-soak-{}.region", std::process::id()));
    let again = workers::itself("soak", "soak")?;
    let command = |answered: u32| {
        let mut command = std::process::Command::new(again.get_program());
        command.args(again.get_args()).args(std::env::args().skip_while(|word| word != "soak").skip(1));
        command.arg("--child").arg(&path).arg("--answered").arg(answered.to_string());
        command
    };
    let outcome = soak::soak(&command, arguments.kills);
    let removed = std::fs::remove_file(&path);
    let soaked = outcome?;
    removed.context("the soak's region is gone")?;
    println!("{} kills, {} batches answered: nothing that was answered is lost", soaked.kills, soaked.batches);
    Ok(())
}

fn device(arguments: &DeviceArguments) -> Result<Rc<dyn Device>> {
    if arguments.interpreted {
        return Ok(Rc::new(Interpreted::new(1 << 30)));
    }
    #[cfg(feature = "cuda")]
    return Ok(Rc::new(nearpm_gpu::Cuda::open(arguments.card)?));
    #[cfg(not(feature = "cuda"))]
    anyhow::bail!("built without the feature `cuda`: there is the interpreter (--interpreted)")
}

/// Measures. Whether everything went well.
///
/// # Errors
/// No device, or a file that cannot be written.
pub fn bench(arguments: &BenchArguments) -> Result<bool> {
    let device = device(&arguments.device)?;
    let mut report = Report {
        device: device.name(),
        times: match arguments.device.interpreted {
            true => "predicted by the cost model from counted transactions; nothing was measured".to_owned(),
            false => "measured, by events on the device or by the wall".to_owned(),
        },
        memory: "memfd (tmpfs pages of 4 KiB), pinned".to_owned(),
        ..Report::default()
    };
    let bench = Bench {
        device,
        full: !arguments.device.interpreted,
        repeats: arguments.repeats as usize,
        spares: arguments.spares,
        workloads: arguments.workload.clone(),
    };
    let wanted = |name: &&str| match (arguments.workload.is_empty(), arguments.only.is_empty()) {
        (false, _) => *name == "ycsb",
        (true, everything) => everything || arguments.only.iter().any(|only| only == name),
    };
    for name in measure::NAMES.into_iter().filter(wanted) {
        measure::run(&bench, name, &mut report);
        // What was measured stays, whatever ends the rest.
        if let Some(path) = &arguments.json {
            record::write(path, &report)?;
        }
    }
    nearpm_gpmbench::command::tell(&report, arguments.text.as_deref(), arguments.json.as_deref())
}
