//! Vegas: keeps between two and four packets in the queue, seen as the difference between the smallest RTT and this round's.
//!
//! **What it is.** Once a round trip the window is compared with what would be in flight without a queue; it moves by one packet.
//! After a loss, and with too few RTT samples in a round, it is Reno.
//! **Source.** Brakmo, Peterson: TCP Vegas (IEEE JSAC 13(8), 1995): congestion avoidance and modified slow start. [`Samples`] and [`Rounds`] serve Veno and YeAH too, which
//! take their estimate of the queue from Vegas.
//! **How it differs.** From the paper, as Linux is seen to do (docs/models/controls/vegas.md): the window doubles in each round of slow start, not in
//! every other one; the smallest RTT of a round is taken, not one packet's; loss recovery stays the sender's; a transmission into an empty
//! network forgets the smallest RTT, so a timeout does. From Linux: nothing known.
//! **What it does not model.** Nothing else.

use super::{AckSample, CaEvent, CongestionController, Options, Param, PktsAcked, Reno, View, Window};
use tcpscape_base::CaState;

/// RTT samples, each one µs longer than measured so that none is zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Samples {
    /// How many there were, wrapping.
    pub count: u16,
    /// The smallest lately, µs.
    pub min: u32,
    /// The smallest of all, µs.
    pub base: u32,
}

impl Samples {
    pub const NONE: Samples = Samples { count: 0, min: NO_RTT, base: NO_RTT };

    /// Takes an acknowledgement's RTT, if it has one.
    pub fn take(&mut self, a: &PktsAcked) {
        if a.rtt_us >= 0 {
            let rtt = (a.rtt_us as u32).wrapping_add(1);
            self.base = self.base.min(rtt);
            self.min = self.min.min(rtt);
            self.count = self.count.wrapping_add(1);
        }
    }

    /// Whether one of them was surely not of a delayed ACK, so that they can be judged.
    pub fn suffice(&self) -> bool {
        self.count > FEW
    }
}

/// Samples round by round: a round ends with the ACK of what was sent after it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    pub samples: Samples,
    /// The state is Open since this round began.
    pub open: bool,
    /// The next sequence number when the round began.
    end: u64,
}

impl Rounds {
    pub fn new() -> Rounds {
        Rounds { samples: Samples::NONE, open: true, end: 0 }
    }

    /// Begins a round without samples.
    fn begin(&mut self, v: &View) {
        *self = Rounds { samples: Samples { base: self.samples.base, ..Samples::NONE }, open: true, end: v.snd_nxt };
    }

    /// Begins a round and forgets the smallest RTT.
    pub fn restart(&mut self, v: &View) {
        self.samples.base = NO_RTT;
        self.begin(v);
    }

    /// The samples of the round that an acknowledgement of `ack` ends, if it does; another round begins.
    pub fn ended_by(&mut self, v: &View, ack: u64) -> Option<Samples> {
        (ack > self.end).then(|| {
            let of_round = self.samples;
            self.samples = Samples { base: of_round.base, ..Samples::NONE };
            self.end = v.snd_nxt;
            of_round
        })
    }

    /// Outside Open no round is judged; with Open a fresh one begins.
    pub fn on_state(&mut self, v: &View, new: CaState) {
        if new == CaState::Open {
            self.begin(v);
        } else {
            self.open = false;
        }
    }

    /// Nothing was in flight: the path may be another one.
    pub fn on_event(&mut self, v: &View, e: CaEvent) {
        if matches!(e, CaEvent::CwndRestart | CaEvent::TxStart) {
            self.restart(v);
        }
    }
}

/// Vegas.
#[derive(Clone, Debug)]
pub struct Vegas {
    rounds: Rounds,
    /// Packets in the queue: fewer let the window grow, more than `beta` let it shrink, more than `gamma` end slow start.
    alpha: u32,
    beta: u32,
    gamma: u32,
}

impl Vegas {
    /// A new one.
    pub fn new(o: &Options<'_>) -> Vegas {
        let get = |i: usize| o.get(&PARAMS[i]) as u32;
        Vegas { rounds: Rounds::new(), alpha: get(0), beta: get(1), gamma: get(2) }
    }

