//! Pools as they lie on the medium: laying one out, writing it, and refusing what is not one.

use nearpm_interface::geometry::{LINE, MAX_DEVICES};
use nearpm_interface::media::{
    HEAP_CHUNK_WORDS, MAX_LANES, MAX_RING_BYTES, MEMBER_VERSION, MIN_RING_BYTES, MIN_STRIPE_BYTES, PAGE_BYTES,
    POOL_GROWN, POOL_MAGIC, POOL_NEXT_HEAD, POOL_OPENED, POOL_VERSION, PoolHead, RING_HEAD_BYTES, SEALED_VERSION,
    SPAN_VERSION,
};
use nearpm_interface::record::{POOL_APPLIED, POOL_USE};
use nearpm_interface::seal;

use crate::damage::Class;
use crate::error::{Error, Problem};
use crate::heap::HeapLayout;
use crate::memory::Medium;
use crate::options::Options;
use crate::random::random_id;

/// Fewest pages of a heap: its tables and four chunks.
const MIN_PAGES: u64 = 20;

/// More than any medium has; keeps the arithmetic of offsets inside 64 bits, and offsets inside of
/// sealed words.
const MAX_BYTES: u64 = 1 << 48;

/// What a head says about its pool.
pub(crate) fn describe(head: &PoolHead) -> String {
    match head.members {
        0 => "a pool of its own".to_owned(),
        members => format!("member {} of {members} of the striped pool {:#010x}", head.member, head.pool),
    }
}

/// The head of a new pool of `bytes` bytes.
pub(crate) fn layout(options: &Options, bytes: u64) -> Result<PoolHead, Problem> {
    layout_pages(options, bytes, 1)
}

/// The head of the first member of a new striped pool, each member of which has `bytes` bytes.
pub(crate) fn layout_striped(options: &Options, bytes: u64, members: usize) -> Result<PoolHead, Problem> {
    let stripe = options.stripe_bytes.unwrap_or(MIN_STRIPE_BYTES);
    if stripe < MIN_STRIPE_BYTES || !stripe.is_power_of_two() {
        let what = "a stripe has 2 MiB or a larger power of two (Options::stripe_bytes)";
        return Err(Problem::BadOption { what });
    }
    let head = layout_pages(options, bytes, u64::from(stripe) / PAGE_BYTES)?;
    Ok(PoolHead { version: MEMBER_VERSION, members: members as u8, stripe, ..head })
}

/// The head of a new pool, whose heap has whole `unit`s of pages.
fn layout_pages(options: &Options, bytes: u64, unit: u64) -> Result<PoolHead, Problem> {
    let lanes = options.lanes.unwrap_or(match bytes {
        0..0x40_0000 => 2,
        0x40_0000..0x100_0000 => 4,
        _ => 8,
    });
    if lanes == 0 || lanes > MAX_LANES {
        return Err(Problem::BadOption { what: "a pool has 1 to 64 lanes (Options::lanes)" });
    }
    // A quarter of the pool for logs, unless that is more than they need.
    let ring_default = (bytes / 4 / u64::from(lanes)).clamp(MIN_RING_BYTES.into(), 1 << 20) as u32;
    let ring_bytes = options.ring_bytes.unwrap_or(ring_default / PAGE_BYTES as u32 * PAGE_BYTES as u32);
    if u64::from(ring_bytes) % PAGE_BYTES != 0 || !(MIN_RING_BYTES..=MAX_RING_BYTES).contains(&ring_bytes) {
        return Err(Problem::BadOption {
            what: "a log ring has 16 KiB to 64 MiB in whole 4 KiB pages (Options::ring_bytes)",
        });
    }
    check_bytes(bytes)?;
    if options.spare_pages.is_some_and(|pages| pages > MAX_BYTES / PAGE_BYTES) {
        return Err(Problem::BadOption { what: "no medium has so many spare pages (Options::spare_pages)" });
    }
    let mut head =
        PoolHead { magic: POOL_MAGIC, version: POOL_VERSION, bytes, ring_bytes, lanes, ..PoolHead::default() };
    let set_units = |head: &mut PoolHead, units: u64| {
        head.pages = units * unit;
        head.spare = options.spare_pages.unwrap_or_else(|| (head.pages / 8).max(MIN_PAGES / 2));
    };
    let fewest = MIN_PAGES.div_ceil(unit);
    set_units(&mut head, fewest);
    if options.ring_bytes.is_none() && head.end() > bytes {
        head.ring_bytes = MIN_RING_BYTES;
    }
    if head.end() > bytes {
        return Err(Problem::TooSmall { bytes, minimum: head.end() });
    }
    // The end rises with the pages: the largest number that fits is found by halving.
    let (mut fits, mut too_many) = (fewest, bytes / (PAGE_BYTES * unit) + 1);
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        set_units(&mut head, middle);
        if head.end() <= bytes { fits = middle } else { too_many = middle }
    }
    set_units(&mut head, fits);
    head.pool = options.id.unwrap_or_else(random_id);
    if head.pool == 0 {
        return Err(Problem::BadOption { what: "0 is not an identifier of a pool (Options::id)" });
    }
    Ok(head)
}

