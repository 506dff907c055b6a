use nearpm_explorer::explore::{Limits, explore};
use nearpm_explorer::pools::Kind;
use nearpm_explorer::program::{Program, Structure};

fn main() {
    let lazy = std::env::args().nth(1).is_some();
    let n: usize = std::env::args().nth(2).map_or(1, |n| n.parse().unwrap());
    for kind in Kind::ALL {
        for structure in [Structure::Slots, Structure::HashMap] {
        let program = Program::random(kind, structure, 1, n, 1);
        let t = std::time::Instant::now();
        match explore(&program, if lazy { Limits { again_one_in: 0, ..Limits::LAZY } } else { Limits { again_one_in: 0, runs_per_cut: 10000, ..Limits::EXHAUSTIVE } }) {
            Ok((report, failure)) => println!("{kind:?} {structure:?} {report} {failure:?} {:?}", t.elapsed()),
            Err(e) => println!("{kind:?} {e}"),
        }
    }}
}
