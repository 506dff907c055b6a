//! Pools that earlier versions of this library have left, closed and crashed, are opened by this
//! one and hold what they held.
//!
//! | | |
//! |---|---|
//! | `made/COMMIT/NAME.image` | what the memory held, or each of the cards (`media.rs`), as the library of that commit left it |
//! | `made/COMMIT/contents.tsv` | what that library found in it when it opened it |
//! | `examples/pool_images.rs` | the program that makes both |
//!
//! A name is the scheme, where the pool lies, and how it was left. A changed format gets a version
//! of its own and images of the commit that brings it; these images stay.

mod contents;
mod media;
mod schemes;

use std::path::{Path, PathBuf};

use nearpm::Engine;
use nearpm::Mechanism;
use nearpm::check::Image;
use nearpm::direct::Mode;
use nearpm::memory::{Memory, VolatileMemory};
use schemes::{Machine, Opened, Scheme, Way};

/// The first commit whose pools are kept; the one before these images were (its own were made with
/// its modules in other places, and no other change); one whose direct pools have format 4, and
/// whose heap is one; one with lanes of undo logs, records of values that lie at home already, and
/// working copies by every mechanism.
const COMMITS: [&str; 4] = ["7553774061cf", "a5c19a107565", "31f4f79cad03", "22807a39709a"];

/// An image of a pool.
struct Kept {
    scheme: Scheme,
    name: String,
    media: Vec<Vec<u8>>,
    /// What the pool holds.
    contents: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images/made")
}

fn kept(commit: &str) -> Vec<Kept> {
    let folder = folder().join(commit);
    let table = std::fs::read_to_string(folder.join("contents.tsv")).expect("the table is there");
    let one = |line: &str| {
        let (name, contents) = line.split_once('\t').expect("a name and contents");
        let scheme = schemes::all().into_iter().find(|scheme| {
            let state = name.strip_prefix(&scheme.name()).and_then(|rest| rest.strip_prefix('-'));
            state.is_some_and(|state| state == "closed" || state.starts_with("crashed-"))
        });
        let file = std::fs::read(folder.join(format!("{name}.image"))).expect("the image is there");
        Kept {
            scheme: scheme.unwrap_or_else(|| panic!("{name} is of no scheme")),
            name: format!("{commit}/{name}"),
            media: media::unpack(&file),
            contents: contents.to_owned(),
        }
    };
    table.lines().map(one).collect()
}

impl Kept {
    /// A machine that has the image.
    fn machine(&self) -> Machine {
        Machine::with(self.media.clone(), &self.scheme)
    }

    /// Opens it in a way, and sees that it holds what it held, and that it can be worked with.
    fn opens(&self, way: Way) {
        let what = format!("{}, opened by {way:?}", self.name);
        let machine = self.machine();
        let pool = schemes::open(way, &machine).unwrap_or_else(|error| panic!("{what}: {error}"));
        let read = |pool: &Opened| pool.read().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(read(&pool), self.contents, "{what}");
        let number: u64 = self.contents.split(';').next().and_then(|text| text.parse().ok()).unwrap_or(0);
        pool.change(number + 1).unwrap_or_else(|error| panic!("{what}, changed: {error}"));
        let changed = read(&pool);
        assert!(changed.starts_with(&format!("{};", number + 1)), "{what}: {changed}");
        pool.close().unwrap_or_else(|error| panic!("{what}, closed: {error}"));
        let again = schemes::open(way, &machine).unwrap_or_else(|error| panic!("{what}, again: {error}"));
        assert_eq!(read(&again), changed, "{what}, opened again");
        let recovery = again.recovery();
        assert_eq!((recovery.undone, recovery.redone), (0, 0), "{what}: a closed pool has nothing to recover");
    }
}

#[test]
fn every_image_is_opened_as_it_was_used_and_holds_what_it_held() {
    for (number, commit) in COMMITS.iter().enumerate() {
        let kept = kept(commit);
        for scheme in schemes::all().into_iter().filter(|scheme| scheme.since <= number) {
            let of = |state: &str| kept.iter().filter(|k| k.scheme == scheme && k.name.contains(state)).count();
            assert!(of("-closed") == 1 && of("-crashed") > 0, "{commit}: no images of {}", scheme.name());
        }
        kept.iter().for_each(|kept| kept.opens(kept.scheme.way));
    }
}

/// Pools that are made now and lose their power hold what was acknowledged: what makes the images
/// is sound.
#[test]
fn pools_that_are_made_now_are_opened_too() {
    for scheme in schemes::all() {
        let machine = Machine::blank(&scheme);
        let pool = schemes::create(scheme.way, &machine).unwrap();
        (1..=4).for_each(|number| pool.change(number).unwrap());
        if !scheme.is_durable() {
            pool.persist().unwrap();
        }
        let (contents, media) = (pool.read().unwrap(), machine.power_cut());
        // Its process is gone.
        std::mem::forget(pool);
        Kept { name: format!("{}, made now", scheme.name()), scheme, media, contents }.opens(scheme.way);
    }
}

/// A pool may be opened in another way each time. Pages that shadow paging has moved come home
/// where programs work by pointer.
#[test]
fn images_in_memory_are_opened_in_every_other_way() {
    for kept in COMMITS.iter().flat_map(|commit| kept(commit)).filter(|kept| kept.scheme.is_in_memory()) {
        let is_direct = matches!(kept.scheme.way, Way::Direct(_));

        for mechanism in Mechanism::ALL {
            // Pools that were made for pointers have no pages to spare, and a log that has no room
            // for those of an epoch.
            if !(is_direct && mechanism.has_epochs()) {
                kept.opens(Way::Mechanism(mechanism, Engine::Cpu));
            }
        }
        for mode in [Mode::WorkingCopy, Mode::InPlace] {
            kept.opens(Way::Direct(mode));
        }
    }
}

/// The tools see nothing wrong with any, and no byte of an image is looked at in vain: the damage
/// of a head is seen.
#[test]
fn the_check_finds_images_sound() {
    for kept in COMMITS.iter().flat_map(|commit| kept(commit)).filter(|kept| kept.scheme.is_in_memory()) {
        let findings = |medium: Vec<u8>| {
            let memory: Box<dyn Memory> = Box::new(VolatileMemory::from_bytes(medium));
            Image::open_in(&*memory).check().findings
        };
        let medium = kept.media[0].clone();
        assert!(findings(medium.clone()).is_empty(), "{}: {:?}", kept.name, findings(medium));
        let mut damaged = kept.media[0].clone();
        damaged[8] ^= 1;
        assert!(!findings(damaged).is_empty(), "{}: a damaged head", kept.name);
    }
}

#[test]
fn files_of_images_keep_every_byte() {
    let mut media = vec![vec![0; 4096], vec![7; 64]];
    media[0][17] = 1;
    media[0][4080] = 2;
    assert_eq!(media::unpack(&media::pack(&media)), media);
    assert!(media::pack(&media).len() < 300);
}
