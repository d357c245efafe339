//! TCP-LP, low priority: halves the window when the one-way delay shows a queue, to leave the path to others.
//!
//! **What it is.** Reno, which also watches the delay from its peer's timestamps: smoothed, and above 15 % of the range seen, it is
//! early congestion. That halves the window; a second time within three round trips it leaves one packet, and no growth meanwhile.
//! **Source.** Kuzmanovic, Knightly: TCP-LP (IEEE INFOCOM 2003); Linux 6.1: `tcp_lp_pkts_acked()`, `tcp_lp_rtt_sample()`,
//! `tcp_lp_owd_calculator()`, `tcp_lp_remote_hz_estimator()`.
//! **How it differs.** From the paper, as Linux does: the two clocks' difference is part of the delay, all of it in 32 bits. Linux's
//! timestamps begin at a random value in each connection: from 2²⁹ ms on (seven connections of eight) the smoothed delay loses
//! its upper bits and is below any threshold, so that it is Reno. From Linux: the sender's clock counts from the trial's start, not from the boot.
//! **What it does not model.** Nothing else.

use super::{AckSample, CongestionController, Options, PktsAcked, Reno, Snapshot, View, Window};
use tcpscape_base::Stream;

/// TCP-LP.
#[derive(Clone, Debug)]
pub struct Lp {
    /// What the peer's timestamp clock is ahead of this side's, ms (Linux: `tsoffset` of the peer, `secure_tcp_seq_and_ts_off()`).
    peer_ahead: u32,
    clock: PeerClock,
    /// Smallest and largest delay, ms.
    least: u32,
    most: u32,
    /// The largest delay ever; what is next to it is taken for the largest (`owd_max_rsv`).
    reserve: u32,
    /// Smoothed delay, ms << 3, in 32 bits (`sowd`).
    smoothed: u32,
    /// When congestion was last indicated, ms; 0 for never (`last_drop`).
    indicated: u32,
    /// Three times the time since what the last ACK echoed, ms (`inference`).
    inference: u32,
    /// Whether less than `inference` has passed since the indication.
    within_inference: bool,
}

/// An estimate of the rate of the peer's timestamp clock.
#[derive(Clone, Copy, Debug, Default)]
struct PeerClock {
    /// Ticks a second, smoothed by 1/64; 0 before the first estimate (`remote_hz`).
    hz: u32,
    /// The last timestamps, the peer's and its echo of this side's (`remote_ref_time`, `local_ref_time`).
    last: (u32, u32),
}

impl PeerClock {
    // Linux: tcp_lp_remote_hz_estimator()
    fn update(&mut self, tsval: u32, tsecr: u32) {
        let (peer, own) = self.last;
        if peer != 0 && own != 0 && tsval != peer && tsecr != own {
            let hz = i64::from(TS_HZ.wrapping_mul(tsval.wrapping_sub(peer)) / tsecr.wrapping_sub(own));
            // The smoothed rate with 6 more bits, whose upper ones are lost.
            let old = i64::from(self.hz << 6);
            let new = if old > 0 { old - (old >> 6) + hz } else { hz << 6 };
            self.hz = (new >> 6) as u32;
        } else {
            self.hz = (self.hz << 6) >> 6;
        }
        self.last = (tsval, tsecr);
    }
}

impl Lp {
    /// A new one; the peer's clock begins anywhere.
    pub fn new(o: &Options<'_>) -> Lp {
        Lp {
            peer_ahead: Stream::new(o.seed, "lp").next_u32(),
            clock: PeerClock::default(),
            least: u32::MAX,
            most: 0,
            reserve: 0,
            smoothed: 0,
            indicated: 0,
            inference: 0,
            within_inference: false,
        }
    }