    /// What a round's samples make of the window (the paper's congestion avoidance, and its modified slow start).
    fn adjust(&self, w: &mut Window, acked: u32, of_round: &Samples) {
        let Samples { min: rtt, base, .. } = *of_round;
        let queued = queued(w.cwnd, base, rtt);
        if w.in_slow_start() {
            if queued <= self.gamma {
                w.slow_start(acked);
            } else {
                // One packet more, for what the division lost.
                w.cwnd = w.cwnd.min(at_actual_rate(w.cwnd, base, rtt) + 1);
                w.ssthresh = w.ssthresh.min(w.cwnd);
            }
        } else if queued > self.beta {
            w.cwnd = w.cwnd.saturating_sub(1).max(1);
            w.ssthresh = w.ssthresh.min(w.cwnd);
        } else if queued < self.alpha {
            w.cwnd = w.cwnd.saturating_add(1);
        }
        w.cwnd = w.cwnd.max(LEAST).min(w.clamp);
        // The threshold follows from below, at three quarters in two roundings.
        w.ssthresh = w.ssthresh.max(w.cwnd / 2 + w.cwnd / 4);
    }
}

/// Diff · BaseRTT of the paper: the expected rate less the actual one, times the smallest RTT, is the packets in the queue.
fn queued(cwnd: u32, base: u32, rtt: u32) -> u32 {
    cwnd.wrapping_mul(rtt - base) / base
}

/// The window that carries the actual rate, `cwnd`/`rtt`, without a queue, rounded down.
fn at_actual_rate(cwnd: u32, base: u32, rtt: u32) -> u32 {
    (u64::from(cwnd) * u64::from(base) / u64::from(rtt)) as u32
}

impl CongestionController for Vegas {
    fn init(&mut self, v: &View, _w: &mut Window) {
        self.rounds.restart(v);
    }

    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        Reno.ssthresh(v, w)
    }

    fn pkts_acked(&mut self, _v: &View, _w: &mut Window, a: &PktsAcked) {
        self.rounds.samples.take(a);
    }

    // Slow start goes on even when the window is not used.
    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise {
            return;
        }
        if !self.rounds.open {
            return Reno.on_ack(v, w, s);
        }
        match self.rounds.ended_by(v, s.ack) {
            Some(of_round) if of_round.suffice() => self.adjust(w, s.acked, &of_round),
            Some(_) => Reno.on_ack(v, w, s),
            None if w.in_slow_start() => {
                w.slow_start(s.acked);
            }
            None => {}
        }
    }

    fn on_state(&mut self, v: &View, _w: &mut Window, new: CaState) {
        self.rounds.on_state(v, new);
    }

    fn on_event(&mut self, v: &View, _w: &mut Window, e: CaEvent) {
        self.rounds.on_event(v, e);
    }
}

