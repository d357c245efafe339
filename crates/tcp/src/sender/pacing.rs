//! Pacing inside TCP: when the next segment may leave, and how large a super-packet the rate allows.
//!
//! Source: observed behaviour of Linux's internal pacing (without fq) and of departure times (with it). Linux: `tcp_pacing_check()`,
//! `tcp_update_skb_after_send()`, `tcp_tso_autosize()`. How it differs: nothing known.

use super::output::Push;
use super::*;

impl Sender {
    /// Segments that one super-packet may hold at the present rate (`tcp_tso_segs()`).
    pub(super) fn tso_segs(&self) -> u32 {
        if !self.gso {
            return 1;
        }
        let mut bytes = self.w.pacing_rate >> 10;
        let r = self.min_rtt() >> 9;
        if r < 32 {
            bytes += u64::from(GSO_MAX >> r);
        }
        let bytes = bytes.min(u64::from(GSO_MAX)) as u32;
        let segs = (bytes / self.mss).max(self.cc.min_tso_segs(&self.w));
        if self.owns_window {
            return segs.min(self.cc.max_tso_segs(&self.w)).max(1);
        }
        segs
    }

    /// When a segment just sent may leave its host: fq asks for it (`skb_set_delivery_time()`).
    pub(super) fn departure(&self, s: &Segment, burst: u32) -> Time {
        if !self.fq {
            return self.now;
        }
        let id = self.board.lower_bound(s.seq);
        let data = burst != 0 && self.board.contains(id);
        Time(if data { self.board.get(id).xmit_ns } else { self.wstamp_ns.max(self.now.0) })
    }

    /// Whether pacing holds the next segment back; fq does that by itself (`tcp_pacing_check()`).
    pub(super) fn pacing_check(&mut self) -> bool {
        if self.fq || !self.w.paced || self.wstamp_ns <= self.now.0 {
            return false;
        }
        if self.pacing_timer.is_none() {
            self.pacing_timer = Some(Time(self.wstamp_ns));
        }
        true
    }

    /// Counts `n` segments of `len` bytes out, moves the pacing clock on; returns their time stamp in ns.
    pub(super) fn stamp_and_pace(&mut self, len: u32, n: u32) -> u64 {
        if self.in_flight() == 0 {
            self.ca_event(CaEvent::TxStart);
        }
        self.lsndtime = self.jiffies.at(self.now);
        self.stats.data_segs_out += u64::from(n);
        let prior = self.wstamp_ns;
        self.wstamp_ns = prior.max(self.now.0);
        let stamp = self.wstamp_ns;
        let rate = self.w.pacing_rate;
        if self.w.paced && rate > 0 && rate != u64::MAX && self.stats.data_segs_out >= 10 {
            let mut ns = u64::from(len) * 1_000_000_000 / rate;
            // Late transmissions earn up to half of their length back.
            ns -= (ns / 2).min(stamp - prior);
            self.wstamp_ns += ns;
        }
        stamp
    }

    /// The pacing timer fired, or memory came back from the sender's queue (`tcp_tsq_write()`).
    pub(super) fn on_pacing_timer(&mut self) {
        if self.state != State::Established {
            return;
        }
        if self.lost_out > self.retrans_out && self.w.cwnd > self.in_flight() {
            self.retransmit_lost();
        }
        self.write_xmit(Push::All);
    }
}
