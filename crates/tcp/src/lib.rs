//! Linux's TCP as two sans-IO machines, a [`Sender`] and a [`Receiver`]: segments and times go in, segments come out.
//!
//! `on_*` are inputs, `poll_*` outputs, `next_event` says when `on_timer` wants to be called. The machines hold no
//! clock and no socket; a simulator, or anything else that owns a clock, drives them.

pub mod cc;
mod jiffies;
mod receiver;
mod sender;
mod windowed;

pub use jiffies::Jiffies;
pub use receiver::{Backlog, Feedback, Receiver, ReceiverConfig, ReceiverStats};
pub use sender::{EventCounts, Histogram, Info, Limit, Sender, SenderConfig, SenderStats, Transmit, Tuning, LIMITS};
