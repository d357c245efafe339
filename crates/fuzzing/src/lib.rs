//! Generated inputs, and what must hold whatever the input: for the fuzz targets in `fuzz/` and for the property tests of this crate.
//!
//! A target is a function from bytes that panics where a law is broken. The fuzzers look for such bytes by coverage (`make fuzz`); the
//! tests in `tests/` run the same functions on bytes drawn from fixed seeds, and on every file of `fuzz/corpus`.
//!
//! | Target | Input | What must hold |
//! |---|---|---|
//! | [`grammar`] | tc's words as text | accepted words print, read back and validate; refusals are one short line |
//! | [`path`] | queues, changes and packets | no packet is lost uncounted, time passes, departures are told once |
//! | [`plan`] | a plan, as bytes of choices or as JSON | a short trial keeps its accounts, bounds and hash |
//! | [`capture`] | a capture, as bytes or as choices | pieces give what the whole gives, time does not run backwards, tables stay bounded |
//! | [`control`] | events of a connection | window and rate of a congestion control stay in their bounds |
//!
//! [`choices`] turns bytes into choices, [`words`] and [`schedule`] make queues and their changes of them.

pub mod capture;
pub mod choices;
pub mod control;
pub mod grammar;
pub mod path;
pub mod plan;
pub mod schedule;
pub mod trial;
pub mod words;

/// A fuzz target: its name, and what it does with bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, by the name of its binary in `fuzz/` and of its directory in `fuzz/corpus`.
pub const TARGETS: [Target; 5] =
    [("grammar", grammar::check), ("path", path::check), ("plan", plan::check), ("control", control::check), ("capture", capture::check)];