/// Refuses sizes that no medium has.
pub(crate) fn check_bytes(bytes: u64) -> Result<(), Problem> {
    if bytes > MAX_BYTES { Err(Problem::NoSpace { needed: bytes }) } else { Ok(()) }
}

/// Writes a new pool: everything that is read before it is written is zeroed, and the head comes
/// last.
pub(crate) fn write(medium: &Medium, head: PoolHead) -> Result<PoolHead, Error> {
    prepare(medium, &head)?;
    put_head(medium, head)
}

/// Writes a new pool but for its head, without which it is none: [`put_head`] is to follow.
pub(crate) fn prepare(medium: &Medium, head: &PoolHead) -> Result<(), Error> {
    blank(medium)?;
    clear(medium, head);
    // Root, chunk words and bitmaps.
    medium.put_zeros(head.heap(), HeapLayout::of(head).first - head.heap());
    const { assert!(HEAP_CHUNK_WORDS as usize == LINE) };
    medium.drain()
}

/// Makes what is there no pool any more, durably.
pub(crate) fn blank(medium: &Medium) -> Result<(), Error> {
    let old = medium.load_vec(0, LINE as u64);
    if old.iter().any(|&b| b != 0) {
        medium.put_zeros(0, LINE as u64);
        medium.drain()?;
    }
    Ok(())
}

/// Zeroes what is read before it is written, the heap's tables excepted.
pub(crate) fn clear(medium: &Medium, head: &PoolHead) {
    medium.put_zeros(POOL_OPENED, 8);
    for lane in 0..head.lanes {
        medium.put_zeros(head.ring(lane), RING_HEAD_BYTES);
    }
    // All three words, which are neighbours.
    medium.put(POOL_APPLIED, &[0; (POOL_USE - POOL_APPLIED) as usize + 8]);
    if head.version >= SEALED_VERSION {
        // Others do not grow.
        medium.put_word(POOL_GROWN, 0);
        medium.put_zeros(POOL_NEXT_HEAD, LINE as u64);
    }
    medium.put_zeros(head.table(), head.pages * 8);
}

/// Writes the head, sealed, which makes it a pool.
pub(crate) fn put_head(medium: &Medium, head: PoolHead) -> Result<PoolHead, Error> {
    let line = line_of(&head);
    medium.put(0, &line);
    medium.drain()?;
    Ok(PoolHead::from_bytes(&line))
}

/// The first line of a pool.
pub(crate) fn line_of(head: &PoolHead) -> [u8; LINE] {
    let mut line = PoolHead { crc: 0, ..head.with_grown(0) }.to_bytes();
    seal::seal(&[], &mut line);
    line
}

/// The word that says how far a pool has grown.
pub(crate) fn grown_word(head: &PoolHead) -> u64 {
    if head.grown() == 0 { 0 } else { seal::seal_word(head.grown() / PAGE_BYTES) }
}

/// Reads and checks the head of a pool that is not striped.
pub(crate) fn read(medium: &Medium) -> Result<PoolHead, Problem> {
    let head = read_any(medium)?;
    if head.members == 0 { Ok(head) } else { Err(Problem::MemberAlone { found: describe(&head) }) }
}

