//! Arbitrary and damaged pools for the pool opener.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nearpm_tests::fuzzing::pool_opener(data));
