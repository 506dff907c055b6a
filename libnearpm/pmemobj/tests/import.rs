//! Pools that PMDK's own library wrote become pools of this one, and their programs go on.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nearpm::check::Image;
use nearpm::pmdk;
use nearpm_pmemobj_programs::{Library, Program};
use tempfile::TempDir;

/// The program, and a pool that it has made on PMDK.
struct Made {
    program: Program,
    folder: TempDir,
}

impl Made {
    fn new() -> Option<Made> {
        nearpm_pmemobj_programs::pmdk()?;
        let program = Program::compile("import")?;
        let folder = program.folder_for_pools(Library::Pmdk);
        let made = Made { program, folder };
        made.run(Library::Pmdk, &made.path("original"), "make");
        Some(made)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, library: Library, pool: &Path, verb: &str) {
        let output = self.program.start(library, pool, &[verb], &[]);
        assert!(output.status.success(), "{verb} on {library:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A copy of the pool that was made, changed at an offset.
    fn changed(&self, name: &str, offset: u64, change: impl Fn(u8) -> u8) -> PathBuf {
        let path = self.path(name);
        fs::copy(self.path("original"), &path).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[change(byte[0])], offset).unwrap();
        path
    }

    fn import(&self, from: &Path, to: &str) -> Result<pmdk::Imported, String> {
        let to = self.path(to);
        let written = || fs::metadata(from).ok().map(|file| (file.len(), file.modified().unwrap()));
        let before = written();
        let options = nearpm::Options::new();
        let done = pmdk::import(from, to.to_str().unwrap(), None, &options).map_err(|error| error.to_string());
        assert_eq!(written(), before, "the original is never changed");
        assert_eq!(done.is_ok(), to.exists(), "nothing is left behind: {done:?}");
        done
    }

    fn refused(&self, from: &Path) -> String {
        self.import(from, "refused").unwrap_err()
    }
}

#[test]
fn programs_go_on_with_every_object_byte_and_type() {
    let Some(made) = Made::new() else { return };
    for library in [Library::WorkingCopy, Library::InPlace] {
        let name = format!("{library:?}");
        let imported = made.import(&made.path("original"), &name).unwrap();
        assert_eq!(imported.objects, 3000 + 40 + 1, "with the root");
        // Each object's successor and the inside of it, but the last one's; of each class nine; of
        // the root the first of all and of each class.
        assert_eq!(imported.identifiers, 2 * 2999 + 4 * 9 + 5);
        assert_eq!(imported.dangling, 1, "the identifier of an object that was freed");
        let pool = made.path(&name);
        let mut image = Image::open(pool.to_str().unwrap()).unwrap();
        assert!(image.check().findings.is_empty());
        drop(image);
        made.run(library, &pool, "verify");
    }
    made.run(Library::Pmdk, &made.path("original"), "verify");
}

#[test]
fn what_is_no_closed_whole_pool_is_refused_with_a_reason() {
    let Some(made) = Made::new() else { return };
    let original = made.path("original");
    assert!(made.refused(&made.path("nothing")).contains("No such file"));
    assert!(made.refused(Path::new("/dev/null")).contains("is a device"));
    assert!(made.refused(made.folder.path()).contains("is no file"));
    let text = made.path("text");
    fs::write(&text, "no pool").unwrap();
    assert!(made.refused(&text).contains("is no pool of PMDK's libpmemobj"));

    assert!(made.refused(&made.changed("version", 8, |_| 5)).contains("version 5"));
    assert!(made.refused(&made.changed("feature", 19, |_| 1)).contains("0x1000000"));
    assert!(made.refused(&made.changed("head", 100, |byte| byte ^ 1)).contains("checksum of the head"));
    assert!(made.refused(&made.changed("layout", 4100, |byte| byte ^ 1)).contains("checksum of the description"));
    for (name, bytes) in [("none", 0), ("short", 100), ("half", 32 << 20)] {
        let cut = made.path(name);
        fs::copy(&original, &cut).unwrap();
        OpenOptions::new().write(true).open(&cut).unwrap().set_len(bytes).unwrap();
        let refused = made.refused(&cut);
        assert!(refused.contains("truncated") || bytes == 0 && refused.contains("is no pool"), "{bytes}: {refused}");
    }

    let locked = fs::File::open(&original).unwrap();
    locked.lock().unwrap();
    assert!(made.refused(&original).contains("is open in another process"));
    drop(locked);

    let open = made.path("open");
    fs::copy(&original, &open).unwrap();
    made.run(Library::Pmdk, &open, "die");
    let refused = made.refused(&open);
    assert!(refused.contains("was not closed"), "{refused}");

    // What PMDK recovers is imported.
    made.run(Library::Pmdk, &open, "verify");
    made.import(&open, "recovered").unwrap();
    assert!(made.import(&original, "recovered-again").is_ok());
    let twice = pmdk::import(&original, made.path("recovered").to_str().unwrap(), None, &nearpm::Options::new());
    assert!(twice.unwrap_err().to_string().contains("exists already"));
    let small = pmdk::import(&original, made.path("small").to_str().unwrap(), Some(4 << 20), &nearpm::Options::new());
    assert!(small.unwrap_err().to_string().contains("the pool is full"));
    assert!(!made.path("small").exists());
}

/// Bits of the heads, of the heap's tables, and of the heads of runs and objects.
#[test]
fn flipped_bits_are_refused_or_change_what_is_there() {
    let Some(made) = Made::new() else { return };
    let original = made.path("original");
    let file = OpenOptions::new().read(true).write(true).open(&original).unwrap();
    let sound = pmdk::examine(&original).unwrap();
    assert_eq!((sound.layout.as_str(), sound.bytes, sound.objects), ("nearpm-check", 64 << 20, 3041));
    let heap = 8192 + 1024 * 3072;
    let chunks = heap + 1024 + (512 << 10);
    let heads = (0..6144).step_by(37);
    let tables = (heap..heap + 1024).step_by(31).chain((heap + 1024..heap + 1600).step_by(7));
    let runs = (0..100).map(|at| chunks + at * (512 << 10) + at * 5 % 24);
    let mut refused = [0, 0, 0];
    let places = [heads.collect::<Vec<u64>>(), tables.collect(), runs.collect()];
    for (places, refused) in places.iter().zip(&mut refused) {
        for (number, &offset) in places.iter().enumerate() {
            let mut byte = [0];
            file.read_exact_at(&mut byte, offset).unwrap();
            file.write_all_at(&[byte[0] ^ 1 << (number % 8)], offset).unwrap();
            *refused += usize::from(pmdk::examine(&original).is_err());
            file.write_all_at(&byte, offset).unwrap();
        }
        assert_eq!(pmdk::examine(&original).unwrap(), sound);
    }
    // All of the heads is summed but what may change while a pool is open: 1976 bytes of the first
    // page.
    assert_eq!(refused[0], (0..6144).step_by(37).filter(|at| !(2048..4088).contains(at)).count());
    assert!(refused[1] > 40 && refused[2] > 10, "{refused:?}");
}
