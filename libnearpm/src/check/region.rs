//! Regions of GPUs: `nearpm_interface::region`. What kernels keep in them is looked at as far as it
//! is sealed, and hash tables slot by slot.

use nearpm_interface::geometry::{LINE, LINE_U64};
use nearpm_interface::media::{DirectoryEntry, DirectoryHead};
use nearpm_interface::region::{
    BatchState, CHECKPOINT_MAGIC, CHECKPOINT_SLOTS, CheckpointHead, OBJECT_GROWTH, OBJECT_MAGIC, OBJECT_WORD,
    ObjectHead, ObjectKind, REGION_DIRECTORY, REGION_DIRECTORY_COPIES, REGION_DIRECTORY_COPY_BYTES,
    REGION_DIRECTORY_MAGIC, REGION_MAGIC, REGION_OBJECTS, REGION_VERSION, RegionHead, open_batch_word,
    open_growth_word,
};
use nearpm_interface::seal;

use super::{Class, Found, Report, hash_table, one_bit};
use crate::error::Problem;
use crate::memory::Medium;

/// An object of a region.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionObject {
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: &'static str,
    /// Offset in the region.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// What its head and word say, in words.
    pub state: String,
}

/// A region as its head and directory describe it.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegionInfo {
    /// Version of the format.
    pub version: u32,
    /// Identifier.
    pub id: u32,
    /// Bytes of the region.
    pub bytes: u64,
    /// Its objects, rising.
    pub objects: Vec<RegionObject>,
}

/// Whether it is a region, by its magic number: or by its seal, where one bit of that is wrong.
pub(super) fn is_one(medium: &Medium) -> bool {
    if medium.bytes() < LINE_U64 {
        return false;
    }
    let line = line_at(medium, 0);
    let magic = |line: &[u8; LINE]| RegionHead::from_bytes(line).magic == REGION_MAGIC;
    let close = (RegionHead::from_bytes(&line).magic ^ REGION_MAGIC).count_ones() <= 1;
    magic(&line) || close && one_bit::sealed_line(&line).is_some_and(|mended| magic(&mended))
}

fn line_at(medium: &Medium, offset: u64) -> [u8; LINE] {
    let mut line = [0; LINE];
    medium.load(offset, &mut line);
    line
}

/// The head, or why it is none.
fn head(medium: &Medium) -> Result<RegionHead, Problem> {
    let line = line_at(medium, 0);
    let head = RegionHead::from_bytes(&line);
    if head.magic == REGION_MAGIC && head.version > REGION_VERSION {
        return Err(Problem::Newer { found: head.version, supported: REGION_VERSION });
    }
    if !seal::is_sealed(&[], &line) {
        return Err(Problem::Corrupt { what: Class::HeadSeal.what(), offset: 0 });
    }
    let found = medium.bytes();
    if found < head.bytes {
        return Err(Problem::Truncated { header: head.bytes, found });
    }
    let sound = head.magic == REGION_MAGIC && head.id != 0;
    if sound { Ok(head) } else { Err(Problem::Corrupt { what: Class::HeadShape.what(), offset: 0 }) }
}

/// One copy of the directory.
enum Copy {
    Valid(u64, Vec<DirectoryEntry>),
    /// A change was interrupted, or there was none yet.
    Blank,
    /// With what belongs there, where that is known.
    Bad(Option<Vec<u8>>),
}

fn directory_offset(copy: u64) -> u64 {
    REGION_DIRECTORY + copy * REGION_DIRECTORY_COPY_BYTES
}

fn read_copy(medium: &Medium, bytes: u64, copy: u64) -> Copy {
    let start = directory_offset(copy);
    let line = line_at(medium, start);
    if line[..8].iter().all(|&byte| byte == 0) {
        return Copy::Blank;
    }
    let head = DirectoryHead::from_bytes(&line);
    let entries = usize::from(head.entries);
    if entries <= REGION_OBJECTS {
        let body = medium.load_vec(start + LINE_U64, (entries * LINE) as u64);
        if head.magic == REGION_DIRECTORY_MAGIC && seal::is_sealed(&body, &line) {
            let objects: Vec<DirectoryEntry> =
                body.as_chunks::<LINE>().0.iter().map(DirectoryEntry::from_bytes).collect();
            let inside =
                |object: &DirectoryEntry| object.base.checked_add(object.bytes).is_some_and(|end| end <= bytes);
            let sound = objects.iter().all(|object| ObjectKind::from_code(object.pool).is_some() && inside(object));
            return if sound { Copy::Valid(head.generation, objects) } else { Copy::Bad(None) };
        }
    }
    Copy::Bad(mended(medium, start, |line| {
        let head = DirectoryHead::from_bytes(line);
        (head.magic == REGION_DIRECTORY_MAGIC && usize::from(head.entries) <= REGION_OBJECTS)
            .then_some(usize::from(head.entries))
    }))
}

