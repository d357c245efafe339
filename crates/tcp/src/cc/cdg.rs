//! CDG, CAIA delay gradient: backs off, at random, when RTTs rise from round to round; loss-based flows do not push it away.
//!
//! **What it is.** The smallest and the largest RTT of each round are compared with the last round's, summed over eight rounds: the
//! more they rise, the likelier the window shrinks to 0.71 of it, as after a congestion signal, through CWR. Back-offs that change
//! nothing are given up after five. After a loss the window returns to what a Reno flow would have (the shadow window).
//! **Source.** Hayes, Armitage: "Revisiting TCP congestion control using delay gradients" (IFIP Networking 2011); Linux 6.1:
//! `tcp_cdg_cong_avoid()`, `tcp_cdg_grad()`, `tcp_cdg_backoff()`, `tcp_cdg_acked()`, `tcp_cdg_ssthresh()`, `nexp_u32()`.
//! **How it differs.** From the paper, as Linux does: HyStart ends slow start, the back-off factor replaces G and the window length,
//! the shadow window is at most twice the window. From Linux: nothing known.
//! **What it does not model.** A kernel without memory for the gradients.

use super::reno::held_by_window;
use super::{AckSample, CaEvent, CongestionController, Options, Param, PktsAcked, Reno, Snapshot, View, Window};
use tcpscape_base::Stream;

mod gradient;
mod hystart;
use gradient::{is_drawn, Gradient, Range};
use hystart::HyStart;

/// CDG.
#[derive(Clone, Debug)]
pub struct Cdg {
    settings: Settings,
    random: Stream,
    /// RTTs of this round and of the last one, µs.
    rtt: Range,
    last_rtt: Range,
    gradient: Gradient,
    hystart: HyStart,
    path: PathState,
    /// ACKs that may have been delayed: counted up by an ACK of several packets, down by one of a single packet (`delack`).
    delayed: u8,
    /// The window that a Reno flow would have, packets (`shadow_wnd`).
    shadow: u32,
    /// Back-offs since the last that had an effect (`backoff_cnt`).
    backoffs: u32,
    /// Sequence number whose acknowledgement ends the round (`rtt_seq`).
    round_end: u64,
}

/// The module's parameters, read once.
#[derive(Clone, Copy, Debug)]
struct Settings {
    backoff_beta: u32,
    backoff_factor: u32,
    hystart_detect: u32,
    use_ineff: u32,
    use_shadow: bool,
    use_tolerance: bool,
}

/// What the queue seems to be (`enum cdg_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathState {
    Unknown,
    /// RTTs change: a loss is no sign of a full queue.
    NotFull,
    /// The smallest RTT rises, the largest does not: the queue is full.
    Full,
    /// The reduction going on is a back-off.
    BackOff,
}

impl Cdg {
    /// A new one.
    pub fn new(o: &Options<'_>) -> Cdg {
        let get = |i: usize| o.get(&PARAMS[i]) as u32;
        let settings = Settings {
            backoff_beta: get(1),
            backoff_factor: get(2),
            hystart_detect: get(3),
            use_ineff: get(4),
            use_shadow: get(5) != 0,
            use_tolerance: get(6) != 0,
        };
        Cdg::with(settings, Stream::new(o.seed, "cdg"), get(0).next_power_of_two() as usize)
    }

    fn with(settings: Settings, random: Stream, window: usize) -> Cdg {
        Cdg {
            settings,
            random,
            rtt: Range::NONE,
            last_rtt: Range::NONE,
            gradient: Gradient::new(window),
            hystart: HyStart::default(),
            path: PathState::Unknown,
            delayed: 0,
            shadow: 0,
            backoffs: 0,
            round_end: 0,
        }
    }

    /// Ends a round of RTTs at the next sequence number.
    fn next_round(&mut self, v: &View) {
        self.round_end = v.snd_nxt;
        self.last_rtt = std::mem::replace(&mut self.rtt, Range::NONE);
    }

    /// The rise of the RTTs over the last rounds; takes note of back-offs that had an effect (Linux: `tcp_cdg_grad()`).
    fn rise(&mut self) -> i32 {
        let (sum, rise) = self.gradient.add(self.rtt.minus(self.last_rtt));
        if sum.min <= EFFECT_US || sum.max <= EFFECT_US {
            self.backoffs = 0;
        }
        if self.settings.use_tolerance {
            let (min, max) = (in_64ths(sum.min), in_64ths(sum.max));
            if min > 0 && max <= 0 {
                self.path = PathState::Full;
            } else if min > 0 || max < 0 {
                self.path = PathState::NotFull;
            }
        }
        rise
    }

    /// Draws whether to back off, and asks for it (Linux: `tcp_cdg_backoff()`).
    fn backs_off(&mut self, w: &mut Window, rise: i32) -> bool {
        let micro = (rise as u32).wrapping_mul(self.settings.backoff_factor);
        if !is_drawn(&mut self.random, micro) {
            return false;
        }
        if self.settings.use_ineff > 0 {
            self.backoffs = (self.backoffs + 1) & 0xffff;
            if self.backoffs > self.settings.use_ineff {
                return false;
            }
        }
        self.shadow = self.shadow.max(w.cwnd);
        self.path = PathState::BackOff;
        w.enter_cwr = true;
        true
    }
}

