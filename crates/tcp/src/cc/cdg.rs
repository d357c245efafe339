//! CDG, CAIA delay gradient: backs off, at random, when RTTs rise from round to round; loss-based flows do not push it away.
//!
//! **What it is.** The smallest and the largest RTT of each round are compared with the last round's, summed over eight rounds: the
//! more they rise, the likelier the window shrinks to 0.71 of it, as after a congestion signal, through CWR. Back-offs that change
//! nothing are given up after five. After a loss the window returns to what a Reno flow would have (the shadow window).
//! **Source.** Hayes, Armitage: "Revisiting TCP congestion control using delay gradients" (IFIP Networking 2011).
//! **How it differs.** From the paper, as Linux is seen to do (docs/models/controls/cdg.md): HyStart ends slow start, the back-off factor replaces G and
//! the window length, the shadow window is at most twice the window. From Linux: nothing known.
//! **What it does not model.** A kernel without memory for the gradients.

use super::reno::held_by_window;
use super::{AckSample, CaEvent, CongestionController, Options, Param, PktsAcked, Reno, View, Window};
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
    rtts: Rtts,
    gradient: Gradient,
    hystart: HyStart,
    cause: Cause,
    shadow: Shadow,
    /// Back-offs since the last that had an effect.
    backoffs: u32,
    /// Sequence number whose acknowledgement ends the round.
    round_end: u64,
}

/// The parameters, read once.
#[derive(Clone, Copy, Debug)]
struct Settings {
    backoff_beta: u32,
    backoff_factor: u32,
    hystart_detect: u32,
    use_ineff: u32,
    use_shadow: bool,
    use_tolerance: bool,
}

/// What the next reduction answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// A full queue, or nothing is known.
    Congestion,
    /// The queue is not full: a loss is the link's own (the paper's loss tolerance).
    LinkError,
    /// The RTTs rise: this is the back-off.
    Gradient,
}

/// The RTTs of this round and of the last one, µs.
#[derive(Clone, Copy, Debug)]
struct Rtts {
    current: Range,
    last: Range,
    /// How many more lone ACKs are perhaps delayed: up by one with an ACK of several packets, down by one with a lone one.
    perhaps_delayed: u8,
}

impl Rtts {
    const NONE: Rtts = Rtts { current: Range::NONE, last: Range::NONE, perhaps_delayed: 0 };

    /// Takes the RTT of an ACK for `packets`. A lone packet's ACK, after ACKs of several, was perhaps delayed: it lowers the minimum only.
    fn take(&mut self, rtt: i32, packets: u32, in_order: bool) {
        if in_order && packets > 1 {
            self.perhaps_delayed = (self.perhaps_delayed + 1).min(MOST_DELAYED);
        } else if in_order && packets == 1 && self.perhaps_delayed > 0 {
            self.perhaps_delayed -= 1;
            self.current.min = self.current.min.min(rtt);
            return;
        }
        self.current.add(rtt);
    }

    /// How the extremes have changed from the last round to this one: the paper's g_min and g_max; none unless both have samples.
    fn change(&self) -> Option<Range> {
        (self.current != Range::NONE && self.last != Range::NONE).then(|| self.current.minus(self.last))
    }

    fn next_round(&mut self) {
        self.last = std::mem::replace(&mut self.current, Range::NONE);
    }
}

/// The window that a Reno flow would have, packets (the paper's s).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shadow(u32);

impl Shadow {
    /// A back-off does not lower it, and it is what the window was at least.
    fn before_backoff(&mut self, cwnd: u32) {
        self.0 = self.0.max(cwnd);
    }

    /// It grows as the window does.
    fn grow(&mut self, packets: u32) {
        self.0 = self.0.max(self.0.wrapping_add(packets));
    }

    /// A window that is not used would not be used by Reno either.
    fn unused(&mut self, cwnd: u32) {
        self.0 = self.0.min(cwnd);
    }

