//! The engine: virtual time, and how a packet travels.
//!
//! ```text
//! application ─write→ Sender ─poll_transmit→ host pipe ─(cut to MTU)→ network pipe ─→ Receiver ─read→ application
//!                       ↑                                                              │ poll_transmit
//!                       └──────────────── on_segment ←─ reverse pipe ←─────────────────┘
//! ```
//! One event per arrow where time passes; where none passes, a plain call. [`events`] keeps the order, [`plan`] is the input
//! (JSON), [`controls`] the door for congestion controls from outside, [`engine`] the loop, [`flow`] one connection with its applications, [`output`] the columns and summaries that come out,
//! [`capture`] its packets as a file.

pub mod capture;
pub mod controls;
pub mod engine;
pub mod events;
pub mod flow;
pub mod output;
pub mod plan;

pub use capture::write_pcapng;
pub use controls::Controls;
pub use engine::{run, run_many, run_many_with, run_with};
pub use output::{Column, FlowSummary, Table, TrialOutput};
pub use plan::{App, FlowPlan, Plan, PlanError, Read};
