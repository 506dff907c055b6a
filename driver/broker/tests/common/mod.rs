//! A broker on the hostile card of the driver's tests.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nearpm_broker::Share;
use nearpm_driver::card::PoolMapping;
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::pci::Caching;
use nearpm_driver::{Card, CardOptions, vfio_user};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{COMMAND_PAGES, POOLS_BASE};

pub const TIMEOUT: Duration = Duration::from_secs(20);
pub const POOL_BYTES: u64 = 256 << 10;
pub const RING: u64 = 128 << 10;
pub const MEMORY: usize = 4 << 20;

/// A card and its broker, for as long as the process lives.
pub struct Shared {
    pub mock: MockCard,
    pub socket: PathBuf,
    _folder: tempfile::TempDir,
}

pub fn shared(options: MockOptions) -> Shared {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mock = MockCard::new(MockOptions { pm_bytes: MEMORY, ..options });
    let card = Arc::new(Card::open(Arc::new(mock.clone()), CardOptions::default()).unwrap());
    let share = Share::new(card).unwrap();
    let path = socket.clone();
    std::thread::spawn(move || share.serve(&path));
    let start = Instant::now();
    while !socket.exists() {
        assert!(start.elapsed() < TIMEOUT);
        std::thread::yield_now();
    }
    Shared { mock, socket, _folder: folder }
}

/// Comes to a broker.
pub fn connect(socket: &Path) -> Card {
    let function = vfio_user::open(socket, TIMEOUT).unwrap();
    let options = CardOptions { timeout_ns: TIMEOUT.as_nanos() as u64, ..CardOptions::default() };
    Card::open(Arc::new(function), options).unwrap()
}

impl Shared {
    pub fn connect(&self) -> Card {
        connect(&self.socket)
    }
}

/// A pool's only mapping; each place is one pool's.
pub fn mapping(pool: u32, place: u64) -> PoolMapping {
    PoolMapping {
        pool,
        thread: 0,
        base: POOLS_BASE + place * POOL_BYTES,
        bytes: POOL_BYTES,
        ring: RING,
        ring_bytes: 64 << 10,
        committed: 0,
    }
}

/// Where a pool lies.
pub fn range(mapping: &PoolMapping) -> Range<u64> {
    mapping.base..mapping.base + mapping.bytes
}

/// Claims the pool of a process that has gone; the broker may not have noticed that yet.
pub fn claim_after(card: &Card, mapping: &PoolMapping) {
    let start = Instant::now();
    while !card.claim_pool(mapping.pool, range(mapping)).unwrap() {
        assert!(start.elapsed() < TIMEOUT, "nobody gets the pool of a process that has gone");
    }
}

/// Copies a page in the pool of a process, and looks whether it is there.
pub fn works(card: &Card, mapping: &PoolMapping, byte: u8) {
    let window = card.window(range(mapping), Caching::Uncached).unwrap();
    window.store(0, &[byte; 4096]);
    let command = Command {
        opcode: Opcode::ShadowCopy as u8,
        pool: mapping.pool,
        thread: mapping.thread,
        destination: 8192,
        length: 4096,
        ..Command::default()
    };
    for page in 0..COMMAND_PAGES {
        let ticket = card.post(page, command, true).unwrap();
        card.read_back(ticket).unwrap();
        card.wait(ticket).unwrap();
    }
    let mut found = [0; 4096];
    window.load(8192, &mut found);
    assert_eq!(found, [byte; 4096]);
}
