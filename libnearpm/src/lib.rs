//! Crash-consistent pools and transactions for persistent memory, with or without a NearPM card
