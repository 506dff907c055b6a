//! Tiers of tests: the fast one, and the thorough one that `./x test --thorough` asks for by `NEARPM_THOROUGH` in the environment.

/// Whether the long form of the tests is asked for.
pub fn thorough() -> bool {
    std::env::var_os("NEARPM_THOROUGH").is_some()
}
