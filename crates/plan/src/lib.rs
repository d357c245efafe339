//! What every engine is asked, and what it answers.
//!
//! [`Plan`] is a trial without its seed, as JSON; [`Plan::check`] says whether it can run, [`kernel`] reads the kernel that it names, and [`Topology`]
//! is its network. What the applications
//! do is decided here, for sockets of every engine: [`player`] and [`requests`] are clients, [`transfers`] draws connections that arrive at random, [`probe`]
//! keeps the account of a probe. [`results`] are what comes out, [`samples`] what is seen meanwhile, and [`judge`] holds what queues did against
//! what they were asked.

mod check;
pub mod judge;
pub mod kernel;
mod places;
mod plan;
pub mod player;
pub mod probe;
pub mod requests;
pub mod results;
pub mod samples;
pub mod scream;
mod size;
mod topology;
mod traffic;
pub mod transfers;

pub use places::MAX_PLACES;
pub use plan::{refuse, App, ClockPlan, FlowPlan, LinkPlan, PlacePlan, Plan, PlanError, ProbeKind, ProbePlan, Read, TransfersPlan, Turns};
pub use player::{Player, PlayerPlan, PlayerSummary};
pub use scream::MediaPlan;
pub use topology::{LinkId, StageName, Topology, Way, LEFT_HOST, RIGHT_HOST};
