//! Congestion controls: one file each, one line each in [`REGISTRY`].
//!
//! A controller reads the connection through [`View`] and writes [`Window`]; it never sees segments. For one ACK its hooks are called in
//! this order: `pkts_acked` → `in_ack` → (`ssthresh` → `on_state`) → `on_ack`. docs/models/controls/control-hooks.md says which names Linux has for
//! them and for what they see.

mod bbr;
mod bbr3;
mod bic;
mod cdg;
mod cubic;
mod dctcp;
mod fixed;
mod highspeed;
mod hooks;
mod htcp;
mod hybla;
mod illinois;
mod lp;
mod nv;
mod observation;
mod prague;
mod registry;
mod reno;
mod scalable;
mod vegas;
mod veno;
mod view;
mod westwood;
mod window;
mod yeah;

pub use bbr3::Bbr3;
pub use hooks::{AckSample, CaEvent, CongestionController, InAck, LostPacket, PktsAcked, RateSample};
pub use observation::{Observation, Shown};
pub use registry::{check, find, make, Entry, Options, Param, REGISTRY};
pub use reno::Reno;
pub use view::{Counts, EcnMode, Timestamps, View};
pub use window::{Window, INFINITE_SSTHRESH, INIT_CWND};
