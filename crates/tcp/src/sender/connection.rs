//! What is known of a connection: what the peer told, what is in flight, what was delivered and how long that took. Every owner reads it;
//! nothing is decided here. `ack.rs` is how an ACK is read into it.

use super::config::Settings;
use super::delivery::DeliveryRate;
use super::ecn::EcnState;
use super::flight::Flight;
use super::info::SenderStats;
use super::peer::Peer;
use super::rtt::Rtt;
use super::SenderConfig;
use crate::cc::Counts;
use tcpscape_base::{Ecn, Flags, Segment, Time};

/// A time, with the tick of the host's clock that it lies in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub time: Time,
    pub tick: u64,
}

/// What is known of a connection, beside what its owners decide.
pub(super) struct Connection {
    pub cfg: Settings,
    pub now: Moment,
    pub stats: SenderStats,
    pub peer: Peer,
    pub ecn: EcnState,
    pub flight: Flight,
    pub rate: DeliveryRate,
    pub rtt: Rtt,
}

impl Connection {
    /// Of a connection that is not open yet.
    pub fn new(cfg: &SenderConfig) -> Connection {
        Connection {
            cfg: cfg.settings(),
            now: Moment::default(),
            stats: SenderStats::default(),
            peer: Peer::default(),
            ecn: EcnState::new(cfg.ecn, &*cfg.congestion),
            flight: Flight::new(),
            rate: DeliveryRate::new(),
            rtt: Rtt::new(&cfg.jiffies),
        }
    }

    /// It is `now`.
    #[inline]
    pub fn set_now(&mut self, now: Time) {
        self.now = Moment { time: now, tick: self.cfg.jiffies.at(now) };
    }
    /// Now, µs.
    #[inline]
    pub fn now_us(&self) -> u64 {
        self.now.time.micros()
    }
    /// Now, ticks of the host.
    #[inline]
    pub fn tick(&self) -> u64 {
        self.now.tick
    }
    /// Now, on the clock of timestamps.
    #[inline]
    pub fn timestamp(&self) -> u32 {
        self.cfg.jiffies.stamp(self.now.time)
    }

    /// The sequence number behind the receiver's window.
    #[inline]
    pub fn window_end(&self) -> u64 {
        self.peer.window_end(self.flight.una())
    }

    /// What happened to packets since the connection began.
    #[inline]
    pub fn counts(&self) -> Counts {
        Counts {
            delivered: self.rate.delivered(),
            delivered_ce: self.rate.delivered_ce(),
            lost: self.flight.marked_lost(),
            delivered_us: self.rate.delivered_us(),
            app_limited: self.rate.app_limited_until(),
        }
    }

    /// Takes an RTT sample for the estimator, and `last` for the minimum, µs.
    pub fn take_rtt(&mut self, first: u32, last: u32, maybe_delayed: bool) {
        let flight = self.flight.una()..self.flight.nxt();
        self.rtt.sample(first, last, maybe_delayed, flight, &self.cfg.jiffies, self.now.tick);
        self.stats.rtt.add(first);
    }

    /// The ACK of a SYN-ACK, which accurate feedback lets say how that arrived (RFC 9768 §3.2.2.1, table 3).
    pub fn third_ack(&self, arrived: Ecn) -> Segment {
        let ack = self.bare_ack(self.flight.nxt());
        if !self.ecn.accurate.on {
            return ack;
        }
        Segment { flags: Flags::ACK.with(Flags::of_ace(arrived.handshake_code())), ..ack }
    }

    /// A pure ACK or window probe at sequence number `seq`.
    pub fn bare_ack(&self, seq: u64) -> Segment {
        Segment {
            seq,
            ack: self.peer.rcv_nxt,
            wnd: OWN_WINDOW,
            flags: self.ecn.ack(),
            tsval: self.timestamp(),
            tsecr: self.peer.ts_recent(),
            ecn: self.ecn.control(),
            ..Segment::default()
        }
    }
}

/// Receive window that this side announces, bytes.
const OWN_WINDOW: u32 = 64_256;
