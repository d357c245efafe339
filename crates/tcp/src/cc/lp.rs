//! TCP-LP, low priority: halves the window when the one-way delay shows a queue, to leave the path to others.
//!
//! **What it is.** Reno, which also watches the delay from its peer's timestamps: smoothed, and above 15 % of the range seen, it is
//! early congestion. That halves the window; a second time within three round trips it leaves one packet, and no growth meanwhile.
//! **Source.** Kuzmanovic, Knightly: TCP-LP (IEEE INFOCOM 2003): its smoothing, its threshold and its inference phase.
//! **How it differs.** From the paper, as Linux is seen to do (docs/models/controls/lp.md): the two clocks' difference is part of the delay, all of it
//! in 32 bits. Linux's timestamps begin at a random value in each connection: from 2²⁹ ms on (seven connections of eight) the smoothed delay
//! loses its upper bits and is below any threshold, so that it is Reno. From Linux: the sender's clock counts from the trial's start, not
//! from the boot.
//! **What it does not model.** Nothing else.

use super::{AckSample, CongestionController, Options, PktsAcked, Reno, Timestamps, View, Window};
use tcpscape_base::Stream;

/// TCP-LP.
#[derive(Clone, Debug)]
pub struct Lp {
    /// What the peer's timestamp clock is ahead of this side's, ms: each connection's begins at a random value.
    peer_ahead: u32,
    peer_rate: PeerRate,
    delays: Delays,
    inference: Inference,
}

/// An estimate of the rate of the peer's timestamp clock, from pairs of ACKs.
#[derive(Clone, Copy, Debug, Default)]
struct PeerRate {
    /// Ticks a second, moving average with a weight of 1/64; 0 before the first estimate.
    hz: u32,
    /// Timestamps of the last ACK.
    last: Timestamps,
}

/// The rate of the peer's clock from `old` to `now`, ticks a second of this side's; none where a clock stands still or has not been seen.
fn clock_rate(old: Timestamps, now: Timestamps) -> Option<u32> {
    if old.value == 0 || old.echo == 0 {
        return None;
    }
    let (ticks, own_ticks) = (now.value.wrapping_sub(old.value), now.echo.wrapping_sub(old.echo));
    (ticks > 0 && own_ticks > 0).then(|| TICKS_PER_SECOND.wrapping_mul(ticks) / own_ticks)
}

impl PeerRate {
    /// The average is kept with six more bits, the upper of which are lost where they exceed 32.
    fn update(&mut self, now: Timestamps) {
        let average = self.hz << RATE_WEIGHT;
        self.hz = match clock_rate(self.last, now) {
            None => average >> RATE_WEIGHT,
            Some(hz) if average == 0 => (hz << RATE_WEIGHT) >> RATE_WEIGHT,
            Some(hz) => ((u64::from(average - (average >> RATE_WEIGHT)) + u64::from(hz)) >> RATE_WEIGHT) as u32,
        };
        self.last = now;
    }

    /// A tick in whole ms: one, or none when the estimate is above 1,000; not known before the first estimate.
    fn ms_per_tick(&self) -> Option<u32> {
        TICKS_PER_SECOND.checked_div(self.hz)
    }
}

/// The range of the delays and their moving average, ms (the paper's d_min, d_max and d).
#[derive(Clone, Copy, Debug)]
struct Delays {
    least: u32,
    /// The second-largest, which ends the range, and the largest; 0 before the first.
    largest: [u32; 2],
    /// Moving average with a weight of 1/8, in 1/8 ms of 32 bits; 0 before the first.
    average8: u32,
}

impl Delays {
    const NONE: Delays = Delays { least: u32::MAX, largest: [0; 2], average8: 0 };

    fn take(&mut self, delay: u32) {
        self.least = self.least.min(delay);
        self.largest = match self.largest {
            [_, 0] => [delay; 2],
            [_, first] if delay > first => [first, delay],
            [second, first] => [second.max(delay), first],
        };
        self.average8 = if self.average8 > 0 { self.average8.wrapping_add(delay.wrapping_sub(self.average())) } else { delay << 3 };
    }

    fn average(&self) -> u32 {
        self.average8 >> 3
    }

    /// d_min + (d_max − d_min) δ of the paper.
    fn threshold(&self) -> u32 {
        let range = self.largest[0].wrapping_sub(self.least);
        self.least.wrapping_add(range.wrapping_mul(THRESHOLD_PERCENT) / 100)
    }

    /// After an indication of congestion the range begins anew: from the present average to twice that.
    fn begin_anew(&mut self) {
        self.least = self.average();
        self.largest = [self.average8 >> 2; 2];
    }
}

/// The inference phase: three round trips after an indication of congestion, in which the window does not grow.
#[derive(Clone, Copy, Debug, Default)]
struct Inference {
    /// When congestion was last indicated, ms; 0 for never.
    indicated: u32,
    /// How long it lasts, ms.
    length: u32,
    /// It goes on.
    active: bool,
}

impl Inference {
    /// An ACK at `now` of what was sent at `sent`, ms.
    fn update(&mut self, now: u32, sent: u32) {
        let rtt = now.wrapping_sub(sent);
        if rtt as i32 > 0 {
            self.length = rtt.wrapping_mul(INFERENCE_ROUND_TRIPS);
        }
        self.active = self.indicated != 0 && now.wrapping_sub(self.indicated) < self.length;
    }
}

