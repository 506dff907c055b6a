//! A kernel that publishes a value in persistent memory without a fence, and what a power failure
//! may leave of it: `cargo run --release -p nearpm-ptx --example missing_fence`.

use std::collections::BTreeSet;

use nearpm_ptx::{Arguments, Config, Ended, Gpu, Launch, Module, Persistence, Run, Schedule, Stop};

/// Stores a value, then a flag that says that it is there. `between` stands between the two.
fn kernel(between: &str) -> String {
    format!(
        ".version 9.0
         .target sm_90
         .address_size 64
         .visible .entry publish(.param .u64 pm) {{
             .reg .b64 %rd<2>;
             ld.param.u64 %rd1, [pm];
             st.global.u64 [%rd1], 42;
             {between}
             st.global.u64 [%rd1+8], 1;
             ret;
         }}"
    )
}

/// Everything that a power failure may leave, at whichever instruction it comes: value and flag.
fn left(between: &str) -> Result<BTreeSet<[u64; 2]>, Box<dyn std::error::Error>> {
    let module = Module::parse(&kernel(between))?;
    let mut found = BTreeSet::new();
    for step in 0.. {
        let mut gpu = Gpu::new(Config::default());
        let pm = gpu.map_persistent(vec![0; 16]);
        let launch = Launch::linear(1, 1, Arguments::new().pointer(pm.address));
        let mut run = Run {
            schedule: Schedule::RoundRobin,
            stop_at: Stop::Step(step),
            persistence: Persistence::Tracked,
            ..Run::default()
        };
        let outcome = gpu.launch(module.entry("publish")?, &launch, &mut run)?;
        for image in gpu.images(100)? {
            let word = |at: usize| u64::from_le_bytes(image[0][at..at + 8].try_into().expect("eight bytes"));
            found.insert([word(0), word(8)]);
        }
        if outcome.ended == Ended::Done {
            break;
        }
    }
    Ok(found)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (name, between) in
        [("no fence", ""), ("fence of the GPU", "fence.acq_rel.gpu;"), ("fence of the system", "fence.acq_rel.sys;")]
    {
        let states = left(between)?;
        println!(
            "{name}: {}",
            if states.contains(&[0, 1]) { "the flag may be there without the value" } else { "sound" }
        );
        for [value, flag] in states {
            println!("  value {value:2}, flag {flag}");
        }
    }
    Ok(())
}
