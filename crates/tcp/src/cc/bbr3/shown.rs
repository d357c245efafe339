//! What BBR version 3 shows of itself, by the draft's names: packets, packets/s, s.
//!
//! **What it is.** The variables that the draft's test cases speak of (its appendix), for a record of the control.
//! **Source.** draft-ietf-ccwg-bbr-06 §2, appendix A. **How it differs, what it does not model.** See the header of `bbr3/mod.rs`.

use super::super::bbr::{Bw, BW_SCALE, UNIT};
use super::Bbr3;
use crate::cc::{Observation, View, Window};

/// Its states, as the draft names them.
pub(super) const STATES: &[&str] = &["STARTUP", "DRAIN", "PROBE_DOWN", "PROBE_CRUISE", "PROBE_REFILL", "PROBE_UP", "PROBE_RTT"];
/// Packets/s of a bandwidth of 1.
const PER_SECOND: f64 = 1e6 / (1u64 << BW_SCALE) as f64;

impl Bbr3 {
    /// Its state and its variables.
    pub(super) fn show(&self, v: &View, w: &Window, out: &mut Observation) {
        let name = self.state.name();
        let full = STATES.iter().copied().find(|s| s.strip_prefix("PROBE_").unwrap_or(s) == name || *s == name);
        out.state(full.unwrap_or(name), STATES);
        let (pacing, window) = self.gains();
        out.count("pacing_gain", f64::from(pacing) / f64::from(UNIT));
        out.count("cwnd_gain", f64::from(window) / f64::from(UNIT));
        out.count("round", self.rounds.count);
        out.count("rounds_since_probe", self.rounds.since_probe);
        out.count("full_bw_count", self.full.rounds);
        out.count("full_bw_now", u8::from(self.full.now));
        out.count("full_bw_reached", u8::from(self.full.reached));
        out.count("idle_restart", u8::from(self.idle_restart));
        out.count("loss_in_round", u8::from(self.latest.lossy));
        out.count("probe_too_high", u8::from(self.probe.too_high));
        out.bound("inflight_longterm", self.long.inflight, 1.0);
        out.bound("inflight_shortterm", self.short.inflight, 1.0);
        out.bound("bw_shortterm", self.short.bw, PER_SECOND);
        out.number("max_bw", of(self.long.max_bw()));
        out.number("bw", of(self.bw));
        out.number("full_bw", of(self.full.bw));
        out.number("bw_latest", of(self.latest.bw));
        out.number("inflight_latest", self.latest.inflight);
        out.bound("min_rtt", self.min_rtt.rtt, 1e-6);
        out.number("extra_acked", self.aggregation.extra());
        out.number("bdp", self.inflight(v, w, self.long.max_bw(), UNIT));
        out.bound("headroom", self.headroom(), 1.0);
        out.number("bw_probe_wait", self.probe.wait() as f64 * 1e-6);
    }
}

/// A bandwidth in packets/s.
fn of(bw: Bw) -> f64 {
    f64::from(bw) * PER_SECOND
}
