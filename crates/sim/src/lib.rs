//! The engine: virtual time, and how a packet travels.
//!
//! ```text
//! application ─write→ Sender ─poll_transmit→ host pipe ─(cut to MTU)→ network pipe ─→ Receiver ─read→ application
//!                       ↑                                                              │ poll_transmit
//!                       └──────────────── on_segment ←─ reverse pipe ←─────────────────┘
//! ```
//! One event per arrow where time passes; where none passes, a plain call. A trial's way through the files: [`checked`] is a plan (`tcpscape_plan`) that
//! passed every check and is shared by all seeds, [`controls`] the door for congestion controls from outside, `engine` the loop over [`events`], `flow` one
//! connection with its applications, [`output`] what comes out (`accounts` checks that its parts fit each other), [`columns`] the samples and packets, [`record`] what controls show of
//! themselves,
//! [`capture`] a trial's packets as a file.

mod accounts;
pub mod capture;
pub mod checked;
pub mod columns;
pub mod controls;
mod engine;
pub mod events;
mod flow;
pub mod output;
pub mod record;

pub use capture::{packets_of, write_pcapng};
pub use checked::CheckedPlan;
pub use controls::Controls;
pub use engine::{Arrival, Departure, HostKind, Network, ProbePacket};
pub use output::TrialOutput;
