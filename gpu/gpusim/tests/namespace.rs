//! The table of names, also when the power fails while a name is made or removed.

use nearpm_gpusim::namespace::{Namespace, NamespaceError, TablePersist};
use proptest::prelude::*;

const SLOTS: usize = 6;

fn apply(memory: &mut [u8], persist: &TablePersist, words: u32) {
    // Words of 8 bytes reach memory, or not.
    for (index, word) in persist.bytes.chunks(8).enumerate() {
        if words >> index & 1 == 1 {
            let at = persist.offset as usize + 8 * index;
            memory[at..at + word.len()].copy_from_slice(word);
        }
    }
}

#[test]
fn names_are_found_again() {
    let mut memory = vec![0; 1 << 16];
    let mut table = Namespace::open(&memory, SLOTS).unwrap();
    for (name, bytes) in [("log", 1000), ("table", 20_000), ("queue", 1)] {
        apply(&mut memory, &table.create(name, bytes).unwrap(), u32::MAX);
    }
    assert_eq!(table.create("log", 1), Err(NamespaceError::Taken("log".into())));
    assert_eq!(table.create("large", 60_000), Err(NamespaceError::Full(60_000)));
    assert_eq!(table.create("", 1), Err(NamespaceError::Name(0)));
    apply(&mut memory, &table.remove("log").unwrap(), u32::MAX);
    let again = Namespace::open(&memory, SLOTS).unwrap();
    assert_eq!(again, table);
    assert_eq!(again.find("table").unwrap().bytes, 20_000);
    assert_eq!(again.find("log"), Err(NamespaceError::Unknown("log".into())));
    assert_eq!(Namespace::open(&memory[..100], SLOTS), Err(NamespaceError::Small(100)));
}

proptest! {
    /// Any part of the last persist may have reached memory: the last name is there whole or not at
    /// all, and all others are as they were. Regions never overlap.
    #[test]
    fn a_crash_while_a_name_is_made_leaves_it_whole_or_not_at_all(
        steps in prop::collection::vec((any::<bool>(), 0..8u32, 1..9000u64), 1..20),
        words in any::<u32>(),
    ) {
        let mut memory = vec![0; 1 << 15];
        let mut table = Namespace::open(&memory, SLOTS).unwrap();
        let (mut before, mut last) = (table.clone(), None);
        for (make, name, bytes) in steps {
            let name = format!("region {name}");
            if let Some(persist) = last.take() {
                apply(&mut memory, &persist, u32::MAX);
            }
            before = table.clone();
            last = if make { table.create(&name, bytes).ok() } else { table.remove(&name).ok() };
        }
        if let Some(persist) = last {
            apply(&mut memory, &persist, words);
        }
        let found = Namespace::open(&memory, SLOTS).unwrap();
        prop_assert!(found == before || found == table);
        let mut regions: Vec<(u64, u64)> = found.list().map(|named| (named.offset, named.bytes)).collect();
        regions.sort_unstable();
        prop_assert!(regions.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    }

    /// Any memory at all is a table, perhaps an empty one.
    #[test]
    fn any_bytes_open(memory in prop::collection::vec(any::<u8>(), 0..2000)) {
        if let Ok(table) = Namespace::open(&memory, SLOTS) {
            prop_assert!(table.list().count() <= SLOTS);
        }
    }
}
