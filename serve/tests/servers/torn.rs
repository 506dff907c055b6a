//! A power cut on an ordinary file: of what was stored since the last synchronisation, any sectors
//! may have reached the disk.
//!
//! The file is read when all of it is durable, and again when a server that synchronises nothing
//! any more was killed. Every mixture of the sectors of both is what a power cut could have left.

use nearpm_interface::record::POOL_APPLIED;
use nearpm_serve::start_redis;

use crate::client::{Client, Value, bulk};
use crate::process::{Folder, Process, draw, options, thorough};

const SECTOR: usize = 512;
const BURST: u64 = 40;
const KEYS: u64 = 5;

fn key(number: u64) -> String {
    format!("n{}", number % KEYS)
}

fn value(number: u64) -> String {
    // Some are so long that they are written once, to their place.
    let long = if number % 7 == 3 { 4000 } else { 0 };
    format!("{number}:{}", "x".repeat((draw(number) % 200) as usize + long))
}

/// The sectors of both files, as a seed draws them. Some seeds draw few of the new ones.
fn mixture(durable: &[u8], latest: &[u8], seed: u64) -> Vec<u8> {
    let mut mixed = durable.to_vec();
    let sectors = mixed.chunks_mut(SECTOR).zip(latest.chunks(SECTOR)).enumerate();
    for (number, (to, from)) in sectors {
        if draw(seed * 1_000_003 + number as u64) % 8 < 1 + seed % 8 {
            to.copy_from_slice(from);
        }
    }
    mixed
}

/// How many writes of the burst are there: the first ones, and no others.
fn survivors(client: &mut Client) -> u64 {
    for number in 0..20 {
        assert_eq!(client.say(&format!("get base{number}")), bulk("durable"), "what was durable is gone");
    }
    let number_of = |value: Value| match value {
        Value::Bulk(bytes) => {
            String::from_utf8_lossy(&bytes).split(':').next().and_then(|n| n.parse().ok()).unwrap_or(0)
        }
        _ => 0,
    };
    let last: u64 = (0..KEYS).map(|n| number_of(client.say(&format!("get n{n}")))).max().unwrap_or(0);
    for number in (1..=last).rev().take(KEYS as usize) {
        assert_eq!(client.say(&format!("get {}", key(number))), bulk(&value(number)), "{number} of {last}");
    }
    for number in last + 1..=KEYS {
        assert_eq!(client.say(&format!("get {}", key(number))), Value::Null, "{number} of {last}");
    }
    last
}

#[test]
fn of_what_was_not_synchronised_the_first_part_survives() {
    let folder = Folder::new();
    let pool = folder.path("pool");
    // So large that nothing has to be brought home, which would synchronise, while values are
    // stored (of a pool of 1 MiB the log is full at the 31st).
    let arguments = ["--bytes", "8M", "--durability", "async", "--sync-ms", "3600000"];
    let mut process = Process::start("redis", &pool, &arguments);
    let mut client = Client::connect(process.address);
    for number in 0..20 {
        client.say(&format!("set base{number} durable"));
    }
    let file = std::fs::File::open(&pool).expect("the pool is a file");
    file.sync_all().expect("it can be synchronised");
    let durable = std::fs::read(&pool).expect("it can be read");
    for number in 1..=BURST {
        client.say(&format!("set {} {}", key(number), value(number)));
    }
    process.kill();
    process.wait();
    let latest = std::fs::read(&pool).expect("it can be read");
    let applied = |file: &[u8]| file[POOL_APPLIED as usize..][..8].to_vec();
    assert_eq!(
        applied(&durable),
        applied(&latest),
        "the log was brought home, and the file synchronised, in the burst"
    );
    let (torn, trials) = (folder.path("torn"), if thorough() { 600 } else { 60 });
    let mut found = std::collections::BTreeSet::new();
    for seed in 0..trials {
        std::fs::write(&torn, mixture(&durable, &latest, seed)).expect("it can be written");
        let redis = start_redis(options(&torn, &[])).expect("a torn pool opens");
        found.insert(survivors(&mut Client::connect(redis.address())));
    }
    assert!(found.contains(&BURST) && found.len() > 3, "nothing was torn: {found:?}");
}
