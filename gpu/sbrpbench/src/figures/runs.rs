//! The runs that figures are made of. Each is done once where a record is kept: at the paper's size
//! all take hours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, anyhow, bail, ensure};
use nearpm_gpusim::{Config, Statistics, TIMING};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::device::Simulated;
use crate::kernels::Lowering;
use crate::programs::{Size, program};
use crate::record;

/// What of a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum What {
    Run,
    /// The recovery that takes longest.
    Recovery,
}

/// A GPU, and what it runs.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    /// A named configuration, and what is simulated.
    pub base: String,
    pub config: Config,
    pub lowering: Lowering,
    pub what: What,
}

/// What is simulated, as a record keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    program: String,
    size: Size,
    what: What,
    lowering: Lowering,
    base: String,
    /// Settings that differ from the named configuration's.
    changes: BTreeMap<String, Value>,
}

impl Key {
    fn of(name: &str, size: Size, bar: &Bar) -> Result<Self> {
        let base = Config::named(&bar.base).with_context(|| format!("no configuration {}", bar.base))?;
        let (Value::Object(base), Value::Object(config)) =
            (serde_json::to_value(base)?, serde_json::to_value(&bar.config)?)
        else {
            bail!("a configuration has no settings")
        };
        let changes = config.into_iter().filter(|(setting, value)| base.get(setting) != Some(value)).collect();
        let (program, base) = (name.to_string(), bar.base.clone());
        Ok(Self { program, size, what: bar.what, lowering: bar.lowering, base, changes })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Done {
    timing: u32,
    run: Key,
    found: Statistics,
}

/// Runs that have been done.
#[derive(Debug, Default)]
pub struct Runs {
    path: Option<PathBuf>,
    done: Vec<Done>,
}

impl Runs {
    /// Those of a file, a line each; none where it is not there yet. What is run from now on is
    /// added to it.
    ///
    /// # Errors
    /// A file that is no such record, or one of another timing.
    pub fn read(path: &Path) -> Result<Self> {
        let text = record::read(path)?.unwrap_or_default();
        let mut done = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let at = || format!("{}, line {}", path.display(), number + 1);
            let run: Done = serde_json::from_str(line).with_context(|| format!("{} is no run", at()))?;
            ensure!(run.timing == TIMING, "{}: timing {}, but this is {TIMING}: begin a new record", at(), run.timing);
            done.push(run);
        }
        Ok(Self { path: Some(path.to_path_buf()), done })
    }

    fn find(&self, key: &Key) -> Option<Statistics> {
        self.done.iter().find(|done| done.run == *key).map(|done| done.found)
    }

    fn add(&mut self, run: Key, found: Statistics) -> Result<()> {
        self.done.push(Done { timing: TIMING, run, found });
        let Some(path) = &self.path else { return Ok(()) };
        let lines = self.done.iter().map(|done| Ok(serde_json::to_string(done)? + "\n"));
        record::write(path, &lines.collect::<Result<String>>()?)
    }

    /// All bars of all programs, on two threads. By program, then by bar.
    pub(super) fn all(&mut self, names: &[&str], size: Size, bars: &[Bar]) -> Result<Vec<Vec<Statistics>>> {
        let keys = names.iter().flat_map(|name| bars.iter().map(move |bar| (*name, bar)));
        let mut missing = Vec::new();
        for (name, bar) in keys.clone() {
            let key = Key::of(name, size, bar)?;
            if self.find(&key).is_none() && !missing.iter().any(|(known, _)| *known == key) {
                missing.push((key, bar));
            }
        }
        self.run(&missing)?;
        let all = keys.map(|(name, bar)| {
            self.find(&Key::of(name, size, bar)?).with_context(|| format!("a run of {name} is missing"))
        });
        Ok(all.collect::<Result<Vec<_>>>()?.chunks(bars.len()).map(<[Statistics]>::to_vec).collect())
    }

    fn run(&mut self, missing: &[(Key, &Bar)]) -> Result<()> {
        let next = AtomicUsize::new(0);
        let runs = Mutex::new(self);
        let work = || -> Result<()> {
            while let Some((key, bar)) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                let found = measure(key, bar).with_context(|| format!("{} under {}", key.program, key.base))?;
                runs.lock().map_err(|_| anyhow!("a run did not end"))?.add(key.clone(), found)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(work);
            let mine = work();
            other.join().map_err(|_| anyhow!("a run did not end"))?.and(mine)
        })
    }
}

/// Runs a program, or its longest recovery, and looks at the result before it says what it took.
fn measure(key: &Key, bar: &Bar) -> Result<Statistics> {
    let program = program(&key.program, key.size)?;
    let mut device = Simulated::new(&bar.config, bar.lowering, program.image())?;
    program.run(&mut device)?;
    program.check_done(&device.image())?;
    if key.what == What::Run {
        return Ok(device.statistics);
    }
    let mut image = device.image();
    program.crash_late(&mut image);
    let mut device = Simulated::new(&bar.config, bar.lowering, image)?;
    program.recover(&mut device)?;
    program.check_recovered(&device.image())?;
    Ok(device.statistics)
}
