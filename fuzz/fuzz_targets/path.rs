//! Target `path`: bytes choose queues, changes and packets. No packet is lost uncounted, and time passes.
//! The checks are in `crates/fuzzing/src/path.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tcpscape_fuzzing::path::check(data));
