//! What a congestion control may read of the connection: [`View`].
//!
//! Source: RFC 5681, RFC 6675 and draft-cheng-iccrg-delivery-rate-estimation, as each field says; docs/models/controls/control-hooks.md has Linux's
//! names.
//! How it differs: nothing known. Not modelled: the random offset that the timestamps of a connection may have (RFC 7323 §5.4).

use tcpscape_base::{CaState, Time};

/// What a controller may read of the connection at the moment of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// Time of the event being processed, ns; rules that count in µs take `now.micros()`.
    pub now: Time,
    /// The tick counter, wrapping.
    pub jiffies: u32,
    /// Ticks a second.
    pub hz: u32,
    /// Sender's maximum segment size, bytes.
    pub mss: u32,
    /// Oldest unacknowledged sequence number.
    pub snd_una: u64,
    /// Next sequence number to send.
    pub snd_nxt: u64,
    /// Smoothed RTT (RFC 6298) in µs << 3, 0 before the first sample.
    pub srtt_us: u32,
    /// Windowed minimum RTT, µs, `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    /// Packets in flight: sent and neither acknowledged, SACKed nor marked lost, and retransmissions under way (RFC 6675's pipe).
    pub in_flight: u32,
    /// Packets sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Of those, packets that were SACKed.
    pub sacked_out: u32,
    /// What was delivered, marked and lost since the connection began.
    pub counts: Counts,
    /// Congestion-avoidance state.
    pub ca_state: CaState,
    /// Whether sending was held back by the window when it was last judged (RFC 7661).
    pub is_cwnd_limited: bool,
    /// Largest `packets_out` in the last window judged, packets.
    pub most_packets_out: u32,
    /// Time of the last data transmission, jiffies, wrapping.
    pub last_sent: u32,
    /// Data is queued and not sent.
    pub has_unsent: bool,
    /// Earliest time at which the internal pacing timer allows a transmission, ns.
    pub pacing_next_ns: u64,
    /// Timestamps of the last acceptable segment.
    pub timestamps: Timestamps,
    /// What both ends agreed on for ECN.
    pub ecn: EcnMode,
}

impl View {
    /// `us` in jiffies, rounded up, for `hz` that divide a million.
    #[inline]
    pub fn jiffies_of(&self, us: u32) -> u32 {
        us.div_ceil(1_000_000 / self.hz.clamp(1, 1_000_000))
    }
}

/// What happened to the packets of a connection since it began (draft-cheng-iccrg-delivery-rate-estimation §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets ever delivered, SACKed ones included, wrapping (`C.delivered`).
    pub delivered: u32,
    /// Of those, packets whose delivery was reported with a congestion mark, wrapping.
    pub delivered_ce: u32,
    /// Packets ever marked lost, wrapping (`C.lost` of draft-ietf-ccwg-bbr).
    pub lost: u32,
    /// When `delivered` last grew, µs (`C.delivered_time`).
    pub delivered_us: u64,
    /// The value of `delivered` that ends the phase in which the application limits the rate, packets; 0 outside such a phase
    /// (`C.app_limited`).
    pub app_limited: u32,
}

/// The timestamps that a segment carries (RFC 7323 §3.2), ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// This side's clock now.
    pub now: u32,
    /// When the peer sent it, on the same clock as `echo` (`TSval`).
    pub value: u32,
    /// What it echoes of this side's timestamps (`TSecr`).
    pub echo: u32,
}

/// What both ends agreed on for ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    /// Not to use it.
    #[default]
    Off,
    /// The echo of RFC 3168: one reduction a round trip.
    Classic,
    /// Accurate feedback: `delivered_ce` counts marks, and packets are ECT(1) (RFC 9768, RFC 9331).
    Accurate,
}

impl EcnMode {
    /// Whether ECN is used at all.
    #[inline]
    pub fn is_on(self) -> bool {
        self != EcnMode::Off
    }
}
