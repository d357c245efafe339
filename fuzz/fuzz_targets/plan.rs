//! Target `plan`: bytes are a plan's JSON or choices that make one. A short trial keeps its accounts, its bounds and its hash.
//! The checks are in `crates/fuzzing/src/plan.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tcpscape_fuzzing::plan::check(data));
