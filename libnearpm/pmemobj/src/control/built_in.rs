//! The allocation classes that PMDK has without being asked: programs list them, and name them in
//! allocations.

use super::class::{AllocClass, Description};

/// Bytes of a unit, and units of a block, by identifier: what PMDK 1.12 answers. The first stands
/// for objects of whole chunks.
#[rustfmt::skip]
const CLASSES: [(u32, u32); 54] = [
    (262144, 0), (128, 2045), (192, 1364), (320, 818), (448, 584), (704, 372), (832, 315), (1088,
    240), (1216, 215), (1472, 356), (1728, 303), (1856, 282), (1984, 264), (2368, 221), (3776,
    208), (4480, 234), (5376, 195), (5504, 238), (6208, 211), (6720, 195), (7488, 210), (7744,
    203), (9216, 199), (9664, 217), (10176, 206), (11072, 213), (12032, 196), (11968, 219), (12480,
    210), (14272, 202), (16704, 204), (17472, 210), (23040, 182), (24384, 172), (26048, 161),
    (27776, 151), (29120, 144), (31296, 134), (39936, 105), (46592, 90), (51776, 81), (54464, 77),
    (66560, 63), (80640, 52), (107520, 39), (113344, 37), (135296, 31), (149760, 28), (167744, 25),
    (209664, 20), (220736, 19), (246720, 17), (262080, 16), (349440, 12),
];

/// Identifiers that are taken.
pub const COUNT: i64 = CLASSES.len() as i64;

/// `POBJ_HEADER_COMPACT`.
const COMPACT: u32 = 1;

/// The class of an identifier, if it is one of these.
pub fn class(id: i64) -> Option<AllocClass> {
    let &(unit, units) = CLASSES.get(usize::try_from(id).ok()?)?;
    AllocClass::new(&Description {
        unit_size: unit as usize,
        alignment: 0,
        units_per_block: units,
        header_type: COMPACT,
        class_id: id as u32,
    })
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_identifier_has_a_class() {
        assert!((0..COUNT).all(|id| class(id).is_some()));
        assert!(class(-1).is_none() && class(COUNT).is_none());
        assert_eq!(class(5).unwrap().usable(100), Some(688));
    }
}