/// A 64th, rounded to the nearest, half away from zero.
fn in_64ths(us: i32) -> i32 {
    (us + 32 * us.signum()) / 64
}

impl CongestionController for Cdg {
    fn name(&self) -> &'static str {
        "cdg"
    }

    // The first round has the SYN's RTT in it: no rise is seen in the rounds after it where that was long, as it is before the
    // neighbour's address is known.
    fn syn_acked(&mut self, _v: &View, rtt_us: i64) {
        if rtt_us > 0 {
            self.rtt.add(rtt_us as i32);
        }
    }

    // Linux: tcp_cdg_init()
    fn init(&mut self, v: &View, w: &mut Window) {
        (self.round_end, self.shadow) = (v.snd_nxt, w.cwnd);
    }

    // Linux: tcp_cdg_ssthresh()
    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        let s = &self.settings;
        if self.path == PathState::BackOff {
            return (w.cwnd.wrapping_mul(s.backoff_beta) >> 10).max(2);
        }
        if self.path == PathState::NotFull && s.use_tolerance {
            return w.cwnd;
        }
        self.shadow = (self.shadow / 2).min(w.cwnd);
        let half = Reno.ssthresh(v, w);
        if s.use_shadow {
            half.max(self.shadow)
        } else {
            half
        }
    }

    // Linux: tcp_cdg_acked(). An ACK of one packet after ACKs of several was perhaps delayed: it lowers the minimum only.
    fn pkts_acked(&mut self, v: &View, _w: &mut Window, a: &PktsAcked) {
        if a.rtt_us <= 0 {
            return;
        }
        let rtt = a.rtt_us as i32;
        if v.sacked_out == 0 {
            if a.pkts_acked == 1 && self.delayed > 0 {
                self.rtt.min = self.rtt.min.min(rtt);
                self.delayed -= 1;
                return;
            }
            if a.pkts_acked > 1 && self.delayed < MOST_DELAYED {
                self.delayed += 1;
            }
        }
        self.rtt.add(rtt);
    }

    // Linux: tcp_cdg_cong_avoid()
    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise {
            return;
        }
        if w.in_slow_start() && self.settings.hystart_detect != 0 {
            self.hystart.update(v, w, self.rtt.min, self.settings.hystart_detect);
        }
        if s.ack > self.round_end && self.rtt != Range::NONE {
            let rise = if self.last_rtt == Range::NONE { 0 } else { self.rise() };
            self.next_round(v);
            self.hystart.next_round();
            if rise > 0 && self.backs_off(w, rise) {
                return;
            }
        }
        if !held_by_window(v, w) {
            self.shadow = self.shadow.min(w.cwnd);
            return;
        }
        let before = w.cwnd;
        Reno.on_ack(v, w, s);
        self.shadow = self.shadow.max(self.shadow.wrapping_add(w.cwnd.wrapping_sub(before)));
    }

    // Linux: tcp_cdg_cwnd_event()
    fn on_event(&mut self, v: &View, w: &mut Window, e: CaEvent) {
        match e {
            CaEvent::CwndRestart => {
                *self = Cdg::with(self.settings, self.random.clone(), self.gradient.window());
                self.init(v, w);
            }
            CaEvent::CompleteCwr => {
                self.path = PathState::Unknown;
                self.next_round(v);
            }
            CaEvent::TxStart | CaEvent::Loss => {}
        }
    }

    fn snapshot(&self) -> Snapshot {
        vec![
            ("rtt_min_us", self.last_rtt.min.into()),
            ("rtt_max_us", self.last_rtt.max.into()),
            ("shadow", self.shadow.into()),
            ("backoffs", self.backoffs.into()),
        ]
    }
}

/// The module's parameters.
pub(super) const PARAMS: &[Param] = &[
    Param { name: "window", about: "rounds over which gradients are summed; the next power of two is taken", default: 8, min: 1, max: 256 },
    // √½ · 1024 = 724.07.
    Param { name: "backoff_beta", about: "what a back-off leaves of the window, of 1024", default: 724, min: 0, max: 1_024 },
    Param {
        name: "backoff_factor",
        about: "a rise of x µs backs off with probability 1 − exp(−x · this / 10⁶)",
        default: 42,
        min: 0,
        max: 1_000_000,
    },
    Param { name: "hystart_detect", about: "HyStart: 1 ACK trains, 2 delay, 3 both, 0 neither", default: 3, min: 0, max: 3 },
    Param {
        name: "use_ineff",
        about: "back-offs without effect after which they are ignored; 0 never ignores them",
        default: 5,
        min: 0,
        max: 65_535,
    },
    Param { name: "use_shadow", about: "return to the shadow window after a loss", default: 1, min: 0, max: 1 },
    Param { name: "use_tolerance", about: "take losses for the link's own where the queue is not full", default: 0, min: 0, max: 1 },
];
/// A sum of gradients at or below this had an effect, µs.
const EFFECT_US: i32 = -32;
/// Delayed ACKs are counted up to here.
const MOST_DELAYED: u8 = 5;

#[cfg(test)]
mod tests;
