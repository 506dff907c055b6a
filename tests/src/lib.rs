//! What crosses crates: co-simulation, crash cuts, dependency direction
