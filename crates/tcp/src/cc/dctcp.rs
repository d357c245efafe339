//! DCTCP: the window shrinks in proportion to the share of packets that met congestion.
//!
//! **What it is.** Reno's growth; once a round trip the share of packets delivered with a mark enters a moving average α, and an
//! echo of congestion takes α/2 off the window. The receiver tells marked and unmarked packets apart (`receiver/ecn.rs`).
//! **Source.** RFC 8257.
//! **How it differs.** From RFC 8257, as Linux is seen to do (docs/models/controls/dctcp.md): packets are counted, not bytes. From Linux: nothing known. A connection
//! whose peer does not agree to ECN is Reno.
//! **What it does not model.** Nothing of Linux's.

use super::reno::half;
use super::{AckSample, CaEvent, CongestionController, InAck, Options, Param, Reno, View, Window};
use tcpscape_base::CaState;

/// α = 1, in 1/1024.
const ALPHA_ONE: u32 = 1024;
/// The weight of a new share in α is 2⁻ᵍ (RFC 8257 §4.2 asks for 1/16).
const SHIFT_G: Param =
    Param { name: "dctcp_shift_g", about: "weight of a round trip's share in alpha, as a power of 1/2", default: 4, min: 0, max: 10 };
/// α at the start (RFC 8257 §4.2 asks for 1).
const ALPHA_ON_INIT: Param =
    Param { name: "dctcp_alpha_on_init", about: "alpha at the start, in 1/1024", default: ALPHA_ONE as i64, min: 0, max: ALPHA_ONE as i64 };

/// Parameters.
pub(super) const PARAMS: &[Param] = &[SHIFT_G, ALPHA_ON_INIT];

/// DCTCP.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    shift_g: u32,
    /// Moving average of the marked share, 1/1024.
    alpha: u32,
    /// Window before the last reduction, packets.
    before_reduction: u32,
    round: ObservationWindow,
    /// The peer did not agree to ECN.
    fallen_back: bool,
}

/// An observation window of RFC 8257 §3.3: a round trip over which marks are counted.
#[derive(Clone, Copy, Debug, Default)]
struct ObservationWindow {
    /// It is over when `snd_una` reaches this.
    end: u64,
    /// Packets delivered, and delivered with a mark, before it.
    delivered: u32,
    marked: u32,
}

impl ObservationWindow {
    fn begin(v: &View) -> ObservationWindow {
        ObservationWindow { end: v.snd_nxt, delivered: v.counts.delivered, marked: v.counts.delivered_ce }
    }

    /// Packets delivered with a mark, and delivered, since it began.
    fn counts(&self, v: &View) -> (u32, u32) {
        (v.counts.delivered_ce.wrapping_sub(self.marked), v.counts.delivered.wrapping_sub(self.delivered))
    }
}

/// α ← (1 − g) α + g F with F = `marked`/`delivered` and g = 2⁻`shift` (RFC 8257 §3.3), each term rounded down. An α that the shift
/// would not lower falls to 0: it would never end.
fn next_alpha(alpha: u32, marked: u32, delivered: u32, shift: u32) -> u32 {
    let decayed = match alpha >> shift {
        0 => 0,
        decay => alpha - decay,
    };
    let share = (u64::from(marked) * u64::from(ALPHA_ONE >> shift)) / u64::from(delivered.max(1));
    (u64::from(decayed) + share).min(u64::from(ALPHA_ONE)) as u32
}

/// cwnd · (1 − α/2), two packets at least (RFC 8257 §3.3).
fn reduced(cwnd: u32, alpha: u32) -> u32 {
    let cut = u64::from(cwnd) * u64::from(alpha) / u64::from(2 * ALPHA_ONE);
    (cwnd - cut as u32).max(2)
}

impl Dctcp {
    /// A new one.
    pub fn new(o: &Options<'_>) -> Dctcp {
        Dctcp {
            shift_g: o.get(&SHIFT_G) as u32,
            alpha: o.get(&ALPHA_ON_INIT) as u32,
            before_reduction: 0,
            round: ObservationWindow::default(),
            fallen_back: false,
        }
    }

    // RFC 8257 §3.5: a loss halves, whatever α says.
    fn halve(&mut self, w: &mut Window) {
        self.before_reduction = w.cwnd;
        w.ssthresh = half(w);
    }
}

impl CongestionController for Dctcp {
    fn needs_ecn(&self) -> bool {
        true
    }
    fn wants_in_ack(&self) -> bool {
        true
    }

    fn init(&mut self, v: &View, _w: &mut Window) {
        self.fallen_back = !v.ecn.is_on();
        self.round = ObservationWindow::begin(v);
    }

