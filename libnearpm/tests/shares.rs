//! What share of a pool objects can use.
//! `cargo nextest run --release -p nearpm -E 'binary(shares)' --no-capture` prints it.

use nearpm::Options;
use nearpm::direct::DirectPool;
use nearpm::memory::VolatileMemory;
use nearpm::prelude::*;

/// Objects that come into being with one commit.
const TOGETHER: usize = 64;

fn create(bytes: u64) -> DirectPool {
    let memory = VolatileMemory::new(bytes as usize);
    DirectPool::create_in(Box::new(memory), &Options::default()).unwrap()
}

/// Fills a pool with objects, and gives the share of its bytes that they have, in percent.
fn share(pool_bytes: u64, object_bytes: u64) -> f64 {
    let pool = create(pool_bytes);
    let mut objects = 0;
    let mut full = false;
    while !full {
        let mut tx = pool.begin().unwrap();
        for _ in 0..TOGETHER {
            match pool.reserve(object_bytes) {
                Ok(reservation) => {
                    // As it lies: what the objects hold does not matter here.
                    tx.publish(reservation, false);
                    objects += 1;
                }
                Err(Error::Full { .. }) => full = true,
                Err(error) => panic!("{error}"),
            }
            if full {
                break;
            }
        }
        tx.commit(&pool).unwrap();
    }
    let found = std::iter::successors(pool.next_object(0), |&object| pool.next_object(object));
    assert!(found.inspect(|&object| assert!(pool.usable_bytes(object).unwrap() >= object_bytes)).count() == objects);
    100.0 * (objects as u64 * object_bytes) as f64 / pool_bytes as f64
}

#[test]
fn objects_of_each_size_have_most_of_a_pool() {
    println!("|    bytes | bare | with 16 B more |");
    println!("|---------:|-----:|---------------:|");
    for (bytes, bare_aim, aim) in (6..=20).map(|power| {
        let bytes = 1u64 << power;
        let aim = if bytes >= 1024 { 90.0 } else { 75.0 };
        (bytes, if bytes >= 64 { 90.0 } else { aim }, aim)
    }) {
        let bare = share(64 << 20, bytes);
        let headed = share(64 << 20, bytes + 16) * bytes as f64 / (bytes + 16) as f64;
        println!("| {bytes:8} | {bare:4.1} | {headed:14.1} |");
        assert!(bare >= bare_aim && headed >= aim, "{bytes} B: {bare:.1} %, with a header {headed:.1} %");
    }
}

/// Runs grow with what they hold, so that one object of a size takes little of a small pool.
#[test]
fn one_object_of_each_size_fits_into_a_small_pool() {
    let pool = create(4 << 20);
    for power in 4..=17 {
        for more in [0, 16] {
            let mut tx = pool.begin().unwrap();
            tx.publish(pool.reserve((1 << power) + more).unwrap(), false);
            tx.commit(&pool).unwrap();
        }
    }
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Map {
    map: PBTreeMap<u64, u64>,
}

/// Bytes of keys and values that a map holds when its pool is full, in percent.
fn filled(pool_bytes: u64, key: impl Fn(u64) -> u64) -> f64 {
    let pool = create(pool_bytes);
    let map = pool.tx(|tx| tx.root_or_zeroed::<Map>()).unwrap().map();
    let mut count = 0;
    loop {
        match pool.tx(|tx| map.insert(tx, &key(count), count)) {
            Ok(_) => count += 1,
            Err(Error::Full { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(pool.read(|from| map.len(from)).unwrap(), count);
    100.0 * (16 * count) as f64 / pool_bytes as f64
}

#[test]
fn a_map_with_rising_or_falling_keys_fills_its_nodes() {
    println!("|  pool | rising | falling | scattered |");
    println!("|------:|-------:|--------:|----------:|");
    for (mib, aim) in [(1, 60.0), (8, 65.0)] {
        let rising = filled(mib << 20, |n| n);
        let falling = filled(mib << 20, |n| !n);
        let scattered = filled(mib << 20, |n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        println!("| {mib:1} MiB | {rising:6.1} | {falling:7.1} | {scattered:9.1} |");
        let shares = format!("{mib} MiB: {rising:.1} %, falling {falling:.1} %, scattered {scattered:.1} %");
        assert!(rising >= aim && falling >= aim && scattered >= 40.0, "{shares}");
    }
}
