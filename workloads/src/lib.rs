//! Crash-consistent workloads, generic over mechanism and memory
