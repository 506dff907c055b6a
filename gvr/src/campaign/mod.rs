//! Many random runs, each a function of its seed: what tests run a sample of, and
//! `nearpm gvr campaign` as many as are wanted.

pub mod crash;
pub mod flips;
pub mod history;
pub mod linear;

/// What all ranks gave, or the error that came first: the others have lost a rank by it.
fn all_of<T>(given: Vec<crate::Result<T>>) -> std::result::Result<Vec<T>, String> {
    use crate::Error::DeadRank;
    let own = given.iter().find_map(|one| one.as_ref().err().filter(|error| !matches!(error, DeadRank { .. })));
    match own {
        Some(error) => Err(error.to_string()),
        None => given.into_iter().collect::<crate::Result<_>>().map_err(|error| error.to_string()),
    }
}
