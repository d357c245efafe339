//! What a discipline is, whichever it is: the traits that each implements, and what all of them share.
//!
//! | Question | File |
//! |---|---|
//! | from words to a specification to a machine | [`Discipline`], [`Child`] in `specification.rs` |
//! | what a specification means, in plain units | [`Description`] in `description.rs` |
//! | packets in and out while it runs; cutting what segmentation offload made larger than an MTU | [`Qdisc`], [`Freed`], [`segments`] in `qdisc.rs` |
//! | the packet that a parent has looked at, counts of packets and bytes | [`Queued`], [`Policy`] in `queued.rs` |
//! | what it counts | [`StageStats`] in `stats.rs`; that nothing is missing there, [`check_accounts`] in `accounts.rs` |
//! | what can change while it runs | [`Patch`] in `patch.rs` |
//!
//! Nothing here knows any discipline by name.

mod accounts;
mod description;
mod patch;
mod qdisc;
mod queued;
mod specification;
mod stats;

pub use accounts::check_accounts;
pub use description::{Description, Marking};
pub use patch::Patch;
pub(crate) use patch::DELAY_MAX;
pub(crate) use qdisc::report_parent;
pub use qdisc::{segments, Aged, AnyQdisc, Body, Dropped, Freed, Qdisc};
pub use queued::{Books, Load, Policy, Queued};
#[cfg(test)]
pub(crate) use specification::{spec, try_spec};
pub use specification::{Child, Discipline};
pub(crate) use stats::Meter;
pub use stats::{Cause, DelayStats, Drops, StageStats};
