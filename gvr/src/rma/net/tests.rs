use super::*;

const BYTES: u64 = 1 << 16;

fn profile() -> Profile {
    Network::Fdr10.profile()
}

/// Time of something that rank 0 does to rank 1, in nanoseconds.
fn time(act: impl Fn(&Net) + Sync) -> u64 {
    let body = |net: Net| {
        net.barrier().unwrap();
        let start = net.now();
        if net.rank() == 0 {
            act(&net);
        }
        let spent = net.now() - start;
        net.barrier().unwrap();
        spent
    };
    run(2, BYTES, profile(), body).unwrap().0[0]
}

fn place(offset: u64) -> Place {
    Place { rank: 1, offset }
}

#[test]
fn operations_cost_what_the_parameters_say() {
    let profile = profile();
    let bytes = |bytes| profile.bytes(bytes);
    let round = |sent, back, there| (profile.overhead + 2 * profile.latency + sent + back + there) / NANO;
    assert_eq!(time(|net| net.get(place(0), &mut [0; 4096]).unwrap()), round(0, bytes(4096), 0));
    let put = |net: &Net| {
        net.put(place(0), &[1; 4096]).unwrap();
        net.flush(1).unwrap();
    };
    assert_eq!(time(put), round(bytes(4096), 0, 0));
    let cas = time(|net| assert_eq!(net.cas(place(8), 0, 5).unwrap(), 0));
    assert_eq!(cas, round(bytes(16), bytes(8), profile.atomic));
    // Two that are on their way together share the way.
    let both = time(|net| {
        let gets = [0, 64].map(|at| net.begin_get(place(at), 64).unwrap());
        gets.into_iter().for_each(|get| net.end_get(get, &mut [0; 64]).unwrap());
    });
    assert!(both < round(0, bytes(64), 0) * 3 / 2, "{both}");
}

#[test]
fn computing_and_storing_take_the_time_that_they_say() {
    let slow = Profile { storage: 100, ..profile() };
    let body = |net: Net| {
        let start = net.now();
        net.work(Work::Compute { nanoseconds: 700 }).unwrap();
        let computed = net.now() - start;
        net.work(Work::StoreLater { bytes: 1000, room: 1000 }).unwrap();
        let later = net.now() - start - computed;
        // Room for one, and one waits already.
        net.work(Work::StoreLater { bytes: 1000, room: 1000 }).unwrap();
        let full = net.now() - start - computed - later;
        net.work(Work::StoreNow { bytes: 1000 }).unwrap();
        (computed, later, full)
    };
    assert_eq!(run(1, BYTES, slow, body).unwrap().0, [(700, 0, 100 * 200)]);
}

#[test]
fn a_run_is_a_function_of_its_program() {
    let body = |net: Net| {
        let at = Place { rank: 0, offset: net.alloc(64).unwrap() };
        let mut seen = Vec::new();
        for round in 0..20 {
            seen.push(net.fetch_add(at, 1).unwrap());
            net.work(Work::Compute { nanoseconds: 100 * (net.rank() as u64 + round) }).unwrap();
            net.accumulate(at.plus(8), Kind::U64, Op::Sum, &1_u64.to_le_bytes()).unwrap();
        }
        net.flush(0).unwrap();
        net.barrier().unwrap();
        assert_eq!(net.load(at.plus(8)).unwrap(), 20 * net.ranks() as u64);
        (seen, net.now())
    };
    let once = || run(7, BYTES, profile(), body).unwrap();
    let (first, second) = (once(), once());
    assert_eq!(first, second);
    let mut all: Vec<u64> = first.0.iter().flat_map(|(seen, _)| seen.iter().copied()).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..140), "every addition is seen once");
}

#[test]
fn a_rank_that_leaves_is_named_to_those_who_meet_or_wait() {
    let (ends, _) = run(3, BYTES, profile(), |net| match net.rank() {
        0 => net.barrier(),
        1 => net.wait_word(0, 0).map(drop),
        _ => Ok(()),
    })
    .unwrap();
    for end in &ends[..2] {
        assert!(matches!(end, Err(Error::DeadRank { rank: 2, ranks: 3 })), "{end:?}");
    }
}

#[test]
fn who_waits_for_a_word_is_woken_by_what_is_delivered() {
    let (ends, _) = run(2, BYTES, profile(), |net| {
        if net.rank() == 0 {
            net.work(Work::Compute { nanoseconds: 5000 }).unwrap();
            net.deliver(place(64), &[7; 32], 8, 0).unwrap();
            return 0;
        }
        assert_eq!(net.wait_word(0, 0).unwrap(), 1);
        let mut data = [0; 32];
        net.get(Place { rank: 1, offset: 64 }, &mut data).unwrap();
        assert_eq!(data, [7; 32]);
        net.now()
    })
    .unwrap();
    assert!(ends[1] > 5000 && ends[1] < 8000, "{ends:?}");
}

#[test]
fn no_ranks_and_too_many_are_refused() {
    for ranks in [0, MOST_RANKS + 1] {
        assert!(matches!(run(ranks, BYTES, profile(), drop), Err(Error::BadOption { .. })));
    }
}