    /// The delay from the peer to here and the difference of the clocks, ms; none if there is nothing to tell it by
    /// (Linux: `tcp_lp_owd_calculator()`).
    fn delay(&mut self, v: &View) -> Option<u32> {
        let tsval = v.rcv_tsval.wrapping_add(self.peer_ahead);
        self.clock.update(tsval, v.rcv_tsecr);
        // Ticks are as many ms: one, or none when the estimate is above 1,000.
        let ms_per_tick = TS_HZ.checked_div(self.clock.hz)?;
        Some(tsval.wrapping_mul(ms_per_tick).wrapping_sub(v.rcv_tsecr)).filter(|&d| d > 0)
    }

    // Linux: tcp_lp_rtt_sample()
    fn take(&mut self, delay: u32) {
        self.least = self.least.min(delay);
        if delay > self.reserve.max(self.most) {
            self.most = if self.reserve == 0 { delay } else { self.reserve };
            self.reserve = delay;
        } else if delay > self.most {
            self.most = delay;
        }
        self.smoothed = match self.smoothed {
            0 => delay << 3,
            old => old.wrapping_add(delay.wrapping_sub(old >> 3)),
        };
    }

    fn is_congested(&self) -> bool {
        let part = PERCENT.wrapping_mul(self.most.wrapping_sub(self.least)) / 100;
        self.smoothed >> 3 >= self.least.wrapping_add(part)
    }
}

impl CongestionController for Lp {
    fn name(&self) -> &'static str {
        "lp"
    }

    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        Reno.ssthresh(v, w)
    }

    // Linux: tcp_lp_pkts_acked()
    fn pkts_acked(&mut self, v: &View, w: &mut Window, a: &PktsAcked) {
        if a.rtt_us > 0 {
            if let Some(delay) = self.delay(v) {
                self.take(delay);
            }
        }
        let now = timestamp(v);
        let since = now.wrapping_sub(v.rcv_tsecr);
        if since as i32 > 0 {
            self.inference = since.wrapping_mul(3);
        }
        self.within_inference = self.indicated != 0 && now.wrapping_sub(self.indicated) < self.inference;
        if self.is_congested() {
            self.least = self.smoothed >> 3;
            self.most = self.smoothed >> 2;
            self.reserve = self.most;
            w.cwnd = if self.within_inference { 1 } else { (w.cwnd / 2).max(1) };
            self.indicated = now;
        }
    }

    // Linux: tcp_lp_cong_avoid()
    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !self.within_inference {
            Reno.on_ack(v, w, s);
        }
    }

    fn snapshot(&self) -> Snapshot {
        let above = |x: u32| f64::from(x.wrapping_sub(self.least) as i32);
        vec![("delay_above_least_ms", above(self.smoothed >> 3)), ("range_ms", above(self.most)), ("peer_hz", self.clock.hz.into())]
    }
}

/// This side's timestamp clock, ms, as it is echoed: it begins at 1.
fn timestamp(v: &View) -> u32 {
    (v.now.0 / 1_000_000) as u32 + 1
}

