//! Hybla: a flow over a long path, a satellite's, grows as fast as one with an RTT of 25 ms would.
//!
//! **What it is.** With ρ = RTT / 25 ms, at least 1: in slow start an ACK adds 2^ρ − 1 packets, in congestion avoidance ρ²/cwnd.
//! The window starts at ρ packets. A loss halves it, as Reno's.
//! **Source.** Caini, Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", Int. J. Satellite
//! Communications and Networking 22, 2004: ρ, and the increments per ACK.
//! **How it differs.** From the paper, as Linux is seen to do (docs/models/controls/hybla.md): ρ follows the smallest smoothed RTT and is kept in eighths,
//! an ACK counts once whatever it covers, outside Open it is Reno, the window never exceeds 65,535 packets, no pacing and no packet spacing
//! are asked for. From Linux: nothing known.
//! **What it does not model.** Nothing known.

use super::reno::held_by_window;
use super::{AckSample, CongestionController, Options, Param, Reno, View, Window};
use tcpscape_base::CaState;

/// Hybla.
#[derive(Clone, Debug)]
pub struct Hybla {
    /// The reference RTT, µs.
    rtt0_us: u32,
    /// The state is Open; it is Reno otherwise.
    is_open: bool,
    rho: Rho,
    /// Growth not yet given, 1/128 packets: less than a packet.
    owed: u32,
    /// Smallest smoothed RTT, µs << 3.
    srtt_min: u32,
}

/// ρ = RTT/RTT0, at least 1, in eighths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rho(u32);

impl Rho {
    const ONE: u32 = 8;

    /// Of a smoothed RTT in µs << 3: it comes in eighths.
    fn of(srtt_us: u32, rtt0_us: u32) -> Rho {
        Rho((srtt_us / rtt0_us).max(Rho::ONE))
    }

    fn whole(self) -> u32 {
        self.0 / Rho::ONE
    }

    /// Growth for an ACK in slow start: 2^ρ − 1 packets, in 1/128. The whole part of ρ is 16 at most.
    fn slow_start_step(self) -> u32 {
        let power = POWERS[(self.0 % Rho::ONE) as usize] << self.whole().min(WHOLE_MOST);
        power - PACKET
    }

    /// Growth for an ACK in congestion avoidance: ρ²/cwnd packets, in 1/128.
    fn avoidance_step(self, cwnd: u32) -> u32 {
        self.0.wrapping_mul(self.0).wrapping_mul(PACKET / (Rho::ONE * Rho::ONE)) / cwnd
    }
}

impl Hybla {
    /// One with parameters from [`PARAMS`].
    pub fn new(o: &Options<'_>) -> Hybla {
        Hybla { rtt0_us: o.get(&RTT0) as u32 * 1_000, is_open: true, rho: Rho(Rho::ONE), owed: 0, srtt_min: 0 }
    }

    /// Takes the present smoothed RTT.
    fn measure(&mut self, v: &View) {
        self.rho = Rho::of(v.srtt_us, self.rtt0_us);
        self.srtt_min = v.srtt_us;
    }

    /// Lets the window grow by `step` and what is owed; what is less than a packet is owed to the next ACK.
    fn grow(&mut self, w: &mut Window, step: u32) {
        w.cwnd = w.cwnd.saturating_add(step / PACKET);
        self.owed += step % PACKET;
        if self.owed >= PACKET {
            self.owed %= PACKET;
            w.cwnd = w.cwnd.saturating_add(1);
            w.cwnd_cnt = 0;
        }
    }

    // Steps of less than a packet are counted: a window of steps of less than 1/128 packet is a packet, as Reno's.
    fn avoid_congestion(&mut self, w: &mut Window) {
        let step = self.rho.avoidance_step(w.cwnd);
        if step < PACKET {
            w.cwnd_cnt = w.cwnd_cnt.saturating_add(1);
        }
        self.grow(w, step);
        if step == 0 && w.cwnd_cnt >= w.cwnd {
            w.cwnd += 1;
            w.cwnd_cnt = 0;
        }
    }
}

impl CongestionController for Hybla {
    fn init(&mut self, v: &View, w: &mut Window) {
        w.clamp = CLAMP;
        self.measure(v);
        w.cwnd = self.rho.whole();
    }

    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        Reno.ssthresh(v, w)
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise {
            return;
        }
        if v.srtt_us < self.srtt_min {
            self.measure(v);
        }
        if !self.is_open {
            Reno.on_ack(v, w, s);
        } else if held_by_window(v, w) {
            if w.in_slow_start() {
                self.grow(w, self.rho.slow_start_step());
                w.cwnd = w.cwnd.min(w.ssthresh);
            } else {
                self.avoid_congestion(w);
            }
            w.cwnd = w.cwnd.min(w.clamp);
        }
    }

    fn on_state(&mut self, _v: &View, _w: &mut Window, new: CaState) {
        self.is_open = new == CaState::Open;
    }
}

