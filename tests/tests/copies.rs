//! Copies of the process as saved states. One test, because a process that makes copies keeps to
//! one thread.

use nearpm_tests::cuts::copies::{Copies, keep_panics};

#[test]
fn a_copy_carries_the_state_on_and_changes_nothing_here() {
    keep_panics();
    let mut copies = Copies::<Vec<u32>>::new(2);
    let mut state = vec![1];
    let mut found = Vec::new();
    for n in 0..5 {
        found.extend(copies.start(|| {
            state.push(n);
            assert_ne!(n, 3, "three is refused");
            state.clone()
        }));
    }
    found.extend(std::iter::from_fn(|| copies.oldest()));
    assert_eq!(state, [1]);
    assert!(found.remove(3).unwrap_err().contains("three is refused"));
    assert_eq!(found, [0, 1, 2, 4].map(|n| Ok(vec![1, n])));
    // One that is killed is an error, and others go on.
    copies.start(|| std::process::abort());
    copies.start(|| vec![7]);
    assert!(copies.oldest().unwrap().unwrap_err().contains("without an answer"));
    assert_eq!(copies.oldest(), Some(Ok(vec![7])));
}
