//! Shared by the tests: kernels, and every crash image of a small launch.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::BTreeSet;

use nearpm_ptx::{
    Arguments, Config, Ended, Explored, Gpu, Launch, LaunchError, Module, Persistence, Run, Stop, every_schedule,
    every_state,
};

pub fn module(name: &str) -> Module {
    let text = match name {
        "litmus" => include_str!("../kernels/litmus.ptx"),
        "hcl" => include_str!("../kernels/hcl.ptx"),
        _ => include_str!("../kernels/programs.ptx"),
    };
    Module::parse(text).unwrap()
}

pub fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

pub fn read_u32(gpu: &Gpu, address: u64, count: usize) -> Vec<u32> {
    let mut bytes = vec![0; count * 4];
    gpu.read(address, &mut bytes).unwrap();
    bytes.chunks(4).map(|value| u32::from_le_bytes(value.try_into().unwrap())).collect()
}

pub fn write_u32(gpu: &mut Gpu, address: u64, values: &[u32]) {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    gpu.write(address, &bytes).unwrap();
}

/// A GPU, its PM of so many words, and arguments: PM, and (if wanted) 64 bytes of device memory.
pub fn small(pm_words: usize, device: bool) -> (Gpu, Arguments) {
    let mut gpu = Gpu::new(Config::default());
    let pm = gpu.map_persistent(vec![0; pm_words * 8]);
    let mut arguments = Arguments::new().pointer(pm.address);
    if device {
        arguments = arguments.pointer(gpu.allocate(64).unwrap());
    }
    (gpu, arguments)
}

/// A small launch of a litmus kernel.
pub struct Litmus {
    pub kernel: &'static str,
    pub blocks: u32,
    pub threads: u32,
    pub pm_words: usize,
    pub device: bool,
    pub preemptions: u32,
}

impl Litmus {
    pub fn one_thread(kernel: &'static str, pm_words: usize) -> Self {
        Self { kernel, blocks: 1, threads: 1, pm_words, device: false, preemptions: 0 }
    }

    pub fn two_blocks(kernel: &'static str, device: bool) -> Self {
        Self { kernel, blocks: 2, threads: 1, pm_words: 2, device, preemptions: 3 }
    }

    /// Every image that a crash may leave, at any point of any schedule within the bound.
    pub fn images(&self) -> (BTreeSet<Vec<u64>>, Explored) {
        let module = module("litmus");
        let entry = module.entry(self.kernel).unwrap();
        let mut seen = BTreeSet::new();
        let explored = every_schedule::<LaunchError>(self.preemptions, 100_000, |run| {
            let (mut gpu, arguments) = small(self.pm_words, self.device);
            let launch = Launch::linear(self.blocks, self.threads, arguments);
            run.persistence = Persistence::Tracked;
            run.stop_at = Stop::Step(0);
            run.budget = 10_000;
            let mut outcome = gpu.launch(entry, &launch, run)?;
            loop {
                seen.extend(gpu.images(1 << 20).unwrap().map(|ranges| words(&ranges[0])));
                if outcome.ended == Ended::Done {
                    return Ok(());
                }
                run.stop_at = Stop::PersistEvent(outcome.counts.persist_events + 1);
                outcome = gpu.resume(run)?;
            }
        })
        .unwrap();
        assert!(!explored.complete || self.images_of_states() == seen, "{}", self.kernel);
        (seen, explored)
    }

    /// The same by states.
    fn images_of_states(&self) -> BTreeSet<Vec<u64>> {
        let module = module("litmus");
        let (mut gpu, arguments) = small(self.pm_words, self.device);
        // Before anything has happened.
        let mut seen = BTreeSet::from([vec![0; self.pm_words]]);
        let launch = Launch::linear(self.blocks, self.threads, arguments);
        let bounds = (self.preemptions, 1 << 20);
        let entry = module.entry(self.kernel).unwrap();
        let visited = every_state::<LaunchError>(&mut gpu, entry, &launch, bounds, |gpu, _, _| {
            let images = gpu.images(1 << 20).unwrap().map(|ranges| words(&ranges[0]));
            seen.extend(images);
            Ok(())
        });
        assert!(visited.unwrap().complete);
        seen
    }
}

/// Runs a kernel of `programs.ptx` to its end.
pub fn finish(gpu: &mut Gpu, kernel: &str, launch: &Launch, run: &mut Run) -> Result<nearpm_ptx::Outcome, LaunchError> {
    gpu.launch(module("programs").entry(kernel).unwrap(), launch, run)
}
