use std::time::Instant;

use super::*;

const WINDOW: u64 = 1 << 16;

fn together<T: Send>(ranks: usize, body: impl Fn(Shm) -> T + Sync) -> Vec<T> {
    let handles = Shm::threads(ranks, WINDOW).unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = handles.into_iter().map(|shm| scope.spawn(|| body(shm))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn counters_and_claims_are_exact() {
    let won = together(3, |shm| {
        let at = Place { rank: 1, offset: shm.alloc(8192).unwrap() };
        let mut won = 0;
        for bit in 0..64 {
            let mut before = [0; 2];
            shm.bor_many(at.plus(64), &[1 << bit, 1 << bit], &mut before).unwrap();
            won += (before[0] >> bit & 1) ^ 1;
            shm.fetch_add(at, 1).unwrap();
            shm.accumulate(at.plus(128), Kind::F32, Op::Sum, bytemuck::bytes_of(&[1.0_f32, 0.5])).unwrap();
        }
        shm.barrier().unwrap();
        assert_eq!(shm.load(at).unwrap(), 192);
        let mut sums = [0_f32; 2];
        shm.get(at.plus(128), bytemuck::bytes_of_mut(&mut sums)).unwrap();
        assert_eq!(sums, [192.0, 96.0]);
        won
    });
    assert_eq!(won.iter().sum::<u64>(), 64, "each bit is won once");
}

#[test]
fn all_get_what_all_gave() {
    together(4, |shm| {
        for round in 0..50 {
            let all = shm.allgather(&[shm.rank() as u64, round]).unwrap();
            assert_eq!(all, (0..4).flat_map(|rank| [rank, round]).collect::<Vec<_>>());
        }
        assert_eq!(shm.allreduce(super::super::Reduce::Sum, 5).unwrap(), 20);
        let mut text = if shm.rank() == 2 { vec![7; 1234] } else { Vec::new() };
        shm.broadcast(2, &mut text).unwrap();
        assert_eq!(text, [7; 1234]);
    });
}

#[test]
fn a_rank_that_is_gone_is_named_to_those_who_wait() {
    let started = Instant::now();
    let ends = together(3, |shm| if shm.rank() == 1 { Ok(()) } else { shm.barrier() });
    for rank in [0, 2] {
        assert!(matches!(ends[rank], Err(Error::DeadRank { rank: 1, ranks: 3 })), "{:?}", ends[rank]);
    }
    assert!(started.elapsed() < JOIN);
}

#[test]
fn what_is_given_back_is_zero_again() {
    together(2, |shm| {
        let at = shm.alloc(4096).unwrap();
        shm.put(Place { rank: 1 - shm.rank(), offset: at }, &[9; 4096]).unwrap();
        shm.free(at, 4096).unwrap();
        assert_eq!(shm.alloc(4096).unwrap(), at);
        let mut bytes = [1; 4096];
        shm.get(Place { rank: shm.rank(), offset: at }, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 4096]);
        shm.barrier().unwrap();
    });
}

#[test]
fn a_world_without_ranks_is_refused() {
    assert!(matches!(Shm::threads(0, 4096), Err(Error::BadOption { .. })));
    assert!(matches!(Shm::threads(2, u64::MAX / 2), Err(Error::BadOption { .. } | Error::System { .. })));
}
