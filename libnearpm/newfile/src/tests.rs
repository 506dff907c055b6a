use std::collections::BTreeSet;
use std::io::{Read, Write};

use super::*;

fn names(folder: &Path) -> BTreeSet<String> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Both ways to make a file for a path at which there is nothing.
const WAYS: [fn(&Path) -> Result<NewFile>; 2] = [NewFile::create, |path| NewFile::named(path, Place::Beside)];

#[test]
fn a_file_has_its_name_when_it_is_whole() {
    for make in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let new = make(&path).unwrap();
        new.file().write_all(b"whole").unwrap();
        assert!(!path.exists());
        let file = new.publish(Durability::Durable).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert!(is_at(&file, &path));
        assert_eq!(names(folder.path()).len(), 1);
        assert!(File::open(&path).unwrap().try_lock().is_err(), "the creator holds the lock");
        assert_eq!(
            make(&path).and_then(|new| new.publish(Durability::Durable)).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
    }
}

#[test]
fn of_two_creators_one_wins_and_the_other_leaves_nothing() {
    for (first, second) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let (one, other) = (WAYS[first](&path).unwrap(), WAYS[second](&path).unwrap());
        one.file().write_all(b"first").unwrap();
        other.publish(Durability::ProcessCrash).unwrap();
        assert_eq!(one.publish(Durability::Durable).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        assert_eq!(names(folder.path()).len(), 1);
    }
}

#[test]
fn what_is_given_up_leaves_nothing() {
    for make in WAYS {
        let folder = tempfile::tempdir().unwrap();
        drop(make(&folder.path().join("file")).unwrap());
        assert!(names(folder.path()).is_empty());
    }
}

#[test]
fn the_next_creator_removes_what_a_dead_one_left_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join(format!("{PREFIX}left"));
    let others = [folder.path().join("other"), folder.path().join(".nearpm-old")];
    for path in others.iter().chain([&left]) {
        std::fs::write(path, b"half").unwrap();
    }
    std::fs::create_dir(folder.path().join(format!("{PREFIX}folder"))).unwrap();
    let path = folder.path().join("file");
    let living = NewFile::named(&path, Place::Beside).unwrap();
    assert!(!left.exists());
    let before = names(folder.path());
    let next = NewFile::named(&path, Place::Beside).unwrap();
    assert!(names(folder.path()).is_superset(&before), "the living creator keeps its file");
    drop(next);
    living.publish(Durability::Durable).unwrap();
    assert!(others.iter().all(|path| path.exists()));
}

#[test]
fn a_file_takes_the_place_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for content in ["first", "second"] {
        let new = NewFile::replace(&path).unwrap();
        new.file().write_all(content.as_bytes()).unwrap();
        new.publish(Durability::Durable).unwrap();
        let mut found = String::new();
        File::open(&path).unwrap().read_to_string(&mut found).unwrap();
        assert_eq!((found.as_str(), names(folder.path()).len()), (content, 1));
    }
}

#[test]
fn a_new_file_has_the_permissions_of_one_that_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
    let usual = folder.path().join("usual");
    File::create(&usual).unwrap();
    for (number, make) in WAYS.into_iter().enumerate() {
        let path = folder.path().join(number.to_string());
        make(&path).unwrap().publish(Durability::ProcessCrash).unwrap();
        assert_eq!(mode(&path), mode(&usual));
    }
}

#[test]
fn a_folder_that_is_not_there_is_said() {
    for make in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let refused = make(&folder.path().join("none/file")).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::NotFound);
    }
}

#[test]
fn room_is_taken_and_the_size_stays() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    let blocks = || file.metadata().unwrap().blocks() * 512;
    take_room(&file, 0..1 << 16).unwrap();
    assert_eq!((blocks() >= 1 << 16, blocks() < 1 << 20), (true, true));
    take_room(&file, 0..2 << 20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 1 << 20);
}
