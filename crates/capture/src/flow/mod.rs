//! Packets → flows: what became of each data segment, round-trip times, losses and reorderings, from whichever place the capture was taken.
//!
//! Source: RFC 9293, RFC 2018 and 2883 (SACK), RFC 6675 (scoreboard), RFC 7323 (timestamps), RFC 4737 (reordering); each file names its own.
//! How it differs from tcptrace and from Wireshark's `tcp.analysis`: what is lost, what is reordered and what was repeated needlessly are
//! told apart by evidence on the packets (identification, timestamps, SACK, DSACK), not by a time that passed; and what the capture does not
//! show has no value. Measured differences: `docs/diagnosis.md`.
//! What it does not model: urgent data, multipath TCP, segments with overlapping payloads that differ.
//!
//! [`Analyzer`] is the door and the table of connections, `connection` takes a packet, whose order and echoes `end` knows; `direction` is one end's
//! data: `data` has what was seen sent (what came here), `acks` what was acknowledged, by way of `scoreboard` (what came there) and
//! `delivered` (what late acknowledgements say of it), and `log` the
//! counters and rows; `record` makes records of it.
//! Nothing is allocated for a packet beyond its rows, whose number is bounded.

mod acks;
mod analyzer;
mod answers;
mod connection;
mod data;
mod delivered;
mod direction;
mod end;
mod forwarded;
mod handshake;
mod log;
mod record;
mod repeats;
mod rtt;
mod scoreboard;
mod sequence;
mod table;
mod vantage;
mod window;

pub use analyzer::{Analyzer, Budget, Totals};
pub use log::Counts;
pub use record::{Attempt, Facts, FlowRecord};
pub use rtt::Summary;
pub use table::{AckRow, EventRow, Fate, Kind, SegmentRow, Side};
pub use vantage::{Place, Vantage};

#[cfg(test)]
mod tests;
