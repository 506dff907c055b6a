//! `nearpm pool` as a user sees it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nearpm::Options;
use nearpm::direct::DirectPool;
use nearpm_subjects::pmdk_file;
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

/// A direct pool with a root of 100 bytes of 7, left open in the way of a process that dies if
/// `killed`.
fn fill(path: &str, killed: bool) -> u64 {
    let pool = DirectPool::open(path, &Options::new()).unwrap();
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
        let refused = pool(&[&["create", &folder.path("b")], kind].concat());
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains("less than one byte"), "{said}");
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
    let row = format!("{object:08x}  {}  |{}|", ["07 07 07 07 07 07 07 07"; 2].join("  "), ".".repeat(16));
    assert!(text.contains(&row), "{text}");
    let head = expect(0, &["dump", &path, "--raw", "0", "--bytes", "8", "--contents"]);
    assert_eq!(head, format!("00000000  4e 65 61 72 50 6f 6f 6c  {:23}  |NearPool|\n00000008\n", ""));
    assert!(expect(1, &["dump", &path, "--object", "0x10"]).contains("not the start"));
}

#[test]
fn a_pool_says_whose_data_it_holds() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    expect(0, &["create", &path("pmdk"), "--size", "1.5M", "--direct", "--layout", "words"]);
    let info = json(&["info", &path("pmdk")]);
    assert_eq!((info["contents"]["of"].as_str(), info["contents"]["layout"].as_str()), (Some("pmdk"), Some("words")));
    assert_eq!(info["bytes"].as_u64(), Some(3 << 19));
    assert!(expect(0, &["info", &path("pmdk")]).contains("\"words\", of a PMDK program"));

    expect(0, &["create", &path("rust"), "--size", "1MB", "--direct"]);
    assert_eq!(json(&["info", &path("rust")])["contents"]["of"], "no-root");
    let pool = DirectPool::open(&path("rust"), &Options::new()).unwrap();
    pool.tx(|tx| nearpm::Store::root_or_zeroed::<[u64; 3]>(tx).map(drop)).unwrap();
    pool.close().unwrap();
    let info = json(&["info", &path("rust")]);
    assert_eq!((info["contents"]["of"].as_str(), info["contents"]["root_bytes"].as_u64()), (Some("rust"), Some(24)));
    assert_eq!(info["bytes"].as_u64(), Some(1_000_000));

    fill_new(&path("raw"));
    assert_eq!(json(&["info", &path("raw")])["contents"]["of"], "untyped");
    // Nothing is left of what cannot be made.
    expect(1, &["create", &path("long"), "--size", "1M", "--direct", "--layout", &"a".repeat(1024)]);
    assert!(!Path::new(&path("long")).exists());
    assert_eq!(pool_status(&["create", &path("long"), "--size", "1M", "--layout", "words"]), Some(2));
}

#[test]
fn a_pool_of_pmdk_is_imported() {
    let folder = Folder::new();
    let (from, to) = (folder.path("pmdk"), folder.path("new"));
    pmdk_file::write(Path::new(&from), &pmdk_file::Shape::default());
    let holds = json(&["import", &from, "--dry-run"]);
    assert_eq!((holds["layout"].as_str(), holds["objects"].as_u64()), (Some(pmdk_file::LAYOUT), Some(1)));
    assert_eq!(pool_status(&["import", &from]), Some(2), "it does not say where to");
    let imported = json(&["import", &from, &to, "--size", "4M"]);
    assert_eq!((imported["bytes"].as_u64(), imported["identifiers"].as_u64()), (Some(4 << 20), Some(1)));
    let info = json(&["info", &to]);
    assert_eq!((info["contents"]["of"].as_str(), info["contents"]["root_bytes"].as_u64()), (Some("pmdk"), Some(64)));
    assert!(expect(1, &["import", &from, &to]).contains("exists already"));
    assert!(expect(1, &["import", &to, &folder.path("again")]).contains("is no pool of PMDK's libpmemobj"));
}

/// Makes a pool whose root says nothing of itself.
fn fill_new(path: &str) {
    expect(0, &["create", path, "--size", "4M", "--direct"]);
    fill(path, false);
}

fn pool_status(arguments: &[&str]) -> Option<i32> {
    pool(arguments).status.code()
}

