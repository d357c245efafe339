//! What held a flow, at every time: the application, the send buffer, the receive window, the congestion window, pacing, recovery from
//! losses, a timeout. Online: memory does not grow with the packets.
//!
//! Source: Zhang et al., "On the characteristics and origins of Internet flow rates" (SIGCOMM 2002); Siekkinen et al., "Root cause analysis
//! for long-lived TCP connections" (CoNEXT 2005); RFC 9293 §3.8.6 (windows), RFC 5681, RFC 6298 (timer); the meaning of the kernel's
//! `busy_time`, `rwnd_limited` and `sndbuf_limited` in include/uapi/linux/tcp.h.
//! How it differs from them: those papers judge a connection or seconds of it by statistics of its gaps; here each gap between two
//! departures of data has the cause that ended it, and statistics decide only between the causes that look alike in one gap.
//! What it does not model: queues of the sending host (a local qdisc, small queues) count as what lies behind them.
//!
//! Where the rules cannot tell, the cause is unknown, with a [`Doubt`] that says why.
//!
//! [`Tracker`] is the door, `view` the sender's knowledge as it can be told from the place of capture, `times` what the packets time here,
//! `episodes` the repairs, `full` how large full segments are, `judge` the gaps of a few round trips, `window` the rules for them, `intervals` the bounded list of results.

mod episodes;
mod full;
mod intervals;
mod judge;
mod times;
mod tracker;
mod view;
mod window;

pub use intervals::{thinned, Interval};
pub use judge::Doubt;
pub use tracker::Tracker;

#[cfg(test)]
mod tests;

/// What holds a flow at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// It had nothing to send.
    Application,
    /// Its writes waited for room in the socket's send buffer, and everything that was in it had been sent.
    SendBuffer,
    /// The next segment did not fit into the receiver's window.
    ReceiveWindow,
    /// The next segment did not fit into the congestion window.
    CongestionWindow,
    /// The sender spaced its segments by a timer.
    Pacing,
    /// Fast recovery: what was lost was repeated, with a window that a reduction governed.
    Recovery,
    /// Silence until the retransmission timer fired, and the slow start that follows.
    Timeout,
    /// SYN to the end of the handshake.
    Handshake,
    /// The capture cannot show it.
    Unknown,
}

impl Cause {
    /// Its name in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Application => "application",
            Cause::SendBuffer => "send_buffer",
            Cause::ReceiveWindow => "receive_window",
            Cause::CongestionWindow => "congestion_window",
            Cause::Pacing => "pacing",
            Cause::Recovery => "recovery",
            Cause::Timeout => "timeout",
            Cause::Handshake => "handshake",
            Cause::Unknown => "unknown",
        }
    }
}

/// Why a segment is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// ACKs said that it is lost, rightly or not.
    Fast,
    /// The retransmission timer fired.
    Timeout,
    /// A tail loss probe.
    Probe,
}

/// A packet of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// SYN of whoever opens the connection.
    Syn,
    /// Its answer.
    SynAck,
    /// The ACK that completes it.
    Ack,
}

/// A data segment, or a super-packet, at the place of capture. Times are ns since the capture's first packet, sequence numbers count from 0 at
/// the flow's first byte and never wrap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Data {
    /// When it was seen.
    pub t: u64,
    /// Its number in the capture.
    pub frame: u64,
    /// Its first byte.
    pub seq: u64,
    /// Bytes of payload.
    pub len: u32,
    /// Payload of a full segment as the SYNs agreed on it, at least a byte; none where it is not known yet.
    pub mss: Option<u32>,
    /// TSval.
    pub tsval: Option<u32>,
    /// TSecr; none where it echoes nothing.
    pub tsecr: Option<u32>,
    /// PSH flag.
    pub psh: bool,
    /// Whether it is sent again.
    pub repeat: Option<Repeat>,
    /// Its acknowledgement number, in the other direction's numbers.
    pub ack: u64,
    /// Bytes of options by which it is smaller than a full segment without them: SACK blocks, where the other end sends data too.
    pub options: u32,
}

/// A packet of the other direction at the place of capture.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// When it was seen.
    pub t: u64,
    /// Its number in the capture.
    pub frame: u64,
    /// The next byte that the receiver expects.
    pub ack: u64,
    /// Right edge of the window: `ack` plus the scaled window; none where the scale is not known.
    pub edge: Option<u64>,
    /// The window as the header has it, not scaled; none of a SYN.
    pub window: Option<u16>,
    /// Bytes that it is the first to report by SACK.
    pub sacked: u32,
    /// Bytes received so far, as far as this ACK and those before it say: in order and reported by SACK, each once.
    pub delivered: u64,
    /// Bytes that it reports as received twice.
    pub dsack: u32,
    /// TSval.
    pub tsval: Option<u32>,
    /// TSecr; none where it echoes nothing.
    pub tsecr: Option<u32>,
    /// Its own payload, bytes.
    pub len: u32,
    /// Its end, in the other direction's numbers.
    pub end: u64,
    /// Whether it lies beyond what was seen acknowledged of the other direction's data, so that it need not change what is echoed (RFC 7323 §4.3).
    pub is_beyond: bool,
}
