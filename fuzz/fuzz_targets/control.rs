//! Target `control`: bytes choose a congestion control and what happens to its connection. Its window and rate stay in their bounds.
//! The checks are in `crates/fuzzing/src/control.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tcpscape_fuzzing::control::check(data));