/// Head line and body at an offset with one bit changed so that they are sealed. `lines` gives the
/// body's lines of a head that may be one.
fn mended(medium: &Medium, start: u64, lines: impl Fn(&[u8; LINE]) -> Option<usize>) -> Option<Vec<u8>> {
    let line = line_at(medium, start);
    // In the head, whose number of lines may be what is wrong.
    for bit in 0..LINE * 8 {
        let mut changed = line;
        changed[bit / 8] ^= 1 << (bit % 8);
        if let Some(count) = lines(&changed)
            && seal::is_sealed(&medium.load_vec(start + LINE_U64, (count * LINE) as u64), &changed)
        {
            return Some(changed.to_vec());
        }
    }
    let mut body = medium.load_vec(start + LINE_U64, (lines(&line)? * LINE) as u64);
    for bit in 0..body.len() * 8 {
        body[bit / 8] ^= 1 << (bit % 8);
        if seal::is_sealed(&body, &line) {
            return Some([&line[..], &body].concat());
        }
        body[bit / 8] ^= 1 << (bit % 8);
    }
    None
}

/// The objects of the copy that counts.
fn objects(medium: &Medium, bytes: u64) -> Option<Vec<DirectoryEntry>> {
    let copies = (0..REGION_DIRECTORY_COPIES).filter_map(|copy| match read_copy(medium, bytes, copy) {
        Copy::Valid(generation, objects) => Some((generation, objects)),
        _ => None,
    });
    copies.max_by_key(|(generation, _)| *generation).map(|(_, objects)| objects)
}

fn name_of(entry: &DirectoryEntry) -> String {
    let length = entry.name.iter().position(|&byte| byte == 0).unwrap_or(entry.name.len());
    String::from_utf8_lossy(&entry.name[..length]).into_owned()
}

/// Everything that is wrong with a region.
pub(super) fn examine(medium: &Medium) -> (Vec<Found>, Report) {
    let mut report = Report::default();
    let head = match head(medium) {
        Ok(head) => head,
        Err(problem) => return (vec![wrong_head(medium, &problem)], report),
    };
    let mut found = Vec::new();
    for copy in 0..REGION_DIRECTORY_COPIES {
        if let Copy::Bad(mended) = read_copy(medium, head.bytes, copy) {
            let one = Found::new(Class::RegionDirectory, directory_offset(copy));
            found.push(match mended {
                Some(bytes) => one.mend(bytes),
                None => one,
            });
        }
    }
    // An older copy does not know what a damaged newer one has.
    if !found.is_empty() {
        return (found, report);
    }
    report.judged_heap = true;
    match objects(medium, head.bytes) {
        Some(objects) => objects.iter().for_each(|object| examine_object(medium, object, &mut found)),
        None => found.push(Found::new(Class::RegionDirectory, REGION_DIRECTORY)),
    }
    (found, report)
}

fn wrong_head(medium: &Medium, problem: &Problem) -> Found {
    let class = match problem {
        Problem::Newer { .. } => Class::HeadVersion,
        Problem::Truncated { .. } => Class::FileShort,
        Problem::Corrupt { what, .. } => Class::of(what).unwrap_or(Class::HeadShape),
        _ => Class::HeadShape,
    };
    let found = Found::new(class, 0);
    let line = line_at(medium, 0);
    match one_bit::sealed_line(&line) {
        Some(mended) if !seal::is_sealed(&[], &line) => found.mend(mended.to_vec()),
        _ => found,
    }
}

fn examine_object(medium: &Medium, object: &DirectoryEntry, found: &mut Vec<Found>) {
    let Some(kind) = ObjectKind::from_code(object.pool) else { return };
    if !kind.has_head() {
        return;
    }
    let before = found.len();
    let line = line_at(medium, object.base);
    let head = ObjectHead::from_bytes(&line);
    let sound = head.magic == OBJECT_MAGIC && seal::is_sealed(&[], &line) && u32::from(head.kind) == object.pool;
    if !sound {
        let one = Found::new(Class::ObjectHead, object.base);
        found.push(match one_bit::sealed_line(&line) {
            Some(mended) if !seal::is_sealed(&[], &line) => one.mend(mended.to_vec()),
            _ => one,
        });
        return;
    }
    if kind.has_word() {
        let place = object.base + OBJECT_WORD;
        let word = medium.load_word(place);
        let accept = |id: u64| kind != ObjectKind::Batch || open_batch_word(id).is_some();
        if !seal::open_word(word).is_some_and(accept) {
            found.push(Found::new(Class::ObjectWord, place).mend_word(one_bit::sealed_word(word, accept)));
        }
    }
    if kind.is_table() {
        let place = object.base + OBJECT_GROWTH;
        let word = medium.load_word(place);
        let accept = |id: u64| open_growth_word(id).is_some();
        if word != 0 && !seal::open_word(word).is_some_and(accept) {
            found.push(Found::new(Class::ObjectWord, place).mend_word(one_bit::sealed_word(word, accept)));
        }
        // What its slots mean depends on these words.
        if found.len() == before {
            hash_table::examine(medium, object, &head, found);
        }
    }
    if kind == ObjectKind::Checkpoint {
        slots(object, &head).for_each(|(place, _)| found.extend(examine_slot(medium, place, &head)));
    }
}