    /// A loss halves it; the window is its upper bound.
    fn lose(&mut self, cwnd: u32) {
        self.0 = (self.0 / 2).min(cwnd);
    }
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
            rtts: Rtts::NONE,
            gradient: Gradient::new(window),
            hystart: HyStart::default(),
            cause: Cause::Congestion,
            shadow: Shadow(0),
            backoffs: 0,
            round_end: 0,
        }
    }

    fn begin_round(&mut self, v: &View) {
        self.round_end = v.snd_nxt;
        self.rtts.next_round();
    }

    /// Ends a round: the rise of the RTTs over the window of rounds, µs; 0 with the first.
    fn end_round(&mut self, v: &View) -> i32 {
        let rise = self.rtts.change().map_or(0, |change| {
            let (sum, rise) = self.gradient.add(change);
            self.learn(sum);
            rise
        });
        self.begin_round(v);
        self.hystart.next_round();
        rise
    }

    /// What the sums of the gradients tell of back-offs (the paper's ineffective ones) and of the queue (its loss tolerance).
    fn learn(&mut self, sum: Range) {
        if sum.min.min(sum.max) <= EFFECT_US {
            self.backoffs = 0;
        }
        if self.settings.use_tolerance {
            match (in_64ths(sum.min), in_64ths(sum.max)) {
                // The smallest RTT rises and the largest does not: the queue is full.
                (1.., ..=0) => self.cause = Cause::Congestion,
                (1.., _) | (_, ..=-1) => self.cause = Cause::LinkError,
                _ => {}
            }
        }
    }

    /// Whether a rise of so many µs is answered: drawn with P = 1 − exp(−rise · factor/10⁶), and as long as back-offs have an effect.
    fn is_answered(&mut self, rise: i32) -> bool {
        let Settings { backoff_factor, use_ineff, .. } = self.settings;
        if rise <= 0 || !is_drawn(&mut self.random, (rise as u32).wrapping_mul(backoff_factor)) {
            return false;
        }
        if use_ineff == 0 {
            return true;
        }
        // Counted in 16 bits.
        self.backoffs = (self.backoffs + 1) & 0xffff;
        self.backoffs <= use_ineff
    }
}

/// A 64th, rounded to the nearest, half away from zero.
fn in_64ths(us: i32) -> i32 {
    (us + 32 * us.signum()) / 64
}

impl CongestionController for Cdg {
    // The first round has the SYN's RTT in it: no rise is seen in the rounds after it where that was long, as it is before the
    // neighbour's address is known.
    fn syn_acked(&mut self, _v: &View, rtt_us: i64) {
        if rtt_us > 0 {
            self.rtts.current.add(rtt_us as i32);
        }
    }

    fn init(&mut self, v: &View, w: &mut Window) {
        self.round_end = v.snd_nxt;
        self.shadow = Shadow(w.cwnd);
    }

    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        match self.cause {
            Cause::Gradient => (w.cwnd.wrapping_mul(self.settings.backoff_beta) / BETA_ONE).max(2),
            Cause::LinkError if self.settings.use_tolerance => w.cwnd,
            _ => {
                self.shadow.lose(w.cwnd);
                let shadow = if self.settings.use_shadow { self.shadow.0 } else { 0 };
                Reno.ssthresh(v, w).max(shadow)
            }
        }
    }

    fn pkts_acked(&mut self, v: &View, _w: &mut Window, a: &PktsAcked) {
        if a.rtt_us > 0 {
            self.rtts.take(a.rtt_us as i32, a.pkts_acked, v.sacked_out == 0);
        }
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise {
            return;
        }
        if w.in_slow_start() && self.settings.hystart_detect != 0 {
            self.hystart.update(v, w, self.rtts.current.min, self.settings.hystart_detect);
        }
        if s.ack > self.round_end && self.rtts.current != Range::NONE {
            let rise = self.end_round(v);
            if self.is_answered(rise) {
                self.shadow.before_backoff(w.cwnd);
                self.cause = Cause::Gradient;
                w.enter_cwr = true;
                return;
            }
        }
        if held_by_window(v, w) {
            let before = w.cwnd;
            Reno.on_ack(v, w, s);
            self.shadow.grow(w.cwnd.wrapping_sub(before));
        } else {
            self.shadow.unused(w.cwnd);
        }
    }

    fn on_event(&mut self, v: &View, w: &mut Window, e: CaEvent) {
        match e {
            CaEvent::CwndRestart => {
                *self = Cdg::with(self.settings, self.random.clone(), self.gradient.window());
                self.init(v, w);
            }
            CaEvent::CompleteCwr => {
                self.cause = Cause::Congestion;
                self.begin_round(v);
            }
            CaEvent::TxStart | CaEvent::Loss => {}
        }
    }
}

/// Its parameters, by the names that Linux gives them.
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
/// 1 of `backoff_beta`.
const BETA_ONE: u32 = 1_024;
/// A sum of gradients at or below this had an effect, µs.
const EFFECT_US: i32 = -32;
/// ACKs that are perhaps delayed are counted up to here.
const MOST_DELAYED: u8 = 5;

#[cfg(test)]
mod tests;
