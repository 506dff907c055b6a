//! The configurations of the paper (Table 1, nanoseconds at 1365 MHz) and those that its artifact
//! has run (cycles, with bandwidths divided as integers).

use crate::{Config, Model, Place, Policy};

const GHZ: f64 = 1.365;

/// 12 controllers with 64 entries of 32 bytes.
const QUEUES: u64 = 12 * 64 * 32;

fn cycles(ns: f64) -> u64 {
    (ns * GHZ).round() as u64
}

/// All names, e.g. `artifact-sbrp-near`.
pub fn names() -> Vec<String> {
    let mut names = Vec::new();
    for family in ["paper", "artifact"] {
        for model in ["epoch", "sbrp", "improved"] {
            for place in ["far", "far-eadr", "near", "near-half", "near-double"] {
                names.push(format!("{family}-{model}-{place}"));
            }
        }
    }
    names
}

pub(crate) fn find(name: &str) -> Option<Config> {
    let (family, rest) = name.split_once('-')?;
    let (model, place) = rest.split_once('-')?;
    let artifact = match family {
        "paper" => false,
        "artifact" => true,
        _ => return None,
    };
    // The artifact counts no flush after the last thread; the epochs' last flush is part of the
    // threads. Its window's test lets one more through.
    let base = Config { final_flush: !artifact, window: 6 + u32::from(artifact), ..base() };
    let config = with_memory(base, artifact, place)?;
    match model {
        "epoch" => Some(Config { model: Model::Epoch, ..config }),
        "sbrp" => Some(config),
        "improved" => Some(improved(config)),
        _ => None,
    }
}

/// What paper and artifact share.
fn base() -> Config {
    Config {
        sms: 30,
        warps: 32,
        schedulers: 4,
        shared_bytes: 64 << 10,
        l1_lines: 512,
        l1_latency: 20,
        l2_bytes: 3 << 20,
        l2_slices: 24,
        l2_latency: 160,
        flit_bytes: 40.0,
        gddr_latency: 100,
        gddr_bytes: 336.0 / GHZ,
        place: Place::Near,
        pm_latency: 300,
        persist_latency: 0,
        pm_read_bytes: 84.0 / GHZ,
        pm_write_bytes: 42.0 / GHZ,
        pm_queue_bytes: QUEUES,
        launch_cycles: 5000,
        model: Model::Sbrp,
        buffer_entries: 256,
        policy: Policy::Window,
        window: 6,
        drains_when_full: true,
        scopes_off: false,
        counters: 1,
        generations: false,
        bypass: 0,
        versions: false,
        granule: 0,
        queue_merges: false,
        artifact_waits: false,
        lazy_durability: false,
        final_flush: true,
        without: Vec::new(),
        budget: 10_000_000_000,
    }
}

/// Persistent memory: latency and bandwidths. The artifact divides the bytes of a transfer by its
/// scale as integers: `32 / 12` is 2, so that its PCIe has a sixteenth of GDDR's bandwidth and not
/// a twelfth.
fn with_memory(config: Config, artifact: bool, place: &str) -> Option<Config> {
    let gddr = config.gddr_bytes;
    let scaled = |scale: u32| gddr * f64::from(32 / scale) / 32.0;
    let (at, latency, read, write) = match (place, artifact) {
        ("far", true) => (Place::Far, 900, scaled(12), scaled(12)),
        ("far-eadr", true) => (Place::Far, 600, scaled(12), scaled(12)),
        ("near", true) => (Place::Near, 300, scaled(4), scaled(8)),
        ("near-half", true) => (Place::Near, 300, scaled(8), scaled(16)),
        ("near-double", true) => (Place::Near, 300, scaled(2), scaled(4)),
        ("far", false) => (Place::Far, cycles(600.0), 28.0 / GHZ, 28.0 / GHZ),
        ("far-eadr", false) => (Place::Far, cycles(300.0), 28.0 / GHZ, 28.0 / GHZ),
        ("near", false) => (Place::Near, cycles(300.0), 84.0 / GHZ, 42.0 / GHZ),
        ("near-half", false) => (Place::Near, cycles(300.0), 42.0 / GHZ, 21.0 / GHZ),
        ("near-double", false) => (Place::Near, cycles(300.0), 168.0 / GHZ, 84.0 / GHZ),
        _ => return None,
    };
    // The artifact has PCIe's bandwidth in its memory channels, behind their queues.
    let pm_queue_bytes = if !artifact && at == Place::Far { 0 } else { QUEUES };
    // A persist is durable in a controller's queue: on the board that is behind L2, far from it
    // behind PCIe. The artifact acknowledges it as it enters the queue in any case (`dram_cycle` of
    // its `l2cache.cc`).
    let persist_latency = if !artifact && at == Place::Far { cycles(300.0) } else { 0 };
    let gddr_latency = if artifact { 100 } else { cycles(100.0) };
    Some(Config {
        place: at,
        pm_latency: latency,
        persist_latency,
        pm_read_bytes: read,
        pm_write_bytes: write,
        pm_queue_bytes,
        gddr_latency,
        ..config
    })
}

/// With those of our improvements that are worth it together, in no more storage than the paper's 2
/// KB an SM.
fn improved(config: Config) -> Config {
    Config { counters: 4, lazy_durability: true, policy: Policy::Adaptive, buffer_entries: 240, ..config }
}