/// Offsets in the region of the slots of checkpoints, with their groups.
fn slots(object: &DirectoryEntry, head: &ObjectHead) -> impl Iterator<Item = (u64, u32)> {
    let (start, stride, end) = (object.base + head.data, head.stride, object.base + object.bytes);
    let all = 0..u64::from(head.blocks) * CHECKPOINT_SLOTS;
    all.map_while(move |slot| {
        let place = start.checked_add(slot.checked_mul(stride)?)?;
        (place.checked_add(stride)? <= end).then_some((place, (slot / CHECKPOINT_SLOTS) as u32))
    })
}

/// A slot is blank while a checkpoint is being taken.
fn examine_slot(medium: &Medium, place: u64, head: &ObjectHead) -> Option<Found> {
    let line = line_at(medium, place);
    if line[..8].iter().all(|&byte| byte == 0) {
        return None;
    }
    let lines = |line: &[u8; LINE]| {
        let slot = CheckpointHead::from_bytes(line);
        (slot.magic == CHECKPOINT_MAGIC && slot.elements <= head.threads).then_some(slot.elements as usize)
    };
    let sealed = lines(&line)
        .is_some_and(|count| seal::is_sealed(&medium.load_vec(place + LINE_U64, (count * LINE) as u64), &line));
    if sealed {
        return None;
    }
    let one = Found::new(Class::CheckpointSlot, place);
    Some(match mended(medium, place, lines) {
        Some(bytes) => one.mend(bytes),
        None => one,
    })
}

/// What the region is.
pub(super) fn info(medium: &Medium) -> Result<RegionInfo, Problem> {
    let head = head(medium)?;
    let entries = objects(medium, head.bytes)
        .ok_or(Problem::Corrupt { what: Class::RegionDirectory.what(), offset: REGION_DIRECTORY })?;
    let objects = entries.iter().filter_map(|entry| {
        let kind = ObjectKind::from_code(entry.pool)?;
        let state = state_of(medium, entry, kind);
        Some(RegionObject { name: name_of(entry), kind: kind.name(), offset: entry.base, bytes: entry.bytes, state })
    });
    Ok(RegionInfo { version: head.version, id: head.id, bytes: head.bytes, objects: objects.collect() })
}

/// What an object's head and word say.
fn state_of(medium: &Medium, entry: &DirectoryEntry, kind: ObjectKind) -> String {
    let head = ObjectHead::from_bytes(&line_at(medium, entry.base));
    let word = seal::open_word(medium.load_word(entry.base + OBJECT_WORD));
    let generation = || word.map_or("damaged word".to_owned(), |id| format!("generation {id}"));
    match kind {
        ObjectKind::Data => String::new(),
        ObjectKind::SealedLog | ObjectKind::TailLog => format!(
            "{} blocks of {} threads, {} entries of {} bytes a thread, {}",
            head.blocks,
            head.threads,
            head.depth,
            4 * u64::from(head.words),
            generation()
        ),
        ObjectKind::ConventionalLog => {
            format!("{} partitions of {} bytes, {}", head.blocks, 4 * u64::from(head.depth), generation())
        }
        ObjectKind::Batch => match word.and_then(open_batch_word) {
            Some((generation, BatchState::Idle)) => format!("batch {generation} was committed or undone"),
            Some((generation, BatchState::Active)) => format!("batch {generation} is active: opening undoes it"),
            None => "damaged word".to_owned(),
        },
        ObjectKind::LevelHash | ObjectKind::TagHash => {
            let [width, hashes, levels, growths] = head.threads.to_le_bytes();
            let grown = seal::open_word(medium.load_word(entry.base + OBJECT_GROWTH)).and_then(open_growth_word);
            let grown = match (grown, kind) {
                (None, _) => format!("has not grown, can double {growths} times"),
                (Some((windows, _)), ObjectKind::TagHash) => {
                    format!("{windows} windows of {} in use", u64::from(head.depth) << growths)
                }
                (Some((times, _)), _) => format!("has grown {times} times of {growths}"),
            };
            format!(
                "{} buckets of {width} slots, {hashes} a key in each of {levels} levels, values of {} bytes, {grown}",
                head.blocks,
                4 * u64::from(head.words)
            )
        }
        ObjectKind::Checkpoint => {
            let newest = slots(entry, &head).map(|(place, group)| {
                let slot = CheckpointHead::from_bytes(&line_at(medium, place));
                (group, if slot.magic == CHECKPOINT_MAGIC { slot.sequence } else { 0 })
            });
            let mut groups = std::collections::BTreeMap::new();
            newest.for_each(|(group, sequence)| {
                let so_far = groups.entry(group).or_insert(0);
                *so_far = sequence.max(*so_far);
            });
            let said = groups.iter().map(|(group, sequence)| format!("group {group}: checkpoint {sequence}"));
            said.collect::<Vec<_>>().join(", ")
        }
    }
}
