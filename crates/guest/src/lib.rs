//! The guest of the virtual engine: the first and only process of a real Linux kernel that runs in virtual time.
//!
//! What it is: a static program that User-Mode Linux starts as `init`. It takes trials from the host one by one
//! ([`channel`]), runs each ([`trial`]) on the network, the flows and the watcher of [`tcpscape_testbed`], and hands the result back.
//!
//! ```text
//! host: io/7.job, "7" → FIFO ─→ channel ─→ trial::run ─→ tcpscape_testbed ─→ io/7.json, "done 7"
//! ```
//!
//! A job may also be a program of the host's, the live engine's with a command behind an emulated path ([`programs`]).
//!
//! How it differs from the testbed: what only the one process of a kernel of its own may do is here: mount, change settings of
//! the whole kernel ([`modules`]), end the machine ([`sys`]).

pub mod channel;
pub mod modules;
pub mod programs;
pub mod sys;
pub mod trial;