/// Reads and checks the head of a pool, or of a member of one.
pub(crate) fn read_any(medium: &Medium) -> Result<PoolHead, Problem> {
    let found = medium.bytes();
    if found < LINE as u64 {
        let mut start = [0; 8];
        let length = found.min(8) as usize;
        medium.load(0, &mut start[..length]);
        return Err(match start {
            [0, ..] => Problem::Unfinished,
            _ if POOL_MAGIC.to_le_bytes().starts_with(&start[..length]) => {
                Problem::Truncated { header: LINE as u64, found }
            }
            other => Problem::Foreign { found: u64::from_le_bytes(other) },
        });
    }
    let mut line = [0; LINE];
    medium.load(0, &mut line);
    let head = match parse(&line, found) {
        // A new version of the head was about to be written over it. Libraries that know of none
        // leave there what another pool may have written.
        Err(problem @ Problem::Corrupt { .. }) => {
            let torn = PoolHead::from_bytes(&line);
            medium.load(POOL_NEXT_HEAD.min(found - LINE as u64), &mut line);
            parse(&line, found).ok().filter(|next| next.pool == torn.pool).ok_or(problem)?
        }
        done => done?,
    };
    with_growth(medium, head)
}

/// The head, with how far the pool has grown since.
fn with_growth(medium: &Medium, head: PoolHead) -> Result<PoolHead, Problem> {
    if head.version != SPAN_VERSION {
        return Ok(head);
    }
    let (word, found) = (medium.load_word(POOL_GROWN), medium.bytes());
    if word == 0 {
        return Ok(head);
    }
    let end = seal::open_word(word).and_then(|pages| pages.checked_mul(PAGE_BYTES));
    // What its last chunk leaves over is no part of it.
    let sound = |&end: &u64| {
        end <= MAX_BYTES && HeapLayout::of(&head).grown_to(end).is_some_and(|layout| layout.range().end == end)
    };
    let Some(end) = end.filter(sound) else {
        return Err(Problem::Corrupt { what: Class::GrownWord.what(), offset: POOL_GROWN });
    };
    if found < end {
        return Err(Problem::Truncated { header: end, found });
    }
    Ok(head.with_grown(end))
}

/// Checks the head of a pool that has `found` bytes.
pub(crate) fn parse(line: &[u8; LINE], found: u64) -> Result<PoolHead, Problem> {
    let head = PoolHead::from_bytes(line);
    if line.iter().all(|&b| b == 0) {
        return Err(Problem::Unfinished);
    }
    if head.magic != POOL_MAGIC {
        return Err(Problem::Foreign { found: head.magic });
    }
    // The version first: a newer one may be sealed in another way.
    if head.version > SPAN_VERSION {
        return Err(Problem::Newer { found: head.version, supported: SPAN_VERSION });
    }
    let corrupt = |what, offset| Problem::Corrupt { what, offset };
    if !seal::is_sealed(&[], line) {
        return Err(corrupt(Class::HeadSeal.what(), 0));
    }
    if found < head.bytes {
        return Err(Problem::Truncated { header: head.bytes, found });
    }
    let of_set = match head.version {
        POOL_VERSION | SEALED_VERSION | SPAN_VERSION => (head.member, head.members, head.stripe) == (0, 0, 0),
        MEMBER_VERSION => {
            (2..=MAX_DEVICES).contains(&head.members.into())
                && head.member < head.members
                && head.stripe >= MIN_STRIPE_BYTES
                && head.stripe.is_power_of_two()
                && (head.pages * PAGE_BYTES).is_multiple_of(head.stripe.into())
        }
        _ => false,
    };
    let sound = of_set
        && head.pool != 0
        && (1..=MAX_LANES).contains(&head.lanes)
        && (MIN_RING_BYTES..=MAX_RING_BYTES).contains(&head.ring_bytes)
        && u64::from(head.ring_bytes) % PAGE_BYTES == 0
        && head.pages >= MIN_PAGES
        && head.pages < 1 << 40
        && head.spare < 1 << 40
        && head.end() <= head.bytes;
    // How far it has grown stands elsewhere, whatever the line says.
    if sound { Ok(head.with_grown(0)) } else { Err(corrupt(Class::HeadShape.what(), 0)) }
}
