//! DCTCP: the window shrinks in proportion to the share of packets that met congestion.
//!
//! **What it is.** Reno's growth; once a round trip the share of packets delivered with a mark enters a moving average α, and an
//! echo of congestion takes α/2 off the window. The receiver tells marked and unmarked packets apart (`receiver/ecn.rs`).
//! **Source.** RFC 8257; Linux: `dctcp_update_alpha()`, `dctcp_ssthresh()`, `dctcp_react_to_loss()`, `dctcp_init()`.
//! **How it differs.** From RFC 8257, as Linux does: packets are counted, not bytes. From Linux: nothing known. A connection
//! whose peer does not agree to ECN is Reno.
//! **What it does not model.** Nothing of Linux's.

use super::reno::half;
use super::{AckSample, CaEvent, CongestionController, InAck, Options, Param, Reno, Snapshot, View, Window};
use tcpscape_base::CaState;

/// α = 1 (`DCTCP_MAX_ALPHA`).
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
    loss_cwnd: u32,
    /// When `snd_una` reaches it, a round trip is over.
    round_end: u64,
    /// `delivered` and `delivered_ce` at the round trip's begin.
    at_begin: (u32, u32),
    /// The peer did not agree to ECN.
    fallen_back: bool,
}

impl Dctcp {
    /// A new one.
    pub fn new(o: &Options<'_>) -> Dctcp {
        Dctcp {
            shift_g: o.get(&SHIFT_G) as u32,
            alpha: o.get(&ALPHA_ON_INIT) as u32,
            loss_cwnd: 0,
            round_end: 0,
            at_begin: (0, 0),
            fallen_back: false,
        }
    }

    fn begin_round(&mut self, v: &View) {
        self.round_end = v.snd_nxt;
        self.at_begin = (v.delivered, v.delivered_ce);
    }

    // RFC 8257 §3.5: a loss halves, whatever α says.
    fn halve(&mut self, w: &mut Window) {
        self.loss_cwnd = w.cwnd;
        w.ssthresh = half(w);
    }
}

impl CongestionController for Dctcp {
    fn name(&self) -> &'static str {
        "dctcp"
    }
    fn needs_ecn(&self) -> bool {
        true
    }
    fn wants_in_ack(&self) -> bool {
        true
    }

    fn init(&mut self, v: &View, _w: &mut Window) {
        self.fallen_back = !v.ecn_ok;
        self.begin_round(v);
    }

    // RFC 8257 §3.3, equation 2: cwnd · (1 − α/2).
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        if self.fallen_back {
            return half(w);
        }
        self.loss_cwnd = w.cwnd;
        (w.cwnd - ((u64::from(w.cwnd) * u64::from(self.alpha)) >> 11) as u32).max(2)
    }

    // RFC 8257 §3.3, equation 1: α ← (1 − g)·α + g·F, once a round trip.
    fn in_ack(&mut self, v: &View, _w: &mut Window, _a: InAck) {
        if self.fallen_back || v.snd_una < self.round_end {
            return;
        }
        // The last of α does not linger below the shift's reach.
        let decay = self.alpha >> self.shift_g;
        self.alpha -= if decay == 0 { self.alpha } else { decay };
        let marked = v.delivered_ce.wrapping_sub(self.at_begin.1);
        if marked > 0 {
            let delivered = v.delivered.wrapping_sub(self.at_begin.0).max(1);
            let share = (u64::from(marked) << (10 - self.shift_g)) / u64::from(delivered);
            self.alpha = (u64::from(self.alpha) + share).min(u64::from(ALPHA_ONE)) as u32;
        }
        self.begin_round(v);
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
        w.cwnd.max(if self.fallen_back { w.prior_cwnd } else { self.loss_cwnd })
    }

    fn snapshot(&self) -> Snapshot {
        vec![("alpha", f64::from(self.alpha) / f64::from(ALPHA_ONE))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dctcp(v: &View) -> Dctcp {
        let mut d = Dctcp::new(&Options::default());
        d.init(v, &mut Window::default());
        d
    }
    fn view(snd_una: u64, snd_nxt: u64, delivered: u32, delivered_ce: u32) -> View {
        View { snd_una, snd_nxt, delivered, delivered_ce, ecn_ok: true, ..View::default() }
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
        let v = View { ecn_ok: false, ..view(1, 1, 0, 0) };
        let mut d = Dctcp { alpha: 0, ..dctcp(&v) };
        let w = Window { cwnd: 50, prior_cwnd: 90, ..Window::default() };
        assert_eq!((d.ssthresh(&v, &w), d.undo(&v, &w)), (25, 90));
    }
}