impl Lp {
    /// A new one; the peer's clock begins anywhere.
    pub fn new(o: &Options<'_>) -> Lp {
        Lp {
            peer_ahead: Stream::new(o.seed, "lp").next_u32(),
            peer_rate: PeerRate::default(),
            delays: Delays::NONE,
            inference: Inference::default(),
        }
    }

    /// The delay from the peer to here and the difference of the clocks, ms; none if there is nothing to tell it by.
    fn delay(&mut self, v: &View) -> Option<u32> {
        let now = Timestamps { value: v.timestamps.value.wrapping_add(self.peer_ahead), ..v.timestamps };
        self.peer_rate.update(now);
        let sent = now.value.wrapping_mul(self.peer_rate.ms_per_tick()?);
        Some(sent.wrapping_sub(now.echo)).filter(|&delay| delay > 0)
    }
}

impl CongestionController for Lp {
    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        Reno.ssthresh(v, w)
    }

    // The paper's policy: early congestion halves the window; a second indication within the inference phase leaves one packet.
    fn pkts_acked(&mut self, v: &View, w: &mut Window, a: &PktsAcked) {
        if a.rtt_us > 0 {
            if let Some(delay) = self.delay(v) {
                self.delays.take(delay);
            }
        }
        let now = v.timestamps.now;
        self.inference.update(now, v.timestamps.echo);
        if self.delays.average() >= self.delays.threshold() {
            self.delays.begin_anew();
            self.inference.indicated = now;
            w.cwnd = if self.inference.active { 1 } else { (w.cwnd / 2).max(1) };
        }
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !self.inference.active {
            Reno.on_ack(v, w, s);
        }
    }
}

/// Ticks of this side's timestamp clock in a second, and delays in a second: ms.
const TICKS_PER_SECOND: u32 = 1_000;
/// Weight of a new rate in the average of the peer's, as a power of ½.
const RATE_WEIGHT: u32 = 6;
/// δ, per cent: the part of the delay's range above which the path is congested (paper: 15 %).
const THRESHOLD_PERCENT: u32 = 15;
/// Length of the inference phase.
const INFERENCE_ROUND_TRIPS: u32 = 3;

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
            timestamps: Timestamps { now: ms, value: ms - 10, echo: ms - 20 - queue },
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
        assert_eq!((c.peer_rate.hz, c.delays.average8, w.cwnd), (0, 0, 40), "only the clocks are noted");
        ack(&mut c, &mut w, 1_100, 0);
        assert_eq!((c.peer_rate.hz, c.delays.average8, c.delays.least, c.delays.largest[0]), (1_000, 5_010 << 3, 5_010, 10_020));
        assert_eq!((w.cwnd, c.inference.indicated, c.inference.length), (20, 1_100, 60));
    }

    /// Delays of 100 to 200 ms: 15 % of the range are 115 ms. The smoothed delay is 100 + 100/8 = 112 ms after one of 200 ms, and
    /// 112 + 88/8 = 123 ms after two; the first of them is taken for an outlier.
    #[test]
    fn congestion_is_a_smoothed_delay_above_fifteen_percent_of_the_range() {
        let (mut c, _) = lp(0);
        c.delays.take(100);
        c.delays.take(200);
        assert_eq!((c.delays.average8 >> 3, c.delays.largest), (112, [100, 200]));
        c.delays.take(200);
        assert_eq!((c.delays.average8 >> 3, c.delays.largest[0], c.delays.average() >= c.delays.threshold()), (123, 200, true));
        c.delays.average8 = 114 << 3;
        assert_eq!((c.delays.average(), c.delays.threshold()), (114, 115));
    }

    #[test]
    fn an_indication_within_three_round_trips_of_another_leaves_one_packet() {
        let (mut c, mut w) = lp(5_000);
        (0..3).for_each(|i| ack(&mut c, &mut w, 1_000 + 100 * i, 0));
        // The round trip is 20 ms: two are not three.
        c.delays.largest = [5_010; 2];
        c.inference.indicated = 1_241;
        ack(&mut c, &mut w, 1_300, 0);
        assert_eq!((w.cwnd, c.inference.indicated), (1, 1_300));
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
        assert_eq!(c.peer_rate.hz, 1_015);
        let v = View { timestamps: Timestamps { now: 0, value: 1_390, echo: 1_280 }, ..View::default() };
        assert_eq!(c.delay(&v), Some(0u32.wrapping_sub(1_280)));
    }

    #[test]
    fn with_clocks_far_apart_it_is_reno() {
        let (mut c, mut w) = lp(1 << 29);
        (0..200).for_each(|i| ack(&mut c, &mut w, 1_000 + 100 * i, if i < 100 { 0 } else { 1_000 }));
        assert_eq!((c.inference.indicated, w.cwnd), (0, 44));
        assert!(c.delays.average8 >> 3 < c.delays.least);
    }

    #[test]
    fn the_range_forgets_its_farthest_sample() {
        let (mut c, _) = lp(0);
        c.delays.take(100);
        c.delays.take(500);
        assert_eq!(c.delays.largest, [100, 500]);
        c.delays.take(300);
        assert_eq!((c.delays.least, c.delays.largest), (100, [300, 500]));
    }
}
