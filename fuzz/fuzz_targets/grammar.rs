//! Target `grammar`: bytes are tc's words. Whatever they are, parsing returns; accepted words print, read back and validate.
//! The checks are in `crates/fuzzing/src/grammar.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tcpscape_fuzzing::grammar::check(data));
