//! What environment variables ask for.

use std::env::var;

use nearpm::direct::{Growth, Mode};
use nearpm::{Durability, Engine, Lint, Options, Survives, size};

use crate::error::{Errno, fail};

/// Options of a pool: `NEARPM_MODE`, `NEARPM_MECHANISM`, `NEARPM_EXECUTOR`, `NEARPM_DURABILITY`,
/// `NEARPM_SURVIVES`, `NEARPM_LINT`, `NEARPM_GROWTH`, PMDK's `PMEM_IS_PMEM_FORCE`, and for tests
/// `NEARPM_POWER_CUT`.
pub fn options(prefault: bool) -> Result<Options, Errno> {
    let mode = match var("NEARPM_MODE").as_deref() {
        Err(_) | Ok("") => Mode::default(),
        Ok("in-place") => Mode::InPlace,
        Ok("working-copy") => Mode::WorkingCopy,
        Ok(other) => return Err(refuse("NEARPM_MODE", other, "in-place or working-copy")),
    };
    let mechanism = match var("NEARPM_MECHANISM").as_deref() {
        Err(_) | Ok("" | "record") => None,
        Ok(name) => {
            let values = "record, undo, redo, checkpoint or shadow";
            Some(name.parse().map_err(|_| refuse("NEARPM_MECHANISM", name, values))?)
        }
    };
    let engine = match var("NEARPM_EXECUTOR").as_deref() {
        Err(_) | Ok("" | "auto") => Engine::Auto,
        Ok("cpu") => Engine::Cpu,
        Ok("card") => Engine::Card,
        Ok(other) => return Err(refuse("NEARPM_EXECUTOR", other, "auto, cpu or card")),
    };
    let durability = match var("NEARPM_DURABILITY").as_deref() {
        Err(_) | Ok("" | "durable") => Durability::Durable,
        Ok("asynchronous") => Durability::Asynchronous,
        Ok(other) => return Err(refuse("NEARPM_DURABILITY", other, "durable or asynchronous")),
    };
    let survives = match var("NEARPM_SURVIVES").as_deref() {
        Err(_) | Ok("") => survives_by_pmdk(),
        Ok("process-crash") => Survives::ProcessCrash,
        Ok("power-cut") => Survives::PowerCut,
        Ok("as-persistent-memory") => Survives::AsPersistentMemory,
        Ok("as-persistent-caches") => Survives::AsPersistentCaches,
        Ok(other) => {
            let values = "process-crash, power-cut, as-persistent-memory or as-persistent-caches";
            return Err(refuse("NEARPM_SURVIVES", other, values));
        }
    };
    let power_cut = match var("NEARPM_POWER_CUT").as_deref() {
        Err(_) | Ok("") => None,
        Ok(text) => Some(text.parse().map_err(|_| refuse("NEARPM_POWER_CUT", text, "fence=N,event=N,seed=N,evict=N"))?),
    };
    let by_use = var("NEARPM_MODE").map_or(true, |mode| mode.is_empty());
    Ok(Options::new()
        .mode(mode)
        .mode_by_use(by_use)
        .mechanism(mechanism)
        .engine(engine)
        .durability(durability)
        .survives(survives)
        .prefault(prefault)
        .power_cut(power_cut)
        .lint(lint())
        .growth(growth()?))
}

/// With `PMEM_IS_PMEM_FORCE=1` the user says that files lie in persistent memory, with
/// `PMEM_NO_FLUSH=1` that its caches are persistent, too.
fn survives_by_pmdk() -> Survives {
    let is_set = |name| var(name).is_ok_and(|value| value == "1");
    match (is_set("PMEM_IS_PMEM_FORCE"), is_set("PMEM_NO_FLUSH")) {
        (true, true) => Survives::AsPersistentCaches,
        (true, false) => Survives::AsPersistentMemory,
        (false, _) => Survives::PowerCut,
    }
}

/// By how much a pool grows when it is full, and up to what: `NEARPM_GROWTH`, as in `64M:4G`.
fn growth() -> Result<Option<Growth>, Errno> {
    let Some(text) = var("NEARPM_GROWTH").ok().filter(|text| !text.is_empty()) else { return Ok(None) };
    let sizes =
        text.split_once(':').and_then(|(by, most)| Some((size::parse_offset(by).ok()?, size::parse(most).ok()?)));
    match sizes {
        Some((by, most)) => Ok(Some(Growth { by, most })),
        None => Err(refuse("NEARPM_GROWTH", &text, "two sizes, by how much and up to what, as in 64M:4G")),
    }
}

fn refuse(name: &str, value: &str, values: &str) -> Errno {
    fail(libc::EINVAL, format_args!("{name} is {value:?}: use {values}"))
}

/// Whether faults of the program are looked for, and printed: `NEARPM_LINT`.
fn lint() -> Lint {
    if var("NEARPM_LINT").is_ok_and(|value| value == "1") { Lint::Print } else { Lint::Off }
}

/// Whether counters are printed when a pool is closed.
pub fn statistics() -> bool {
    var("NEARPM_STATISTICS").is_ok_and(|value| value == "1")
}
