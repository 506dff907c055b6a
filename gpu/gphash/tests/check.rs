//! `nearpm pool check` and the repair, on regions with hash tables: which slot is wrong, and that
//! everything sound stays.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nearpm::check::{Class, check, repair};
use nearpm_gphash::{Design, Key, Keys, Layout, Op, Request, Table};
use nearpm_gpu::{Access, Device, Interpreted, PmRegion};
use nearpm_interface::region::OBJECT_WORD;

const PAIRS: u64 = 40;

fn layout(design: Design, keys: Keys) -> Layout {
    let layout = match design {
        Design::Levels => Layout { buckets: 16, ..Layout::levels(1, 16) },
        Design::Tags => Layout { width: 8, buckets: 16, windows: 2, stash: 1, spares: 16, ..Layout::tags(1, 16) },
    };
    layout.with_keys(keys).growing(1)
}

fn key(keys: Keys, number: u64) -> Key {
    match keys {
        Keys::Words => Key::Word(number * 0x1_0000_0001),
        _ => Key::Bytes(format!("pear number {number}").into_bytes()),
    }
}

fn open(path: &Path) -> (PmRegion, nearpm_gphash::Result<Table>) {
    let device: Rc<dyn Device> = Rc::new(Interpreted::new(16 << 20));
    let region = PmRegion::map(device, path, 0, Access::Open).unwrap();
    let table = Table::open(&region, "table");
    (region, table)
}

/// A table with pairs, half of which have been given another value, in a file; and where its slots
/// are.
struct Made {
    _folder: tempfile::TempDir,
    path: PathBuf,
    keys: Keys,
    object: u64,
    slots: (u64, u64),
    cells: u64,
}

impl Made {
    fn new(design: Design, keys: Keys) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("region");
        let device: Rc<dyn Device> = Rc::new(Interpreted::new(16 << 20));
        let layout = layout(design, keys);
        let region =
            PmRegion::map(device, &path, (layout.bytes() + (1 << 16)).next_multiple_of(4096), Access::Create).unwrap();
        let table = Table::create(&region, "table", &layout, 5).unwrap();
        let request = |op, number: u64| {
            let value = if op == Op::Delete { Vec::new() } else { vec![number as u8; 16] };
            Request { op, key: key(keys, number), value }
        };
        table.batch(&(1..=PAIRS).map(|number| request(Op::Insert, number)).collect::<Vec<_>>()).unwrap();
        table.batch(&(1..=PAIRS).step_by(2).map(|number| request(Op::Update, number)).collect::<Vec<_>>()).unwrap();
        let slots = table.slots();
        drop(table);
        let object = region.objects()[0].offset;
        let cells = object + layout.bytes() - layout.cells() * layout.cell_bytes();
        region.close().unwrap();
        Made { _folder: folder, path, keys, object, slots, cells }
    }

    fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }

    fn word(&self, offset: u64) -> u64 {
        let mut word = [0; 8];
        OpenOptions::new().read(true).open(&self.path).unwrap().read_exact_at(&mut word, offset).unwrap();
        u64::from_le_bytes(word)
    }

    fn put(&self, offset: u64, word: u64) {
        let file = OpenOptions::new().write(true).open(&self.path).unwrap();
        file.write_all_at(&word.to_le_bytes(), offset).unwrap();
    }

    /// Offsets of the words of slots that hold something.
    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        (self.slots.0..self.slots.0 + self.slots.1).step_by(8).filter(|&offset| self.word(offset) != 0)
    }

    fn findings(&self) -> Vec<(Class, u64, bool)> {
        let report = check(self.name()).unwrap();
        report.findings.iter().map(|finding| (finding.class, finding.offset, finding.repairable)).collect()
    }

    /// Pairs that are there with their values.
    fn pairs(&self) -> u64 {
        let (region, table) = open(&self.path);
        let table = table.unwrap();
        assert!(table.check().unwrap().is_sound());
        let get = |number| Request { op: Op::Get, key: key(self.keys, number), value: Vec::new() };
        let answers = table.batch(&(1..=PAIRS).map(get).collect::<Vec<_>>()).unwrap();
        let sound = (1..).zip(answers).filter(|(number, answer)| answer.value == Some(vec![*number as u8; 16])).count();
        drop(table);
        region.close().unwrap();
        sound as u64
    }
}

const ALL: [(Design, Keys); 4] = [
    (Design::Levels, Keys::Words),
    (Design::Tags, Keys::Words),
    (Design::Levels, Keys::Variable(30)),
    (Design::Tags, Keys::Variable(30)),
];

#[test]
fn a_sound_table_is_left_alone() {
    for (design, keys) in ALL {
        let made = Made::new(design, keys);
        assert_eq!(made.findings(), []);
        let repaired = repair(made.name()).unwrap();
        assert_eq!((repaired.bytes, repaired.backup), (0, None));
        assert_eq!(made.pairs(), PAIRS);
    }
}

/// A bit of a pointer: the check says which slot, the table refuses to open, and the repair loses
/// nothing.
#[test]
fn one_wrong_bit_of_a_pointer_is_put_right() {
    for (design, keys) in ALL {
        let made = Made::new(design, keys);
        // Pointers have their check in the upper bits, keys of this test are small or hashes.
        let pointer = made.words().find(|&offset| {
            let findings = made.flipped(offset, 41);
            findings.iter().any(|finding| finding.0 == Class::HashPointer)
        });
        let pointer = pointer.expect("some slot has a pointer");
        let before = made.word(pointer);
        made.put(pointer, before ^ 1 << 41);
        assert_eq!(made.findings(), [(Class::HashPointer, pointer, true)], "{design:?}");
        let (region, table) = open(&made.path);
        assert!(format!("{:#}", anyhow(table)).contains("damaged"));
        region.close().unwrap();
        let repaired = repair(made.name()).unwrap();
        assert!(repaired.after.is_sound() && repaired.backup.is_some());
        assert_eq!(made.word(pointer), before);
        assert_eq!(made.pairs(), PAIRS);
    }
}

