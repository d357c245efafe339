//! How large a burst the rate allows, and whether pacing holds it back.
//!
//! Source: docs/models/pacing.md and docs/models/sender.md, "Size of a super-packet". How it differs: nothing known.

use super::output::{Push, GSO_MAX};
use super::Sender;
use crate::cc::CaEvent;
use tcpscape_base::{Segment, Time};

impl Sender {
    /// Segments that one burst may hold: what the rate sends in 1/1024 s, and more the shorter the path.
    pub(super) fn burst_segments(&self) -> u32 {
        if !self.cfg.gso {
            return 1;
        }
        let halvings = self.rtt.min_us() / HALVING_RTT_US;
        let by_rtt = GSO_MAX.checked_shr(halvings).unwrap_or(0);
        let bytes = (self.w.pacing_rate / 1_024 + u64::from(by_rtt)).min(u64::from(GSO_MAX)) as u32;
        let segments = (bytes / self.cfg.mss).max(self.control.cc.min_tso_segs(&self.w));
        if self.control.owns_window {
            return segments.min(self.control.cc.max_tso_segs(&self.w)).max(1);
        }
        segments
    }

    /// Whether pacing holds the next burst back; where the host's queue paces, TCP does not.
    pub(super) fn wait_for_pacing(&mut self) -> bool {
        !self.cfg.fq && self.w.paced && self.pacer.holds(self.now.time)
    }

    /// A burst of `segments` leaves: returns when, ns.
    pub(super) fn depart(&mut self, len: u32, segments: u32) -> u64 {
        if self.flight.in_flight() == 0 {
            self.event(CaEvent::TxStart);
        }
        self.window_use.sent(self.tick());
        self.stats.data_segs_out += u64::from(segments);
        let is_paced = self.w.paced && self.stats.data_segs_out >= UNPACED_SEGMENTS;
        self.pacer.depart(self.now.time, len, is_paced.then_some(self.w.pacing_rate))
    }

    /// When a segment just sent may leave its host, if that paces.
    pub(super) fn departure(&self, s: &Segment, burst: u32) -> Time {
        if !self.cfg.fq {
            return self.now.time;
        }
        let sent = self.flight.find(s.seq).filter(|_| burst != 0).map(|id| self.flight.get(id).sent_ns);
        Time(sent.unwrap_or(self.pacer.next_ns().max(self.now.time.0)))
    }

    /// What waited may go: the pacing timer has fired, or the host's queue has let something go.
    pub(super) fn on_released(&mut self) {
        if !self.handshake.is_done() {
            return;
        }
        if self.flight.has_lost_to_send() && self.w.cwnd > self.flight.in_flight() {
            self.retransmit_lost();
        }
        self.send_pending(Push::All);
    }

    /// `bytes` of the frames of that burst have left the sender's host, or were dropped in its queue. With TCP small queues
    /// their memory is free again.
    pub fn on_departure(&mut self, now: Time, burst: u32, bytes: u32) {
        let Some(freed) = self.host.depart(burst, bytes) else { return };
        // Without a queue all that was sent in a batch has gone before the sender is called.
        if freed > 0 && self.host.is_throttled() && !(self.cfg.bare_host && self.host.memory() > 0) {
            self.set_now(now);
            self.host.release();
            self.on_released();
            self.account();
        }
    }
}

/// Every so many µs of the smallest RTT halve what a burst may hold beyond the rate.
const HALVING_RTT_US: u32 = 512;
/// The segments of a connection before this one leave unpaced.
const UNPACED_SEGMENTS: u64 = 10;
