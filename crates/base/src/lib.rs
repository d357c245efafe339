//! The vocabulary that every room shares: integer time, rates and sizes, segments and packets, and named random streams.
//!
//! Nothing here asks for the time, for randomness or for IO: whoever drives the machines passes them in.

mod histogram;
mod kernel;
mod misbehaviour;
mod packet;
mod rng;
mod skip;
mod table;
mod units;
pub mod wire;

pub use histogram::Histogram;
pub use kernel::{Kernel, Rules, Version, WindowRule};
pub use misbehaviour::Misbehaviour;
pub use packet::{CaState, Ecn, Edt, Flags, Packet, SackBlock, Segment, ETH_HEADER, MAX_SACK_BLOCKS};
pub use rng::{flow_hash, mix, Stream};
pub use skip::skip;
pub use table::{Cell, Column, Number, NumberType, Row};
pub use units::{Duration, Rate, Time};
