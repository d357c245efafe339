//! A path: what tc does to packets, as a machine without a clock of its own.
//!
//! A [`Pipe`] is one direction: an ordered list of stages, each with a queue discipline as Linux has it (netem, tbf, htb, fq_codel, …) or
//! one of our own (`jitter`). Whoever owns the clock drives it: `push(now, packet)` at the entrance, `pop(now)` at the exit, `next_event()`
//! to know when to look again. The same code serves simulated segments and real packets.
//!
//! From the bottom up; each module imports only those above it in this table:
//!
//! | Module | What it is |
//! |---|---|
//! | `values` | probabilities, distributions, hosts, what is wrong with a field |
//! | `direction` | forward and reverse, and what their random streams are called: [`Direction`] |
//! | [`words`] | tc's words: lexer, units, printing. It knows no discipline |
//! | [`discipline`] | what every discipline is: traits from words to machine, [`Description`], accounting, [`Patch`] |
//! | [`parts`] | what several disciplines use: flows in turn, pace, clock, packets by due time |
//! | `impair` | netem's judges: loss, duplication, corruption, reordering |
//! | [`queue`] | the disciplines, one file each, and the table of all of them: [`QdiscSpec`], [`REGISTRY`] |
//! | `grammar` | [`parse_tc`]: a queue and its children in tc's words |
//! | [`schedule`] | changes while it runs |
//! | [`spec`] | a path as data: stages and schedule, JSON |
//! | `replace` | from one path to another by changes |
//! | `pipe` | [`Pipe`]: the stages at run time |
//!
//! A random stream is named `direction/stage/qdisc/purpose`, so adding one impairment moves no other's draws.

mod direction;
pub mod discipline;
mod grammar;
mod impair;
pub mod parts;
mod pipe;
pub mod queue;
mod replace;
pub mod schedule;
pub mod spec;
mod values;
pub mod words;

pub use direction::{Direction, HOST_STREAMS, NETWORK_STREAMS, REVERSE_STREAMS};
pub use discipline::{
    check_accounts, segments, Body, Cause, DelayStats, Description, Dropped, Drops, Freed, Marking, Patch, Qdisc, StageStats,
};
pub use grammar::{parse_tc, parse_with_hints};
pub use impair::loss::Loss;
pub use pipe::Pipe;
pub use queue::{Entry, QdiscSpec, REGISTRY};
pub use schedule::ScheduledChange;
pub use spec::{PathSpec, StageSpec};
pub use values::{Dist, Host, Prob, SpecError};
pub use words::TcError;
