//! The engine: virtual time, and how a packet travels.
//!
//! ```text
//! application ─write→ Sender ─poll_transmit→ host pipe ─(cut to MTU)→ network pipe ─→ Receiver ─read→ application
//!                       ↑                                                              │ poll_transmit
//!                       └──────────────── on_segment ←─ reverse pipe ←─────────────────┘
//! ```
//! One event per arrow where time passes; where none passes, a plain call. A trial's way through the files: [`plan`] is the input (JSON),
//! [`checked`] a plan that passed every check and is shared by all seeds (with [`kernel`], its kernel profile, `size`, what a trial would take, and [`controls`], the
//! door for congestion controls from outside), `engine` the loop over [`events`], `flow` one connection with its applications ([`player`] and [`requests`] are two),
//! [`transfers`] draws connections that arrive at random, [`probe`] keeps the account of a probe (both for every engine), [`output`] the summaries that come out (`accounts` checks that they fit each other), [`columns`] the samples and packets beside them, [`capture`] a trial's packets as a file.

mod accounts;
pub mod capture;
pub mod checked;
pub mod columns;
pub mod controls;
mod engine;
pub mod events;
mod flow;
pub mod kernel;
pub mod output;
mod places;
pub mod plan;
pub mod player;
pub mod probe;
pub mod requests;
mod size;
mod traffic;
pub mod transfers;
mod wire;

pub use capture::write_pcapng;
pub use checked::CheckedPlan;
pub use columns::{Column, Table};
pub use controls::Controls;
pub use engine::{Arrival, Departure, HostKind, Network, ProbePacket};
pub use output::{FlowSummary, Link, QueueAccount, TrialOutput};
pub use plan::{App, FlowPlan, LinkPlan, PlacePlan, Plan, PlanError, ProbeKind, ProbePlan, Read, TransfersPlan};
pub use player::{Player, PlayerPlan, PlayerSummary};
