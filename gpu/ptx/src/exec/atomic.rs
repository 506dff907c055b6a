//! `atom` and `red`: the lanes one after another, in their order.

use super::place::Place;
use super::{Executed, Turn, lanes};
use crate::Access;
use crate::Persistence;
use crate::code::{Atomic, AtomicOp};
use crate::counting::count_atomic;
use crate::memory::Kind;

impl Turn<'_> {
    pub(super) fn atomic(&mut self, atomic: &Atomic, exec: u32, line: u32) -> Executed {
        let addresses = self.addresses(&atomic.at);
        let bytes = u64::from(atomic.bytes);
        let (a, b) = (*self.source(atomic.a), *self.source(atomic.b));
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
        if persistent != 0 && self.persistence != Persistence::Off {
            count_atomic(self.counts, self.translation, &addresses, persistent);
            self.persist_event();
        }
        Ok(())
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
