//! What tests and campaigns are asked for by the environment: the fast tier, or the thorough one of
//! `./x test --thorough` (`NEARPM_THOROUGH`); and how much at once (`NEARPM_JOBS`).

/// Whether the long form of the tests is asked for.
pub fn thorough() -> bool {
    std::env::var_os("NEARPM_THOROUGH").is_some()
}

/// Workers of what works in parallel: what `NEARPM_JOBS` says, else as many as there are
/// processors, and then `least` at least.
///
/// # Panics
/// If it says no number above 0.
pub fn jobs(least: usize) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from).max(least);
    jobs_of(std::env::var("NEARPM_JOBS").ok().as_deref()).unwrap_or_else(processors)
}

/// What that variable says; nothing where it is not set, or empty.
fn jobs_of(said: Option<&str>) -> Option<usize> {
    let said = said.filter(|said| !said.is_empty())?;
    match said.parse() {
        Ok(jobs) if jobs > 0 => Some(jobs),
        _ => panic!("NEARPM_JOBS is {said:?}, and must be a number above 0"),
    }
}

#[cfg(test)]
mod tests {
    use super::jobs_of;

    #[test]
    fn a_number_of_workers_is_taken_as_it_is_said() {
        assert_eq!((jobs_of(None), jobs_of(Some("")), jobs_of(Some("17"))), (None, None, Some(17)));
        for wrong in ["0", "many", "-1"] {
            assert!(std::panic::catch_unwind(|| jobs_of(Some(wrong))).is_err(), "{wrong}");
        }
    }
}
