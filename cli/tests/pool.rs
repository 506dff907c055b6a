//! `nearpm pool` as a user sees it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nearpm::direct::{DirectOptions, DirectPool};
use serde_json::Value;

fn pool(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearpm"));
    command.arg("pool").args(arguments).output().expect("the program runs")
}

/// Runs a verb that must end with a status; gives what it prints.
#[track_caller]
fn expect(status: i32, arguments: &[&str]) -> String {
    let output = pool(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    if status == 1 { said.into_owned() } else { String::from_utf8_lossy(&output.stdout).into_owned() }
}

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let text = expect(0, &[arguments, &["--json"]].concat());
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn a_reader_that_goes_away_ends_the_program_without_a_word() {
    let folder = Folder::new();
    let path = folder.path("a.pool");
    expect(0, &["create", &path, "--size", "1M", "--direct"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearpm"));
    command.args(["pool", "info", &path]).stdout(writer).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    assert!(!output.status.success(), "it prints more than nothing");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
}

/// A direct pool with a root of 100 bytes of 7, left open in the way of a process that dies if `killed`.
fn fill(path: &str, killed: bool) -> u64 {
    let pool = DirectPool::open(path, &DirectOptions::default()).unwrap();
    let mut tx = pool.begin().unwrap();
    let object = tx.alloc(&pool, 100).unwrap().offset;
    // SAFETY: the object is this transaction's own.
    unsafe { pool.base().add(object as usize).write_bytes(7, 100) };
    tx.set_root(object);
    tx.commit(&pool).unwrap();
    if killed {
        fs::copy(path, format!("{path}.killed")).unwrap();
    }
    pool.close().unwrap();
    if killed {
        fs::rename(format!("{path}.killed"), path).unwrap();
    }
    object
}

#[test]
fn a_pool_is_made_once() {
    let folder = Folder::new();
    let path = folder.path("a");
    let made = json(&["create", &path, "--size", "4M", "--id", "77", "--lanes", "2", "--ring", "64K"]);
    assert_eq!((made["bytes"].as_u64(), made["id"].as_u64()), (Some(4 << 20), Some(77)));
    assert!(expect(1, &["create", &path, "--size", "4M"]).contains("exists already"));
    assert!(expect(1, &["create", &folder.path("b"), "--size", "1K"]).contains("smallest"));
    for kind in [&["--size", "0", "--direct"][..], &["--size", "0"]] {
        let refused = expect(1, &[&["create", &folder.path("b")], kind].concat());
        assert!(refused.contains("a pool has bytes"), "{refused}");
    }
    assert!(!Path::new(&folder.path("b")).exists());
    assert_eq!(pool(&["create", &folder.path("b"), "--size", "4Q"]).status.code(), Some(2));
    let info = json(&["info", &path]);
    assert_eq!((info["lanes"].as_u64(), info["ring_bytes"].as_u64()), (Some(2), Some(65536)));
    assert!(expect(1, &["create", "card:sim/pool", "--size", "4M"]).contains("card"));
}

#[test]
fn looking_changes_nothing_and_recovering_does() {
    let folder = Folder::new();
    let path = folder.path("a");
    expect(0, &["create", &path, "--size", "4M", "--direct"]);
    let object = fill(&path, true);
    let before = fs::read(&path).unwrap();
    let info = json(&["info", &path]);
    assert_eq!(info["closed"], false);
    assert_eq!((info["log"]["records"].as_u64(), info["root"].as_u64()), (Some(1), Some(object)));
    assert_eq!(info["recovery"]["redone"], 1);
    assert_eq!(expect(0, &["check", &path]).trim(), "sound");
    let objects = json(&["dump", &path, "--contents"]);
    assert_eq!(objects[0]["offset"].as_u64(), Some(object));
    assert!(objects[0]["contents"].as_str().unwrap().starts_with(&"07".repeat(100)));
    let stats = json(&["stats", &path]);
    assert_eq!(stats["heap"]["objects"], 1);
    assert_eq!(stats["heap"]["classes"][0]["object_bytes"], 112);
    for verb in ["info", "dump", "stats"] {
        assert!(expect(0, &[verb, &path]).contains(if verb == "dump" { "112" } else { "heap" }) || verb == "stats");
    }
    assert_eq!(fs::read(&path).unwrap(), before, "nothing has changed a byte");
    assert_eq!(json(&["recover", &path])["redone"], 1);
    let info = json(&["info", &path]);
    assert_eq!((info["closed"].as_bool(), info["log"]["segments"].as_u64()), (Some(true), Some(0)));
    assert_eq!(json(&["recover", &path])["redone"], 0);
}

#[test]
fn raw_bytes_and_single_objects_are_dumped() {
    let folder = Folder::new();
    let (path, out) = (folder.path("a"), folder.path("out"));
    expect(0, &["create", &path, "--size", "4M", "--direct"]);
    let object = fill(&path, false);
    expect(0, &["dump", &path, "--raw", "0", "--bytes", "64", "--out", &out]);
    assert_eq!(fs::read(&out).unwrap(), fs::read(&path).unwrap()[..64]);
    expect(1, &["dump", &path, "--raw", "4M", "--bytes", "1"]);
    let text = expect(0, &["dump", &path, "--object", &format!("{object:#x}"), "--contents"]);
    assert!(text.contains("0707"), "{text}");
    assert!(expect(1, &["dump", &path, "--object", "0x10"]).contains("not the start"));
}

#[test]
fn damage_has_a_status_of_its_own() {
    let folder = Folder::new();
    let path = folder.path("a");
    expect(0, &["create", &path, "--size", "4M", "--direct"]);
    fill(&path, false);
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let found: Value = serde_json::from_str(&expect(3, &["check", &path, "--json"])).unwrap();
    assert_eq!(found["findings"][0]["class"], "head-seal");
    assert!(expect(3, &["check", &path]).contains("can be repaired"));
    for verb in ["info", "recover", "stats", "dump"] {
        assert!(expect(1, &[verb, &path]).contains("checksum of the head"), "{verb}");
    }
    assert!(expect(1, &["check", &folder.path("none")]).contains("does not exist"));
}

#[test]
fn a_repair_keeps_what_it_overwrites() {
    let folder = Folder::new();
    let path = folder.path("a");
    expect(0, &["create", &path, "--size", "4M", "--direct"]);
    let object = fill(&path, true);
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 1;
    bytes[128] ^= 8;
    fs::write(&path, &bytes).unwrap();
    let repair = json(&["check", &path, "--repair"]);
    assert_eq!(repair["before"]["findings"][0]["class"], "head-seal");
    assert_eq!(repair["after"]["findings"].as_array().unwrap().len(), 0);
    let backup = repair["backup"].as_str().unwrap();
    assert_eq!(backup, format!("{path}.before-repair"));
    assert!(Path::new(backup).exists());
    assert_eq!(json(&["info", &path])["root"].as_u64(), Some(object));
    let sound = fs::read(&path).unwrap();
    assert_eq!(expect(0, &["check", &path, "--repair"]).trim(), "sound");
    assert_eq!(fs::read(&path).unwrap(), sound, "what is sound is not touched");
    bytes[..64].fill(0);
    fs::write(&path, &bytes).unwrap();
    assert!(expect(3, &["check", &path, "--repair"]).contains("cannot be repaired"));
    assert_eq!(fs::read(&path).unwrap(), bytes, "what cannot be repaired is left alone");
}

#[test]
fn a_copy_is_made_once_and_is_like_the_pool() {
    let folder = Folder::new();
    let (path, copy) = (folder.path("a"), folder.path("b"));
    expect(0, &["create", &path, "--size", "4M", "--direct"]);
    fill(&path, true);
    let objects = json(&["dump", &path, "--contents"]);
    let copied = json(&["copy", &path, &copy]);
    assert_eq!((copied["objects"].as_u64(), copied["bytes"].as_u64()), (Some(1), Some(4 << 20)));
    assert_eq!(json(&["dump", &copy, "--contents"]), objects);
    assert!(expect(1, &["copy", &path, &copy]).contains("exists already"));
    let larger = folder.path("c");
    // The second is more than any file system has: that is said at once.
    for (size, why) in [("64M", "cannot grow so far"), ("1048576T", "has not that many free")] {
        let refused = expect(1, &["copy", &path, &larger, "--size", size]);
        assert!(refused.contains(why), "{refused}");
    }
    assert!(!Path::new(&larger).exists());
    expect(0, &["check", &copy]);
}

#[test]
fn a_pool_in_use_names_its_user() {
    let folder = Folder::new();
    let path = folder.path("a");
    expect(0, &["create", &path, "--size", "4M", "--direct"]);
    let open = DirectPool::open(&path, &DirectOptions::default()).unwrap();
    let user = format!("process {}", std::process::id());
    for verb in ["info", "check", "stats", "dump", "recover"] {
        let said = expect(1, &[verb, &path]);
        assert!(said.contains(&user), "{verb}: {said}");
    }
    drop(open);
    expect(0, &["check", &path]);
}
