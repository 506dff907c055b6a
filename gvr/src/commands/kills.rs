//! Ranks that are killed from outside at any moment, and the job taken up again on other numbers of
//! ranks.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::launch;
use crate::array::{Keep, Options};
use crate::error::{Error, Result};
use crate::persist::{Flush, Folder, Job};
use crate::rma::shm::Shm;
use crate::world::World;

/// Tells ranks where their job is.
const FOLDER: &str = "NEARPM_GVR_KILLS";
const WINDOW: u64 = 16 << 20;
const ELEMENTS: u64 = 96;
const VERSIONS: u64 = 24;
/// Status of a rank that found other contents than were written, or fewer versions than a rank was
/// told to be durable.
const WRONG: u8 = 3;
/// Tells ranks to seal versions in the background.
const FLUSH: &str = "NEARPM_GVR_KILLS_FLUSH";

/// What an element is in a version.
fn value(element: u64, version: u64) -> u64 {
    // Some elements do not change in each version.
    let version = if element.is_multiple_of(3) { version } else { version / 4 };
    (element << 32 | version).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A rank's life.
pub(super) fn rank(shm: Shm) -> Result<u8> {
    let world = World::new(shm);
    let folder = std::env::var(FOLDER)
        .map_err(|_| Error::option(format!("{FOLDER} is not set: only a campaign starts ranks")))?;
    let folder = PathBuf::from(folder);
    let job = Job::open_or_create(&world, &Folder::new(&folder), 1 << 20)?;
    let background = std::env::var_os(FLUSH).is_some();
    job.set_flush(if background { Flush::Background } else { Flush::Wait })?;
    let options = Options { keep: Keep::Last(3), ..Options::log(64) };
    let array = job.array::<u64>("values", &[ELEMENTS], options)?;
    let (rank, ranks) = (world.rank() as u64, world.ranks() as u64);
    if array.version() < told(&folder) {
        return Ok(WRONG);
    }
    loop {
        for version in array.versions() {
            let mut data = vec![0; ELEMENTS as usize];
            array.at(version.number)?.get(0..ELEMENTS, &mut data)?;
            if !data.iter().zip(0..).all(|(data, element)| *data == value(element, version.number)) {
                return Ok(WRONG);
            }
        }
        let version = array.version();
        if version >= VERSIONS {
            job.version_wait()?;
            return Ok(0);
        }
        for element in (rank..ELEMENTS).step_by(ranks as usize) {
            array.put(element..=element, &[value(element, version)])?;
        }
        array.version_inc("")?;
        if rank == 0 {
            // In the background it is the version before that is durable when one is closed.
            tell(&folder, if background { version } else { version + 1 })?;
        }
    }
}

/// Versions that a rank was told to be durable, in any life of the job.
fn told(folder: &std::path::Path) -> u64 {
    let text = std::fs::read_to_string(folder.join("told")).unwrap_or_default();
    // One that was killed while it wrote may have left nothing.
    text.trim().parse().unwrap_or(0)
}

fn tell(folder: &std::path::Path, versions: u64) -> Result<()> {
    let path = folder.join("told");
    std::fs::write(&path, format!("{versions}\n")).map_err(Error::io(format!("write {}", path.display())))
}

/// Runs a seed: kills, then a run to the end.
pub(super) fn play(seed: u64) -> std::result::Result<(), String> {
    let folder = std::env::temp_dir().join(format!("nearpm-gvr-kills-{}-{seed}", std::process::id()));
    let done = lives(seed, &folder).unwrap_or_else(|error| Err(error.to_string()));
    // What is left of a seed that failed is looked at.
    if done.is_ok() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    done
}

fn lives(seed: u64, folder: &std::path::Path) -> Result<std::result::Result<(), String>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut variables = vec![(FOLDER, folder.display().to_string())];
    if seed % 2 == 1 {
        variables.push((FLUSH, "background".to_owned()));
    }
    for _ in 0..random.random_range(1..4) {
        let ranks = random.random_range(2..5);
        let mut launched = launch(ranks, WINDOW, &variables)?;
        std::thread::sleep(Duration::from_micros(random.random_range(0..60_000)));
        launched.kill(random.random_range(0..ranks))?;
        let ends = launched.wait()?;
        if ends.iter().any(|end| end.code() == Some(WRONG.into())) {
            return Ok(Err(format!("wrong contents; see {}", folder.display())));
        }
    }
    let ends = launch(random.random_range(1..4), WINDOW, &variables)?.wait()?;
    Ok(if ends.iter().all(ExitStatus::success) { Ok(()) } else { Err(format!("{ends:?}; see {}", folder.display())) })
}
