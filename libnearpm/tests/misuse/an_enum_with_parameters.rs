//! a PersistentEnum has no parameters

use nearpm::PersistentEnum;

#[derive(Clone, Copy, PersistentEnum)]
enum Either<A, B> {
    Left(A),
    Right(B),
}

fn main() {}
