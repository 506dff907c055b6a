//! Values as RESTORE takes them.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nearpm_serve::fuzzing::dump(data));