/// Ticks of the timestamp clock in a second, and the unit of the delay (`TCP_TS_HZ`, `LP_RESOL`).
const TS_HZ: u32 = 1_000;
/// The part of the delay's range above which the path is congested, % (δ of the paper).
const PERCENT: u32 = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Time;

    /// One whose peer's clock is `peer_ahead` ms ahead.
    fn lp(peer_ahead: u32) -> (Lp, Window) {
        let c = Lp { peer_ahead, ..Lp::new(&Options::default()) };
        (c, Window { cwnd: 40, ssthresh: 2, ..Window::default() })
    }

    /// An ACK at `ms` of what was sent 20 ms before; the peer sent it 10 ms and `queue` ms before.
    fn ack(c: &mut Lp, w: &mut Window, ms: u32, queue: u32) {
        let v = View {
            now: Time(u64::from(ms - 1) * 1_000_000),
            rcv_tsval: ms - 10,
            rcv_tsecr: ms - 20 - queue,
            is_cwnd_limited: true,
            ..View::default()
        };
        c.pkts_acked(&v, w, &PktsAcked { pkts_acked: 1, rtt_us: 20_000, in_flight: 0 });
        c.on_ack(&v, w, &AckSample { acked: 1, may_raise: true, ..AckSample::default() });
    }

    /// The first delay, 5,010 ms, is at its own threshold: it halves the window, and the range becomes 5,010 to 10,020 ms.
    #[test]
    fn the_first_delay_halves_the_window() {
        let (mut c, mut w) = lp(5_000);
        ack(&mut c, &mut w, 1_000, 0);
        assert_eq!((c.clock.hz, c.smoothed, w.cwnd), (0, 0, 40), "only the clocks are noted");
        ack(&mut c, &mut w, 1_100, 0);
        assert_eq!((c.clock.hz, c.smoothed, c.least, c.most), (1_000, 5_010 << 3, 5_010, 10_020));
        assert_eq!((w.cwnd, c.indicated, c.inference), (20, 1_100, 60));
    }

    /// Delays of 100 to 200 ms: 15 % of the range are 115 ms. The smoothed delay is 100 + 100/8 = 112 ms after one of 200 ms, and
    /// 112 + 88/8 = 123 ms after two; the first of them is reserved.
    #[test]
    fn congestion_is_a_smoothed_delay_above_fifteen_percent_of_the_range() {
        let (mut c, _) = lp(0);
        c.take(100);
        c.take(200);
        assert_eq!((c.smoothed >> 3, c.most, c.reserve), (112, 100, 200));
        c.take(200);
        assert_eq!((c.smoothed >> 3, c.most, c.is_congested()), (123, 200, true));
        c.smoothed = 114 << 3;
        assert!(!c.is_congested());
    }

    #[test]
    fn an_indication_within_three_round_trips_of_another_leaves_one_packet() {
        let (mut c, mut w) = lp(5_000);
        (0..3).for_each(|i| ack(&mut c, &mut w, 1_000 + 100 * i, 0));
        // The round trip is 20 ms: two are not three.
        (c.most, c.reserve) = (5_010, 5_010);
        c.indicated = 1_241;
        ack(&mut c, &mut w, 1_300, 0);
        assert_eq!((w.cwnd, c.indicated), (1, 1_300));
        ack(&mut c, &mut w, 1_310, 0);
        assert_eq!((w.cwnd, w.cwnd_cnt), (1, 3), "no growth");
        ack(&mut c, &mut w, 1_360, 0);
        assert!(w.cwnd > 1);
    }

    /// An ACK whose peer's clock ran 200 ms while its echo ran 100 ms: 1,000 + 1,000/64 = 1,015 ticks a second, and a tick is no
    /// whole ms any more.
    #[test]
    fn a_peer_that_seems_fast_has_no_delay() {
        let (mut c, mut w) = lp(5_000);
        (0..2).for_each(|i| ack(&mut c, &mut w, 1_000 + 100 * i, 0));
        ack(&mut c, &mut w, 1_300, 100);
        assert_eq!(c.clock.hz, 1_015);
        let v = View { rcv_tsval: 1_390, rcv_tsecr: 1_280, ..View::default() };
        assert_eq!(c.delay(&v), Some(0u32.wrapping_sub(1_280)));
    }

    #[test]
    fn with_clocks_far_apart_it_is_reno() {
        let (mut c, mut w) = lp(1 << 29);
        (0..200).for_each(|i| ack(&mut c, &mut w, 1_000 + 100 * i, if i < 100 { 0 } else { 1_000 }));
        assert_eq!((c.indicated, w.cwnd), (0, 44));
        assert!(c.smoothed >> 3 < c.least);
    }

    #[test]
    fn the_range_forgets_its_farthest_sample() {
        let (mut c, _) = lp(0);
        c.take(100);
        c.take(500);
        assert_eq!((c.most, c.reserve), (100, 500));
        c.take(300);
        assert_eq!((c.least, c.most, c.reserve), (100, 300, 500));
    }
}
