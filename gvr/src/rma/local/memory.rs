//! Windows of simulated ranks, and the operations that are on their way to them.

use std::ops::Range;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::rma::{Kind, Op, Place};

/// What an operation does where it arrives.
pub(super) enum Moves {
    Write(Vec<u8>),
    Read(Vec<u8>),
    Combine(Kind, Op, Vec<u8>),
}

impl Moves {
    fn bytes(&self) -> usize {
        match self {
            Moves::Write(data) | Moves::Read(data) | Moves::Combine(_, _, data) => data.len(),
        }
    }
}

/// An operation that is on its way.
pub(super) struct Flight {
    pub origin: usize,
    pub at: Place,
    moves: Moves,
    /// Bytes of it that have not arrived.
    left: Vec<Range<usize>>,
    number: u64,
}

impl Flight {
    pub fn new(origin: usize, at: Place, moves: Moves) -> Flight {
        let bytes = moves.bytes();
        Flight { origin, at, moves, left: std::iter::once(0..bytes).filter(|all| !all.is_empty()).collect(), number: 0 }
    }
}

/// All windows.
pub(super) struct Windows {
    windows: Vec<Vec<u8>>,
    flights: Vec<Flight>,
    numbers: u64,
}

impl Windows {
    pub fn new(ranks: usize, bytes: u64) -> Windows {
        Windows { windows: vec![vec![0; bytes as usize]; ranks], flights: Vec::new(), numbers: 0 }
    }

    pub fn launch(&mut self, mut flight: Flight) -> u64 {
        self.numbers += 1;
        flight.number = self.numbers;
        self.flights.push(flight);
        self.numbers
    }

    /// Changes one word at once.
    pub fn word(&mut self, at: Place, change: impl FnOnce(&mut u64)) {
        let bytes = &mut self.windows[at.rank][at.offset as usize..][..8];
        let mut word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        change(&mut word);
        bytes.copy_from_slice(&word.to_le_bytes());
    }

    pub fn zero(&mut self, rank: usize, offset: u64, bytes: u64) {
        self.windows[rank][offset as usize..][..bytes as usize].fill(0);
    }

    /// A piece of some operation arrives.
    pub fn land_some(&mut self, random: &mut ChaCha8Rng) {
        let waiting: Vec<usize> =
            self.flights.iter().enumerate().filter(|(_, f)| !f.left.is_empty()).map(|(at, _)| at).collect();
        if waiting.is_empty() {
            return;
        }
        let at = waiting[random.random_range(0..waiting.len())];
        let flight = &mut self.flights[at];
        let piece = flight.left.swap_remove(random.random_range(0..flight.left.len()));
        let piece = if random.random_bool(0.5) { split(flight, piece, random) } else { piece };
        arrive(&mut self.windows, flight, piece);
        self.forget_landed();
    }

    /// Everything arrives that a rank sent to another, in any order.
    pub fn land_all(&mut self, origin: usize, target: usize, random: &mut ChaCha8Rng) {
        loop {
            let concerned = |f: &&mut Flight| f.origin == origin && f.at.rank == target && !f.left.is_empty();
            let mut flights: Vec<&mut Flight> = self.flights.iter_mut().filter(concerned).collect();
            if flights.is_empty() {
                break;
            }
            let at = random.random_range(0..flights.len());
            let piece = flights[at].left.pop().unwrap_or(0..0);
            arrive(&mut self.windows, flights[at], piece);
        }
        self.forget_landed();
    }

    /// A read arrives; gives its bytes.
    pub fn land_read(&mut self, number: u64) -> Vec<u8> {
        let Some(at) = self.flights.iter().position(|f| f.number == number) else { return Vec::new() };
        let mut flight = self.flights.swap_remove(at);
        for piece in std::mem::take(&mut flight.left) {
            arrive(&mut self.windows, &mut flight, piece);
        }
        match flight.moves {
            Moves::Read(data) => data,
            Moves::Write(_) | Moves::Combine(..) => Vec::new(),
        }
    }

    /// Reads stay until somebody asks for them.
    fn forget_landed(&mut self) {
        self.flights.retain(|f| !f.left.is_empty() || matches!(f.moves, Moves::Read(_)));
    }
}

/// Cuts a piece in two at a word of the target, keeps one half for later and gives the other.
fn split(flight: &mut Flight, piece: Range<usize>, random: &mut ChaCha8Rng) -> Range<usize> {
    let lead = (8 - flight.at.offset as usize % 8) % 8;
    let cuts: Vec<usize> = (piece.start + 1..piece.end).filter(|byte| byte % 8 == lead % 8).collect();
    if cuts.is_empty() {
        return piece;
    }
    let cut = cuts[random.random_range(0..cuts.len())];
    let (first, second) = (piece.start..cut, cut..piece.end);
    let (now, later) = if random.random_bool(0.5) { (first, second) } else { (second, first) };
    flight.left.push(later);
    now
}

fn arrive(windows: &mut [Vec<u8>], flight: &mut Flight, piece: Range<usize>) {
    let window = &mut windows[flight.at.rank][flight.at.offset as usize..][piece.clone()];
    match &mut flight.moves {
        Moves::Write(data) => window.copy_from_slice(&data[piece]),
        Moves::Read(data) => data[piece].copy_from_slice(window),
        Moves::Combine(kind, op, data) => kind.combine_bytes(*op, window, &data[piece]),
    }
}
