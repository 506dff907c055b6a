use super::*;

/// Bytes of the windows.
const BYTES: u64 = 8192;

#[test]
fn a_seed_decides_everything() {
    let body = |local: Local| {
        let at = local.alloc(64).unwrap();
        let sums: Vec<u64> = (0..20).map(|_| local.fetch_add(Place { rank: 0, offset: at }, 1).unwrap()).collect();
        local.barrier().unwrap();
        (sums, local.load(Place { rank: 0, offset: at }).unwrap())
    };
    let once = |seed| run(3, BYTES, &Schedule::of_seed(seed), body);
    assert_eq!(once(5), once(5));
    assert_ne!(once(5).0, once(6).0);
    assert!(once(7).0.iter().all(|(_, sum)| *sum == 60));
}

#[test]
fn what_is_not_flushed_comes_in_any_order_and_in_pieces() {
    let seen = |seed| {
        let (given, _) = run(2, BYTES, &Schedule::of_seed(seed), |local| {
            let place = |offset| Place { rank: 1, offset };
            let mut both = [0; 2];
            if local.rank() == 0 {
                local.put(place(0), &[1; 16]).unwrap();
                local.put(place(16), &[1; 8]).unwrap();
                local.flush(1).unwrap();
                local.barrier().unwrap();
                return (0, 0, 0);
            }
            local.load_many(place(0), &mut both).unwrap();
            let last = local.load(place(16)).unwrap();
            local.barrier().unwrap();
            let mut all = [0; 24];
            local.get(place(0), &mut all).unwrap();
            assert_eq!(all, [1; 24], "everything is there behind a flush and a barrier");
            (both[0], both[1], last)
        });
        given[1]
    };
    let states: std::collections::BTreeSet<_> = (0..400).map(seen).map(|(a, b, c)| (a > 0, b > 0, c > 0)).collect();
    for wanted in
        [(false, false, false), (true, false, false), (false, true, false), (false, false, true), (true, true, true)]
    {
        assert!(states.contains(&wanted), "{wanted:?} was never seen: {states:?}");
    }
}

#[test]
fn those_who_wait_for_a_stopped_rank_are_told() {
    for step in 1..12 {
        let schedule = Schedule { stop: Some(Stop::One { rank: 1, step }), ..Schedule::of_seed(step) };
        let (given, _) = run(3, BYTES, &schedule, |local| (0..10).try_for_each(|_| local.barrier()));
        assert!(matches!(given[1], Err(Error::Stopped { .. })), "{:?}", given[1]);
        for rank in [0, 2] {
            assert!(matches!(given[rank], Err(Error::DeadRank { rank: 1, ranks: 3 })), "{:?}", given[rank]);
        }
    }
}

#[test]
fn a_stop_of_all_is_seen_by_all_and_called_once() {
    let calls = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let at_stop: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    });
    let schedule = Schedule { stop: Some(Stop::All { step: 9 }), at_stop: Some(at_stop), ..Schedule::of_seed(1) };
    let (given, _) = run(3, BYTES, &schedule, |local| (0..10).try_for_each(|_| local.barrier()));
    assert!(given.iter().all(|result| matches!(result, Err(Error::Stopped { .. }))), "{given:?}");
    assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[test]
fn a_rank_that_leaves_is_named() {
    let (given, _) =
        run(2, BYTES, &Schedule::of_seed(3), |local| if local.rank() == 1 { Ok(()) } else { local.barrier() });
    assert!(matches!(given[0], Err(Error::DeadRank { rank: 1, .. })), "{given:?}");
}
