//! Where the parts of a log lie.

use nearpm_gpu::{Object, ObjectKind, PmRegion};
use nearpm_interface::geometry::LINE;
use nearpm_interface::region::{OBJECT_ALIGNMENT, OBJECT_MAGIC, OBJECT_VERSION, ObjectHead};
use nearpm_interface::seal;

use crate::error::{Error, Result};

/// Lanes of a warp: words of a stripe.
pub(super) const WARP: u32 = 32;
/// Bytes of a stripe: a word of each lane.
pub(super) const STRIPE: u64 = 128;
/// A tail is {generation 16 bit, entries 16 bit}.
pub(super) const GENERATIONS_OF_A_TAIL: u32 = 1 << 16;
pub(super) const MAX_DEPTH_OF_A_TAIL: u32 = 0xffff;
/// Largest entry of a hierarchical log, in words: kernels keep one in registers.
const MAX_WORDS: u64 = 64;

/// The shape of launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks.
    pub blocks: u32,
    /// Threads a block.
    pub threads: u32,
}

/// How entries of a hierarchical log are known to be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// By a seal in each: one fence an insert.
    Sealed,
    /// By a tail a thread: two fences an insert.
    Tail,
}

/// The head of a hierarchical log.
pub(super) fn hierarchical(shape: Shape, entry_bytes: u64, depth: u32, form: Form) -> Result<ObjectHead> {
    let invalid = |rule: String| Err(Error::Invalid(rule));
    if shape.blocks == 0 || !(1..=1024).contains(&shape.threads) {
        return invalid(format!("{shape:?} is no launch: it has at least 1 block, of 1 to 1024 threads"));
    }
    if !entry_bytes.is_multiple_of(4) || !(1..=MAX_WORDS).contains(&(entry_bytes / 4)) {
        let most = 4 * MAX_WORDS;
        return invalid(format!(
            "an entry has 4 to {most} bytes, in words of 4, not {entry_bytes}: log in parts, or take a checkpoint"
        ));
    }
    if depth == 0 || form == Form::Tail && depth > MAX_DEPTH_OF_A_TAIL {
        return invalid(format!(
            "a thread has at least 1 entry, with tails at most {MAX_DEPTH_OF_A_TAIL}, not {depth}"
        ));
    }
    let warps = u64::from(shape.blocks) * u64::from(shape.threads.div_ceil(WARP));
    if warps * u64::from(WARP) > u64::from(u32::MAX) {
        return invalid(format!("{shape:?} has more than 2^32 threads"));
    }
    let words = (entry_bytes / 4) as u32;
    let (kind, stripes, tails) = match form {
        Form::Sealed => (ObjectKind::SealedLog, u64::from(words) + 1, 0),
        Form::Tail => (ObjectKind::TailLog, u64::from(words), warps * STRIPE),
    };
    let data_bytes = warps * u64::from(depth) * stripes * STRIPE;
    Ok(ObjectHead {
        kind: kind as u16,
        blocks: shape.blocks,
        threads: shape.threads,
        words,
        depth,
        tails: OBJECT_ALIGNMENT,
        data: OBJECT_ALIGNMENT + tails.next_multiple_of(OBJECT_ALIGNMENT),
        data_bytes,
        ..ObjectHead::default()
    })
}

/// The head of a conventional log.
pub(super) fn conventional(partitions: u32, bytes: u64) -> Result<ObjectHead> {
    let invalid = |rule: String| Err(Error::Invalid(rule));
    if partitions == 0 {
        return invalid("a conventional log has at least 1 partition".to_owned());
    }
    let room = (bytes / u64::from(partitions)).next_multiple_of(STRIPE);
    if bytes < 4 * u64::from(partitions) || room / 4 > u64::from(u32::MAX) {
        return invalid(format!(
            "{bytes} bytes are too few or too many for {partitions} partitions of 4 bytes to 16 GiB"
        ));
    }
    // A line for the tail, and one more where partitions would lie at distances of powers of two,
    // at which the GPU's requests all wait for one another.
    let mut stride = STRIPE + room;
    if (stride / STRIPE).is_multiple_of(2) {
        stride += STRIPE;
    }
    Ok(ObjectHead {
        kind: ObjectKind::ConventionalLog as u16,
        blocks: partitions,
        threads: 1,
        depth: (room / 4) as u32,
        stride,
        tails: OBJECT_ALIGNMENT,
        data: OBJECT_ALIGNMENT,
        data_bytes: u64::from(partitions) * stride,
        ..ObjectHead::default()
    })
}

/// What kernels call a kind.
pub(super) fn device_kind(kind: ObjectKind) -> u32 {
    match kind {
        ObjectKind::SealedLog => 1,
        ObjectKind::TailLog => 2,
        _ => 3,
    }
}

/// Threads in whole warps, or partitions.
pub(super) fn places(head: &ObjectHead) -> u32 {
    match ObjectKind::from_code(head.kind.into()) {
        Some(ObjectKind::ConventionalLog) => head.blocks,
        _ => head.blocks * head.threads.next_multiple_of(WARP),
    }
}

/// Stores an object's head, sealed.
/// Stores the head of an object that is being made; magic number, version and seal are put in.
///
/// # Errors
/// What the device refuses.
pub fn write_head(region: &PmRegion, object: &Object, head: &ObjectHead) -> std::result::Result<(), nearpm_gpu::Error> {
    let mut line = ObjectHead { magic: OBJECT_MAGIC, version: OBJECT_VERSION, ..*head }.to_bytes();
    seal::seal(&[], &mut line);
    region.write(object.offset, &line)
}

/// An object's head, checked against the directory.
///
/// # Errors
/// A head that does not hold.
pub fn read_head(region: &PmRegion, object: &Object) -> Result<ObjectHead> {
    let mut line = [0; LINE];
    region.read(object.offset, &mut line)?;
    let head = ObjectHead::from_bytes(&line);
    let corrupt =
        |what: &str| Err(region.corrupt(format!("the head of {:?} {what}", object.name), object.offset).into());
    if head.magic != OBJECT_MAGIC || !seal::is_sealed(&[], &line) {
        return corrupt("does not hold");
    }
    if head.version != OBJECT_VERSION {
        return corrupt(&format!("has version {}, this program knows {OBJECT_VERSION}", head.version));
    }
    let inside = head.data.checked_add(head.data_bytes).is_some_and(|end| end <= object.bytes);
    if u32::from(head.kind) != object.kind as u32 || !inside {
        return corrupt("contradicts the directory");
    }
    Ok(head)
}
