//! Commands of Redis's protocol.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nearpm_serve::fuzzing::redis(data));
