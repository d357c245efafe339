//! Target `capture`: bytes are a capture, or choices that make one. Whatever they are, reading and analysing them returns.
//! The checks are in `crates/fuzzing/src/capture.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tcpscape_fuzzing::capture::check(data));
