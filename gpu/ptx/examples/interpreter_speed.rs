//! How many warp instructions a second the interpreter executes on one core:
//! `cargo run --release -p nearpm-ptx --example speed [seconds each
//! [kernel]]`. `speed.ptx` is what NVRTC 13.0 makes of `speed.cu`.

use std::time::{Duration, Instant};

use nearpm_ptx::{Arguments, Config, Counts, Entry, Gpu, Launch, Module, Persistence, Run};

type Prepared = (Gpu, Launch);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(2.0), |text| text.parse::<f64>())?;
    let only = std::env::args().nth(2);
    let module = Module::parse(include_str!("speed.ptx"))?;
    println!("{:<34} {:>12} {:>14} {:>10}", "kernel, what is followed", "M warp-in/s", "M lane-in/s", "ms a run");
    for (name, persistence) in [
        ("mix", Persistence::Off),
        ("copy", Persistence::Off),
        ("stream", Persistence::Off),
        ("insert", Persistence::Off),
        ("log_insert", Persistence::Off),
        ("copy", Persistence::Counted),
        ("log_insert", Persistence::Counted),
        ("log_insert", Persistence::Tracked),
        ("insert", Persistence::Tracked),
    ]
    .into_iter()
    .filter(|(name, _)| only.as_deref().is_none_or(|only| *name == only))
    {
        measure(module.entry(name)?, persistence, Duration::from_secs_f64(seconds))?;
    }
    Ok(())
}

fn measure(entry: &Entry, persistence: Persistence, least: Duration) -> Result<(), Box<dyn std::error::Error>> {
    let (mut gpu, launch) = prepare(entry.name())?;
    let (mut counts, mut runs, mut spent) = (Counts::default(), 0u32, Duration::ZERO);
    while spent < least {
        let mut run = Run { persistence, ..Run::default() };
        let start = Clock::now();
        let outcome = gpu.launch(entry, &launch, &mut run)?;
        spent += start.elapsed();
        counts.warp_instructions += outcome.counts.warp_instructions;
        counts.lane_instructions += outcome.counts.lane_instructions;
        runs += 1;
        (gpu, _) =
            if entry.name() == "mix" || entry.name() == "copy" { (gpu, ()) } else { (prepare(entry.name())?.0, ()) };
    }
    let rate = |count: u64| count as f64 / spent.as_secs_f64() / 1e6;
    println!(
        "{:<34} {:>12.1} {:>14.0} {:>10.2}",
        format!("{}, {persistence:?}", entry.name()),
        rate(counts.warp_instructions),
        rate(counts.lane_instructions),
        spent.as_secs_f64() * 1e3 / f64::from(runs)
    );
    Ok(())
}

/// Time that this thread had a core for, where the system tells it; else time that passed.
struct Clock {
    on_core: Option<Duration>,
    passed: Instant,
}

impl Clock {
    fn on_core() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
    }

    fn now() -> Self {
        Self { on_core: Self::on_core(), passed: Instant::now() }
    }

    fn elapsed(&self) -> Duration {
        match (self.on_core, Self::on_core()) {
            (Some(start), Some(end)) => end - start,
            _ => self.passed.elapsed(),
        }
    }
}

fn prepare(name: &str) -> Result<Prepared, Box<dyn std::error::Error>> {
    let mut gpu = Gpu::new(Config::default());
    let (blocks, threads) = (64, 256);
    let n = blocks * threads;
    let pm = |gpu: &mut Gpu, bytes: usize| gpu.map_persistent(vec![0; bytes]).address;
    let arguments = match name {
        "mix" => Arguments::new().pointer(gpu.allocate(u64::from(n) * 4)?).u32(64),
        "copy" => {
            let from = gpu.allocate(u64::from(n) * 64)?;
            Arguments::new().pointer(from).pointer(pm(&mut gpu, n as usize * 64)).u32(n * 16)
        }
        "stream" => {
            let from = gpu.allocate(u64::from(n) * 64)?;
            Arguments::new().pointer(from).pointer(pm(&mut gpu, n as usize * 64)).u32(n * 8)
        }
        "insert" => Arguments::new().pointer(pm(&mut gpu, 1 << 20)).u32((1 << 17) - 1).u32(1 << 16),
        _ => {
            let log = pm(&mut gpu, n as usize * 16 * 8);
            Arguments::new().pointer(log).pointer(pm(&mut gpu, n as usize * 8)).u32(8)
        }
    };
    Ok((gpu, Launch::linear(blocks, threads, arguments)))
}
