//! The vocabulary that every room shares: integer time, rates and sizes, segments and packets, and named random streams.
//!
//! Nothing here asks for the time, for randomness or for IO: whoever drives the machines passes them in.

mod histogram;
mod packet;
mod rng;
mod units;

pub use histogram::Histogram;
pub use packet::{CaState, Ecn, Flags, Packet, SackBlock, Segment, ETH_HEADER, MAX_SACK_BLOCKS};
pub use rng::Stream;
pub use units::{Duration, Rate, Time};
