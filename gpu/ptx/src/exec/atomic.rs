//! `atom` and `red`: the lanes one after another, in their order.

use super::place::{Common, Place};
use super::{Executed, Turn, lanes};
use crate::Access;
use crate::Persistence;
use crate::code::{Atomic, AtomicOp};
use crate::counting::count_atomic;
use crate::lanes::{Lanes, WARP};
use crate::memory::Kind;

impl Turn<'_> {
    pub(super) fn atomic(&mut self, atomic: &Atomic, exec: u32, line: u32) -> Executed {
        let addresses = self.addresses(&atomic.at);
        let bytes = u64::from(atomic.bytes);
        let (a, b) = (*self.source(atomic.a), *self.source(atomic.b));
        if self.tracker.is_none()
            && let Some(persistent) = self.atomic_together(atomic, exec, &addresses, [&a, &b])
        {
            self.updated(persistent, &addresses);
            return Ok(());
        }
        let mut persistent = 0;
        for lane in lanes(exec) {
            let place = self.place(atomic.at.space, lane, addresses[lane], bytes, Access::Atomic)?;
            let is_persistent =
                matches!(place, Place::Memory(index, _) if self.memory.region(index).kind == Kind::Persistent);
            persistent |= u32::from(is_persistent) << lane;
            if self.tracker.is_some() {
                let mask = 1 << lane;
                let seen = if is_persistent { mask } else { 0 };
                self.observe(atomic.at.space, atomic.order, mask, seen, &addresses, bytes);
                self.release(atomic.at.space, atomic.order, lane, addresses[lane], true);
            }
            let old = self.read_place(place, 0, atomic.bytes);
            let new = apply(atomic, old, a[lane], b[lane]);
            if is_persistent && self.tracker.is_some() {
                self.pend(lane, addresses[lane], atomic.bytes, new, line);
            }
            self.write_place(place, 0, atomic.bytes, new);
            if let Some(to) = atomic.to {
                self.warp.registers[to as usize][lane] = old;
            }
        }
        self.updated(persistent, &addresses);
        Ok(())
    }

    /// The same where nobody follows what persists, and all lanes' places lie in one region: it is
    /// looked up and checked once. Gives the lanes that changed persistent memory; None where it is
    /// to be done lane by lane.
    fn atomic_together(&mut self, atomic: &Atomic, exec: u32, addresses: &Lanes, from: [&Lanes; 2]) -> Option<u32> {
        let found = self.common(atomic.at.space, addresses, exec, u64::from(atomic.bytes))?;
        let (data, base, persistent) = match found {
            Common::Memory(index) => {
                let region = self.memory.region_mut(index);
                if region.kind == Kind::Constant {
                    return None;
                }
                (&mut region.data[..], region.base, region.kind == Kind::Persistent)
            }
            Common::Shared => (&mut self.block.shared[..], 0, false),
        };
        let mut old = [0; WARP];
        match atomic.bytes {
            8 => update::<8>(data, base, addresses, exec, &mut old, |lane, old| {
                apply(atomic, old, from[0][lane], from[1][lane])
            }),
            4 => update::<4>(data, base, addresses, exec, &mut old, |lane, old| {
                apply(atomic, old, from[0][lane], from[1][lane])
            }),
            _ => return None,
        }
        if let Some(to) = atomic.to {
            let register = &mut self.warp.registers[to as usize];
            lanes(exec).for_each(|lane| register[lane] = old[lane]);
        }
        Some(if persistent { exec } else { 0 })
    }

    /// What atomics on persistent memory count for.
    fn updated(&mut self, persistent: u32, addresses: &Lanes) {
        if persistent != 0 && self.persistence != Persistence::Off {
            count_atomic(self.counts, self.translation, addresses, persistent);
            self.persist_event();
        }
    }
}

/// Each lane's word of N bytes gives way to what is made of it; `old` has what it was. All are in
/// bounds.
#[inline(always)]
fn update<const N: usize>(
    data: &mut [u8],
    base: u64,
    addresses: &Lanes,
    exec: u32,
    old: &mut Lanes,
    new: impl Fn(usize, u64) -> u64,
) {
    for lane in lanes(exec) {
        let offset = addresses[lane].wrapping_sub(base) as usize;
        let Some(place) = data.get_mut(offset..).and_then(|rest| rest.first_chunk_mut::<N>()) else { continue };
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(place);
        old[lane] = u64::from_le_bytes(bytes);
        place.copy_from_slice(&new(lane, old[lane]).to_le_bytes()[..N]);
    }
}

/// The value that an atomic stores.
fn apply(atomic: &Atomic, old: u64, a: u64, b: u64) -> u64 {
    if atomic.float {
        return match atomic.bytes {
            4 => u64::from((f32::from_bits(old as u32) + f32::from_bits(a as u32)).to_bits()),
            _ => (f64::from_bits(old) + f64::from_bits(a)).to_bits(),
        };
    }
    let mask = u64::MAX >> (64 - 8 * u32::from(atomic.bytes));
    let (old, a, b) = (old & mask, a & mask, b & mask);
    (match atomic.op {
        AtomicOp::Exchange => a,
        AtomicOp::CompareAndSwap => {
            if old == a {
                b
            } else {
                old
            }
        }
        AtomicOp::Increment if old >= a => 0,
        AtomicOp::Increment => old + 1,
        AtomicOp::Decrement if old == 0 || old > a => a,
        AtomicOp::Decrement => old - 1,
        op => combine(op, atomic.signed, 8 * u32::from(atomic.bytes), old, a),
    }) & mask
}

/// `add min max and or xor` of two values of `bits` bits.
pub(super) fn combine(op: AtomicOp, signed: bool, bits: u32, x: u64, y: u64) -> u64 {
    let signed_value = |value: u64| ((value << (64 - bits)) as i64) >> (64 - bits);
    let smaller = if signed { signed_value(x) <= signed_value(y) } else { x <= y };
    match op {
        AtomicOp::Add => x.wrapping_add(y),
        AtomicOp::And => x & y,
        AtomicOp::Or => x | y,
        AtomicOp::Xor => x ^ y,
        AtomicOp::Min if smaller => x,
        AtomicOp::Max if !smaller => x,
        _ => y,
    }
}
