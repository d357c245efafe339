//! A path: what tc does to packets, as a machine without a clock of its own.
//!
//! A [`Pipe`] is one direction: an ordered list of stages, each with a queue discipline as Linux has it (netem, tbf,
//! htb, fifos) or one of our own (`jitter`). Whoever owns the clock drives it: `push(now, packet)` at the entrance,
//! `pop(now)` at the exit, `next_event()` to know when to look again. The same code serves simulated segments and real
//! packets.
//!
//! | Question | File |
//! |---|---|
//! | tc's words | [`grammar`] |
//! | what a path is made of, as data (JSON) | [`spec`] |
//! | netem | [`netem`], its impairments in [`impair`] |
//! | tbf, htb, fifos | [`queue`] |
//! | changes while it runs | [`schedule`] |
//!
//! A random stream is named `direction/stage/qdisc/purpose`, so adding one impairment moves no other's draws.

pub mod grammar;
pub mod impair;
pub mod netem;
mod pipe;
pub mod queue;
pub mod schedule;
pub mod spec;
mod stats;

pub use grammar::{parse_tc, TcError};
pub use pipe::{Path, Pipe};
pub use queue::{segments, Body, Freed, Qdisc, REGISTRY};
pub use schedule::{Patch, ScheduledChange};
pub use spec::{Dist, Host, PathSpec, Prob, QdiscSpec, SpecError, StageSpec};
pub use stats::{DelayStats, Drops, StageStats};