    // RFC 8257 §3.3: α says how far.
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        if self.fallen_back {
            return half(w);
        }
        self.before_reduction = w.cwnd;
        reduced(w.cwnd, self.alpha)
    }

    // RFC 8257 §3.3: once a round trip.
    fn in_ack(&mut self, v: &View, _w: &mut Window, _a: InAck) {
        if !self.fallen_back && v.snd_una >= self.round.end {
            let (marked, delivered) = self.round.counts(v);
            self.alpha = next_alpha(self.alpha, marked, delivered, self.shift_g);
            self.round = ObservationWindow::begin(v);
        }
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        Reno.on_ack(v, w, s);
    }

    fn on_state(&mut self, v: &View, w: &mut Window, new: CaState) {
        if !self.fallen_back && new == CaState::Recovery && v.ca_state != new {
            self.halve(w);
        }
    }

    fn on_event(&mut self, _v: &View, w: &mut Window, e: CaEvent) {
        if !self.fallen_back && e == CaEvent::Loss {
            self.halve(w);
        }
    }

    fn undo(&mut self, _v: &View, w: &Window) -> u32 {
        w.cwnd.max(if self.fallen_back { w.prior_cwnd } else { self.before_reduction })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Counts, EcnMode};

    fn dctcp(v: &View) -> Dctcp {
        let mut d = Dctcp::new(&Options::default());
        d.init(v, &mut Window::default());
        d
    }
    fn view(snd_una: u64, snd_nxt: u64, delivered: u32, delivered_ce: u32) -> View {
        View { snd_una, snd_nxt, counts: Counts { delivered, delivered_ce, ..Counts::default() }, ecn: EcnMode::Classic, ..View::default() }
    }

    /// 16 of 64 packets marked: α = 1024 − 64 + (16·64)/64 = 976; then 16 rounds without a mark leave 976·(15/16)^16, about 348.
    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut d = dctcp(&view(1, 65, 0, 0));
        let mut w = Window::default();
        d.in_ack(&view(64, 65, 63, 16), &mut w, InAck::default());
        assert_eq!(d.alpha, 1024, "the round trip is not over");
        d.in_ack(&view(65, 129, 64, 16), &mut w, InAck::default());
        assert_eq!(d.alpha, 1024 - 64 + 16);
        for i in 0..16 {
            d.in_ack(&view(129 + i, 129 + i, 64, 16), &mut w, InAck::default());
        }
        assert!((346..=356).contains(&d.alpha), "{}", d.alpha);
    }

    /// RFC 8257 §3.3 with g = 1/16: ⌊1024/16⌋ = 64 of α go, and 64 · 10/30 = 21.3 come for a third of the packets; at most 1.
    #[test]
    fn alpha_is_a_moving_average() {
        assert_eq!(next_alpha(1_024, 10, 30, 4), 1_024 - 64 + 21);
        assert_eq!([next_alpha(1_000, 30, 30, 0), next_alpha(1_024, 9, 3, 4), next_alpha(500, 0, 0, 4)], [1_024, 1_024, 500 - 31]);
        assert_eq!([reduced(80, 256), reduced(80, 1_024), reduced(3, 1_024), reduced(2, 1_024)], [70, 40, 2, 2]);
    }

    /// With α = 1/4 a mark takes an eighth off the window, a loss half; the threshold is never below two.
    #[test]
    fn a_mark_costs_less_than_a_loss() {
        let mut d = Dctcp { alpha: 256, ..dctcp(&view(1, 1, 0, 0)) };
        let mut w = Window { cwnd: 80, ..Window::default() };
        assert_eq!(d.ssthresh(&view(1, 1, 0, 0), &w), 70);
        d.on_state(&view(1, 1, 0, 0), &mut w, CaState::Cwr);
        assert_eq!(w.ssthresh, Window::default().ssthresh);
        d.on_state(&view(1, 1, 0, 0), &mut w, CaState::Recovery);
        assert_eq!(w.ssthresh, 40);
        w.cwnd = 40;
        assert_eq!(d.undo(&view(1, 1, 0, 0), &w), 80);
        w.cwnd = 2;
        d.on_event(&view(1, 1, 0, 0), &mut w, CaEvent::Loss);
        assert_eq!(w.ssthresh, 2);
    }

    /// The smallest α that still decays by shifting is 16: below it falls to 0 at once.
    #[test]
    fn alpha_does_not_linger() {
        let mut d = Dctcp { alpha: 15, ..dctcp(&view(1, 1, 0, 0)) };
        d.in_ack(&view(1, 1, 0, 0), &mut Window::default(), InAck::default());
        assert_eq!(d.alpha, 0);
    }

    #[test]
    fn without_ecn_it_is_reno() {
        let v = View { ecn: EcnMode::Off, ..view(1, 1, 0, 0) };
        let mut d = Dctcp { alpha: 0, ..dctcp(&v) };
        let w = Window { cwnd: 50, prior_cwnd: 90, ..Window::default() };
        assert_eq!((d.ssthresh(&v, &w), d.undo(&v, &w)), (25, 90));
    }
}