/// Its parameters, by the names that Linux gives them.
pub(super) const PARAMS: &[Param] = &[
    Param { name: "alpha", about: "packets in the queue below which the window grows", default: 2, min: 0, max: MOST },
    Param { name: "beta", about: "packets in the queue above which the window shrinks", default: 4, min: 0, max: MOST },
    Param { name: "gamma", about: "packets in the queue above which slow start ends", default: 1, min: 0, max: MOST },
];
/// Largest value of a parameter: 31 bits.
const MOST: i64 = 0x7fff_ffff;
/// No sample yet, µs.
const NO_RTT: u32 = 0x7fff_ffff;
/// Samples that are too few to judge: two may both be of delayed ACKs.
const FEW: u16 = 2;
/// Smallest window, packets.
const LEAST: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(snd_nxt: u64) -> View {
        View { snd_nxt, is_cwnd_limited: true, ..View::default() }
    }

    /// A round in which each of `n` samples was `rtt` µs, ended by an ACK of one packet.
    fn round(c: &mut Vegas, w: &mut Window, n: u32, rtt: i64) {
        for _ in 0..n {
            c.pkts_acked(&at(0), w, &PktsAcked { pkts_acked: 1, rtt_us: rtt, in_flight: 0 });
        }
        let end = c.rounds.end;
        c.on_ack(&at(end + 2), w, &AckSample { acked: 1, ack: end + 1, may_raise: true, ..AckSample::default() });
    }

    fn vegas(cwnd: u32, ssthresh: u32) -> (Vegas, Window) {
        let (mut c, mut w) = (Vegas::new(&Options::default()), Window { cwnd, ssthresh, ..Window::default() });
        c.init(&at(0), &mut w);
        (c, w)
    }

    /// At 40 packets, 100 ms and 110 ms, 400 − 363.6 packets/s are 3.6 packets of queue by the actual RTT, 4 by the smallest.
    #[test]
    fn the_queue_and_the_actual_rate() {
        assert_eq!([queued(40, 100_000, 110_000), queued(40, 100_000, 109_999), queued(40, 100_000, 100_000)], [4, 3, 0]);
        assert_eq!((at_actual_rate(40, 100_000, 110_000), at_actual_rate(40, 100_000, 100_000)), (36, 40));
    }

    /// With a smallest RTT of 100 ms: 41 · 4.877/100 = 1.9996 packets in the queue let it grow, 42 · 4.762/100 = 2.00004 do not;
    /// 42 · 11.904/100 = 4.9997 do not let it shrink, 42 · 11.905/100 = 5.0001 do.
    #[test]
    fn moves_by_one_packet_to_keep_two_to_four_in_the_queue() {
        let (mut c, mut w) = vegas(40, 20);
        round(&mut c, &mut w, 3, 99_999);
        assert_eq!(w.cwnd, 41, "none in the queue");
        for (rtt, cwnd) in [(104_877, 42), (104_762, 42), (111_904, 42), (111_905, 41), (112_195, 41), (104_000, 42)] {
            round(&mut c, &mut w, 3, rtt - 1);
            assert_eq!(w.cwnd, cwnd, "{rtt} µs");
        }
        assert_eq!(w.ssthresh, 31, "three quarters of 42, in two roundings: 21 + 10");
    }

    #[test]
    fn the_queue_ends_slow_start_at_the_actual_rate() {
        let (mut c, mut w) = vegas(64, crate::cc::INFINITE_SSTHRESH);
        round(&mut c, &mut w, 3, 99_999);
        assert_eq!(w.cwnd, 65);
        // 65 · 3 / 100 = 1.95 packets in the queue: not more than one. 65 · 100/103 = 63.1.
        round(&mut c, &mut w, 3, 102_999);
        assert_eq!(w.cwnd, 66);
        // 66 · 4 / 100 = 2.64; 66 · 100/104 = 63.46, and one.
        round(&mut c, &mut w, 3, 103_999);
        assert_eq!((w.cwnd, w.ssthresh), (64, 64));
    }

    #[test]
    fn with_two_samples_a_round_it_is_reno() {
        let (mut c, mut w) = vegas(2, 2);
        round(&mut c, &mut w, 2, 1_000);
        round(&mut c, &mut w, 2, 9_000);
        assert_eq!((w.cwnd, w.cwnd_cnt), (3, 0));
    }

    #[test]
    fn within_a_round_only_slow_start_grows_the_window() {
        let (mut c, mut w) = vegas(10, 14);
        let s = AckSample { acked: 3, may_raise: true, ..AckSample::default() };
        // It does not ask whether the window is used.
        c.on_ack(&View::default(), &mut w, &s);
        c.on_ack(&View::default(), &mut w, &s);
        c.on_ack(&View::default(), &mut w, &s);
        assert_eq!((w.cwnd, w.cwnd_cnt), (14, 0));
    }

    #[test]
    fn recovery_is_renos_and_ends_in_a_fresh_round() {
        let (mut c, mut w) = vegas(10, 10);
        round(&mut c, &mut w, 3, 50_000);
        c.on_state(&at(0), &mut w, CaState::Disorder);
        round(&mut c, &mut w, 3, 60_000);
        assert_eq!((w.cwnd, w.cwnd_cnt), (11, 1));
        c.on_state(&at(900), &mut w, CaState::Open);
        assert_eq!((c.rounds.end, c.rounds.samples.count, c.rounds.samples.base), (900, 0, 50_001));
        c.on_event(&at(950), &mut w, CaEvent::TxStart);
        assert_eq!((c.rounds.end, c.rounds.samples.base), (950, NO_RTT), "nothing in flight: everything may have changed");
    }
}