fn anyhow(table: nearpm_gphash::Result<Table>) -> nearpm_gphash::Error {
    table.err().expect("a damaged table is refused")
}

impl Made {
    /// What a check finds with a bit of a word changed; it is changed back.
    fn flipped(&self, offset: u64, bit: u32) -> Vec<(Class, u64, bool)> {
        let word = self.word(offset);
        self.put(offset, word ^ 1 << bit);
        let findings = self.findings();
        self.put(offset, word);
        findings
    }
}

/// A torn line of slots: what is beyond repair is freed, all other pairs stay.
#[test]
fn slots_that_are_torn_are_freed() {
    for (design, keys) in ALL {
        let made = Made::new(design, keys);
        let torn: Vec<u64> = made.words().take(5).collect();
        torn.iter().for_each(|&offset| made.put(offset, 0x5555_aaaa_5555_aaaa ^ offset << 3));
        let findings = made.findings();
        assert!(!findings.is_empty() && findings.iter().all(|finding| finding.2), "{findings:?}");
        let repaired = repair(made.name()).unwrap();
        assert!(repaired.after.is_sound(), "{:?}", repaired.after);
        // No more than the slots of those words are lost.
        let left = made.pairs();
        assert!((PAIRS - 5..PAIRS).contains(&left), "{design:?}: {left}");
    }
}

/// A pair that lies twice: of equal ones one is freed, others are told and left.
#[test]
fn keys_that_are_there_twice_are_told() {
    let made = Made::new(Design::Tags, Keys::Words);
    let slots: Vec<u64> = (made.slots.0..made.slots.0 + made.slots.1).step_by(16).collect();
    // A slot without a pointer, in a bucket with a free one: its key there, too, without its value.
    let free_beside = |slot: u64| {
        let bucket = made.slots.0 + (slot - made.slots.0) / 128 * 128;
        (bucket..bucket + 128).step_by(16).find(|&other| made.word(other) == 0 && made.word(other + 8) == 0)
    };
    let (slot, free) = slots
        .iter()
        .filter(|&&slot| made.word(slot) != 0 && made.word(slot + 8) == 0)
        .find_map(|&slot| Some((slot, free_beside(slot)?)))
        .expect("a bucket has room");
    made.put(free, made.word(slot));
    assert_eq!(made.findings(), [(Class::HashTwice, slot.max(free), false)]);
    let repaired = repair(made.name()).unwrap();
    assert!(!repaired.after.is_sound());
    made.put(free, 0);
    assert_eq!(made.pairs(), PAIRS);
}

/// Two slots with one cell: the one that has lost its pointer is freed.
#[test]
fn a_slot_that_has_lost_its_pointer_is_freed() {
    let made = Made::new(Design::Tags, Keys::Words);
    // Of two updates that exchanged cells, one forgets.
    let moved: Vec<u64> =
        (made.slots.0..made.slots.0 + made.slots.1).step_by(16).filter(|&slot| made.word(slot + 8) != 0).collect();
    let mut lost = 0;
    for &slot in &moved {
        let pointer = made.word(slot + 8);
        made.put(slot + 8, 0);
        lost += u64::from(!made.findings().is_empty());
        made.put(slot + 8, pointer);
    }
    // Nobody has taken the cells that they were given first: without a pointer they have an old
    // value, and that cannot be seen.
    assert_eq!(lost, 0);
    let [first, second] = moved[..2] else { panic!("two slots have pointers") };
    assert_ne!(made.word(first), made.word(second));
    made.put(second + 8, made.word(first + 8));
    let findings = made.findings();
    assert_eq!(findings, [(Class::HashPointer, second, true)]);
    let repaired = repair(made.name()).unwrap();
    assert!(repaired.after.is_sound());
    assert_eq!(made.pairs(), PAIRS - 1);
}

/// A wide key in its cell: a bit is put right, more than that frees its slot.
#[test]
fn wide_keys_are_held_against_their_words() {
    for design in [Design::Levels, Design::Tags] {
        let made = Made::new(design, Keys::Variable(30));
        // The first cell is a slot's own, or the first that was taken.
        let cell = (0..200)
            .map(|cell| made.cells + cell * 48)
            .find(|&cell| made.flipped(cell + 24, 3).iter().any(|finding| finding.0 == Class::HashUnlike))
            .expect("a cell has a key");
        let before = made.word(cell + 24);
        made.put(cell + 24, before ^ 1 << 3);
        assert_eq!(made.findings(), [(Class::HashUnlike, cell + 16, true)]);
        assert!(repair(made.name()).unwrap().after.is_sound());
        assert_eq!(made.word(cell + 24), before);
        assert_eq!(made.pairs(), PAIRS);
        made.put(cell + 24, 0);
        assert!(repair(made.name()).unwrap().after.is_sound());
        assert_eq!(made.pairs(), PAIRS - 1);
    }
}

/// Its head and words: what nobody can read is told, and not repaired by guesses.
#[test]
fn a_torn_head_is_told() {
    for (design, keys) in ALL {
        let made = Made::new(design, keys);
        made.put(made.object + 16, 0);
        assert_eq!(made.findings(), [(Class::ObjectHead, made.object, false)]);
        let (region, table) = open(&made.path);
        assert!(table.is_err());
        region.close().unwrap();
        let made = Made::new(design, keys);
        made.put(made.object + OBJECT_WORD, 0x1234_5678);
        assert_eq!(made.findings(), [(Class::ObjectWord, made.object + OBJECT_WORD, false)]);
    }
}
