//! What crosses crates: co-simulation, crash cuts, dependency direction. The tests themselves lie in `tests/`.
