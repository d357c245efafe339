//! Fixed: a constant window or a constant rate, whatever happens; the baseline that the others must beat.
//!
//! **What it is.** Without a rate, `cwnd` packets are kept in flight. With one, packets are paced at it, and the window is out of the
//! way: twice what the rate needs in a smoothed RTT, and ten packets more, so that it holds only who outruns the path.
//! **Source.** None. The default window is what TCP had before window scaling (RFC 9293 §3.1): 65,535 bytes are 45 packets of
//! 1,448 bytes. A rate without feedback is what RFC 8085 §3.1 warns of, and why.
//! **How it differs.** It does not react to loss, ECN or delay: it only sends again what was lost. After a timeout the sender's own rule,
//! one packet, holds until the next ACK. **What it does not model.** Rates that change; a rate measured in packets or on the wire:
//! it counts payload, as Linux's pacing does.

use super::{AckSample, CongestionController, Options, Param, View, Window, INFINITE_SSTHRESH};

/// A constant window or rate.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// Window, packets.
    cwnd: u32,
    /// Pacing rate, bytes per second; 0 for none.
    rate: u64,
}

impl Fixed {
    /// A new one.
    pub fn new(o: &Options<'_>) -> Fixed {
        Fixed { cwnd: o.get(&CWND) as u32, rate: o.get(&RATE) as u64 / 8 }
    }

    /// The window: what was asked for, or room for twice the rate.
    fn window(&self, v: &View) -> u32 {
        if self.rate == 0 {
            return self.cwnd;
        }
        let bytes = u128::from(self.rate) * 2 * u128::from(rtt_us(v)) / 1_000_000;
        let packets = bytes / u128::from(v.mss.max(1)) + u128::from(SOME);
        packets.min(u128::from(u32::MAX)) as u32
    }

    fn set(&self, v: &View, w: &mut Window) {
        let cwnd = self.window(v);
        w.cwnd = cwnd.min(w.clamp);
        // Without a rate this one only sizes bursts, as Linux does for windows that are not paced.
        w.pacing_rate = if self.rate > 0 { self.rate } else { u64::from(v.mss) * u64::from(cwnd) * 1_200_000 / rtt_us(v) };
    }
}

/// The smoothed RTT, µs; 1 ms before the first sample.
fn rtt_us(v: &View) -> u64 {
    u64::from(if v.srtt_us > 0 { (v.srtt_us >> 3).max(1) } else { 1_000 })
}

impl CongestionController for Fixed {
    fn init(&mut self, v: &View, w: &mut Window) {
        w.ssthresh = INFINITE_SSTHRESH;
        w.paced = self.rate > 0;
        self.set(v, w);
    }

    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        w.ssthresh
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, _s: &AckSample) {
        self.set(v, w);
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn reacts_to_loss(&self) -> bool {
        false
    }
}

/// Its parameters.
pub(super) const PARAMS: &[Param] = &[CWND, RATE];
/// 65,535 bytes, the largest window without window scaling, in packets of 1,448.
const CWND: Param = Param { name: "cwnd", about: "window, packets, when there is no rate", default: 45, min: 1, max: 1 << 24 };
const RATE: Param =
    Param { name: "rate", about: "pacing rate of the payload, bit/s; 0 for none", default: 0, min: 0, max: 1_000_000_000_000 };
/// Packets of window beyond twice the rate, for a first RTT that was too short.
const SOME: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::CaEvent;
    use std::collections::BTreeMap;
    use tcpscape_base::CaState;

    fn fixed(set: &[(&str, i64)]) -> Fixed {
        let set: BTreeMap<String, i64> = set.iter().map(|&(k, x)| (k.to_string(), x)).collect();
        Fixed::new(&Options { seed: 0, set: Some(&set) })
    }

    /// 1,448-byte packets, 40 ms.
    fn view() -> View {
        View { mss: 1448, srtt_us: 40_000 << 3, ..View::default() }
    }

    #[test]
    fn the_window_is_what_was_asked_for_and_survives_a_loss_and_a_timeout() {
        let (mut f, mut w) = (fixed(&[("cwnd", 64)]), Window::default());
        f.init(&view(), &mut w);
        // Bursts are sized for 1.2 · 64 · 1448 B / 40 ms.
        assert_eq!((w.cwnd, w.paced, w.pacing_rate), (64, false, 2_780_160));
        assert_eq!(f.ssthresh(&view(), &w), INFINITE_SSTHRESH);
        f.on_state(&view(), &mut w, CaState::Loss);
        w.cwnd = 1;
        f.on_event(&view(), &mut w, CaEvent::Loss);
        f.on_ack(&view(), &mut w, &AckSample::default());
        assert_eq!(w.cwnd, 64);
    }

    /// 10 Mbit/s: 1.25 MB/s; twice of it in 40 ms are 100,000 B, 69 packets, and ten more.
    #[test]
    fn a_rate_is_paced_and_its_window_is_out_of_the_way() {
        let (mut f, mut w) = (fixed(&[("rate", 10_000_000)]), Window::default());
        f.init(&view(), &mut w);
        assert_eq!((w.cwnd, w.paced, w.pacing_rate), (79, true, 1_250_000));
        f.on_ack(&View { srtt_us: 400_000 << 3, ..view() }, &mut w, &AckSample::default());
        assert_eq!((w.cwnd, w.pacing_rate), (700, 1_250_000));
        w.clamp = 20;
        f.on_ack(&view(), &mut w, &AckSample::default());
        assert_eq!(w.cwnd, 20);
    }

    #[test]
    fn by_default_it_is_a_window_of_64_kib() {
        let f = Fixed::new(&Options::default());
        assert_eq!((f.cwnd, f.rate), (45, 0));
        assert_eq!(65_535 / 1_448, 45);
    }
}