/// Everything that is no pool, with words of the sentence that says so.
fn no_pools(folder: &Folder) -> Vec<(String, &'static str)> {
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let long = |start: &[u8]| [start, &[7; 8192]].concat();
    let fifo = folder.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let socket = folder.path("socket");
    // The file stays when nobody listens any more.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    vec![
        (file("obj", &long(b"PMEMOBJ\0")), "of PMDK's libpmemobj; nothing was changed; open it with PMDK"),
        (file("log", &long(b"PMEMLOG\0")), "of PMDK's libpmemlog; nothing was changed; open it with PMDK"),
        (file("blk", &long(b"PMEMBLK\0")), "of PMDK's libpmemblk; nothing was changed; open it with PMDK"),
        (file("set", b"PMEMPOOLSET\n16M /a/part\n"), "a pool set file of PMDK; nothing was changed; open it with PMDK"),
        (file("png", &long(b"\x89PNG\r\n\x1a\n")), "is not a NearPM pool but an image (PNG); nothing was changed"),
        (file("elf", &long(b"\x7fELF\x02\x01\x01\0")), "is not a NearPM pool but a program or library (ELF)"),
        (file("text", b"root:x:0:0:\n"), "is not a NearPM pool but another file (the first bytes are \"root:x:0\")"),
        (folder.0.path().to_str().unwrap().to_owned(), "is a folder, and a pool lies in an ordinary file"),
        (fifo, "is a FIFO, and a pool lies in an ordinary file"),
        (socket, "is a socket, and a pool lies in an ordinary file"),
        ("/dev/null".to_owned(), "is a device, and a pool lies in an ordinary file"),
        ("/dev/zero".to_owned(), "is a device, and a pool lies in an ordinary file"),
        (folder.path("none"), "does not exist"),
    ]
}

#[test]
fn what_is_no_pool_is_refused_by_every_verb_in_a_sentence() {
    let folder = Folder::new();
    for (path, words) in no_pools(&folder) {
        let read = || fs::metadata(&path).is_ok_and(|kind| kind.is_file()).then(|| fs::read(&path).unwrap());
        let before = read();
        let to = folder.path("to");
        let verbs: &[&[&str]] = &[
            &["info", &path],
            &["check", &path],
            &["check", &path, "--repair"],
            &["recover", &path],
            &["dump", &path],
            &["dump", &path, "--raw", "0", "--bytes", "8"],
            &["stats", &path],
            &["copy", &path, &to],
        ];
        for verb in verbs {
            if verb.contains(&"--raw") && before.is_some() {
                // These are bytes of a file as they are, whatever it is.
                continue;
            }
            let said = expect(1, verb);
            assert!(said.contains(words) && said.lines().count() == 1, "{verb:?}: {said}");
            assert!(!Path::new(&to).exists());
        }
        assert_eq!(read(), before, "{path}");
        if path != folder.path("none") {
            assert!(expect(1, &["create", &path, "--size", "4M"]).contains("exists already"), "{path}");
            assert_eq!(read(), before, "{path}");
        }
    }
    let empty = folder.path("empty");
    fs::write(&empty, "").unwrap();
    for verb in ["info", "recover", "dump", "stats"] {
        assert!(expect(1, &[verb, &empty]).contains("remove it and create it again"), "{verb}");
    }
    assert!(expect(3, &["check", &empty]).contains("head-blank"));
}

#[test]
fn a_newer_pool_is_left_alone() {
    let folder = Folder::new();
    let path = folder.path("a");
    expect(0, &["create", &path, "--size", "4M", "--direct"]);
    let mut bytes = fs::read(&path).unwrap();
    let line = bytes.first_chunk_mut::<64>().unwrap();
    line[8] = 9;
    nearpm_interface::seal::seal(&[], line);
    fs::write(&path, &bytes).unwrap();
    for verb in ["info", "recover", "dump", "stats"] {
        assert!(expect(1, &[verb, &path]).contains("use the library that created it"), "{verb}");
    }
    assert!(expect(3, &["check", &path, "--repair"]).contains("head-version"));
    assert_eq!(fs::read(&path).unwrap(), bytes);
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
    // That is more than any file system has: it is said at once.
    let refused = expect(1, &["copy", &path, &larger, "--size", "1048576T"]);
    assert!(refused.contains("has not that many free"), "{refused}");
    assert!(!Path::new(&larger).exists());
    expect(0, &["copy", &path, &larger, "--size", "64M"]);
    assert_eq!(json(&["dump", &larger, "--contents"]), objects, "a copy has tables of its own for what is new");
    expect(0, &["check", &larger]);
    expect(0, &["check", &copy]);
}

#[test]
fn a_pool_in_use_names_its_user() {
    let folder = Folder::new();
    let path = folder.path("a");
    expect(0, &["create", &path, "--size", "4M", "--direct"]);
    let open = DirectPool::open(&path, &Options::new()).unwrap();
    let user = format!("process {}", std::process::id());
    for verb in ["info", "check", "stats", "dump", "recover"] {
        let said = expect(1, &[verb, &path]);
        assert!(said.contains(&user), "{verb}: {said}");
    }
    drop(open);
    expect(0, &["check", &path]);
}