/// Its parameters, by the names that Linux gives them.
pub const PARAMS: &[Param] = &[RTT0];

const RTT0: Param = Param { name: "rtt0", about: "reference round-trip time, ms", default: 25, min: 1, max: 4_000_000 };

/// A packet in the unit of steps, 1/128.
const PACKET: u32 = 128;
/// Slow start uses at most this whole part of ρ.
const WHOLE_MOST: u32 = 16;
/// Largest window, packets.
const CLAMP: u32 = 65_535;
/// 2^(n/8) in 1/128, rounded down.
const POWERS: [u32; 8] = [128, 139, 152, 165, 181, 197, 215, 234];

#[cfg(test)]
mod tests {
    use super::*;

    /// With a smoothed RTT of `ms`.
    fn at(ms: u32) -> View {
        View { is_cwnd_limited: true, hz: 100, srtt_us: ms * 8_000, ..View::default() }
    }

    fn started(ms: u32) -> (Hybla, Window) {
        let (mut h, mut w) = (Hybla::new(&Options::default()), Window::default());
        h.init(&at(ms), &mut w);
        (h, w)
    }

    fn ack(n: u32) -> AckSample {
        AckSample { acked: n, may_raise: true, ..Default::default() }
    }

    #[test]
    fn starts_with_rho_packets() {
        assert_eq!([10, 25, 60, 100, 600].map(|ms| started(ms).1.cwnd), [1, 1, 2, 4, 24]);
        assert_eq!((started(60).0.rho.0, started(60).1.clamp), (19, 65_535));
    }

    #[test]
    fn powers_of_two() {
        for (n, p) in POWERS.iter().enumerate() {
            assert_eq!(*p, (128.0 * 2f64.powf(n as f64 / 8.0)) as u32);
        }
        // ρ = 4: 15 packets an ACK; ρ = 1: one. ρ = 24: 2^16 − 1.
        assert_eq!([100, 25, 600].map(|ms| started(ms).0.rho.slow_start_step()), [15 * 128, 128, 65_535 * 128]);
    }

    #[test]
    fn slow_start_by_acks() {
        let (mut h, mut w) = started(60);
        // ρ = 19/8: 4 · 165/128 − 1 = 4 + 20/128 packets.
        h.on_ack(&at(60), &mut w, &ack(2));
        assert_eq!((w.cwnd, h.owed), (6, 20));
        w.ssthresh = 9;
        h.on_ack(&at(60), &mut w, &ack(2));
        assert_eq!((w.cwnd, h.owed), (9, 40));
    }

    #[test]
    fn congestion_avoidance_is_rho_squared_a_round_trip() {
        let (mut h, mut w) = started(100);
        (w.cwnd, w.ssthresh) = (64, 2);
        // 16/64 of a packet an ACK.
        for _ in 0..3 {
            h.on_ack(&at(100), &mut w, &ack(1));
        }
        assert_eq!((w.cwnd, h.owed, w.cwnd_cnt), (64, 96, 3));
        h.on_ack(&at(100), &mut w, &ack(1));
        assert_eq!((w.cwnd, h.owed, w.cwnd_cnt), (65, 0, 0));
    }

    #[test]
    fn a_step_of_nothing_is_renos() {
        let (mut h, mut w) = started(25);
        (w.cwnd, w.ssthresh) = (129, 2);
        for _ in 0..128 {
            h.on_ack(&at(25), &mut w, &ack(1));
        }
        assert_eq!((w.cwnd, w.cwnd_cnt), (129, 128));
        h.on_ack(&at(25), &mut w, &ack(1));
        assert_eq!((w.cwnd, w.cwnd_cnt), (130, 0));
    }

    #[test]
    fn outside_open_it_is_reno() {
        let (mut h, mut w) = started(100);
        (w.cwnd, w.ssthresh) = (10, 100);
        h.on_state(&at(100), &mut w, CaState::Disorder);
        h.on_ack(&at(100), &mut w, &ack(2));
        assert_eq!(w.cwnd, 12);
        h.on_state(&at(100), &mut w, CaState::Open);
        h.on_ack(&at(100), &mut w, &ack(2));
        assert_eq!(w.cwnd, 27);
    }

    #[test]
    fn rho_follows_the_smallest_smoothed_rtt_even_when_the_window_is_not_used() {
        let (mut h, mut w) = started(100);
        h.on_ack(&at(200), &mut w, &ack(1));
        assert_eq!(h.rho, Rho(32));
        h.on_ack(&View { is_cwnd_limited: false, ..at(50) }, &mut w, &ack(1));
        assert_eq!(h.rho, Rho(16));
    }
}
