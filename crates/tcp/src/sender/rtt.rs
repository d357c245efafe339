//! Round-trip estimation and retransmission timeout, and the windowed minimum.
//!
//! Source: RFC 6298 with Linux's variation (mean deviation that falls slowly and rises fast, 200 ms floor on the deviation
//! term). Linux: `tcp_rtt_estimator()`, `tcp_set_rto()`, `minmax_running_min()`. Differs: nothing known. Not modelled: `rto_min` of a route.

/// Smoothed RTT, deviation and timeout, in Linux's scaled integers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    /// Smoothed RTT, µs << 3; 0 before the first sample.
    pub srtt_us: u32,
    /// Mean deviation, µs << 2.
    pub mdev_us: u32,
    mdev_max_us: u32,
    /// The deviation term of the RTO, µs.
    pub rttvar_us: u32,
    rtt_seq: u64,
}

/// Floor of the deviation term: `TCP_RTO_MIN`, 200 ms.
pub(super) const RTO_MIN_US: u32 = 200_000;

impl Rtt {
    /// Takes a sample of `m` µs (`tcp_rtt_estimator()`).
    pub fn sample(&mut self, m: u32, snd_una: u64, snd_nxt: u64) {
        if self.srtt_us == 0 {
            self.srtt_us = (m << 3).max(1);
            self.mdev_us = m << 1;
            self.rttvar_us = self.mdev_us.max(RTO_MIN_US);
            self.mdev_max_us = self.rttvar_us;
            self.rtt_seq = snd_nxt;
            return;
        }
        let err = m as i64 - i64::from(self.srtt_us >> 3);
        self.srtt_us = ((i64::from(self.srtt_us) + err) as u32).max(1);
        let dev = err.abs() - i64::from(self.mdev_us >> 2);
        // A falling RTT raises the deviation at an eighth of the usual gain.
        let gain = if err < 0 && dev > 0 { dev >> 3 } else { dev };
        self.mdev_us = (i64::from(self.mdev_us) + gain) as u32;
        if self.mdev_us > self.mdev_max_us {
            self.mdev_max_us = self.mdev_us;
            self.rttvar_us = self.rttvar_us.max(self.mdev_max_us);
        }
        if snd_una > self.rtt_seq {
            if self.mdev_max_us < self.rttvar_us {
                self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) >> 2;
            }
            self.rtt_seq = snd_nxt;
            self.mdev_max_us = RTO_MIN_US;
        }
    }

    /// The timeout in µs before back-off (`__tcp_set_rto()`).
    pub fn rto_us(&self) -> u64 {
        u64::from(self.srtt_us >> 3) + u64::from(self.rttvar_us)
    }
}

/// The smallest sample within a window, kept as the three best candidates of its thirds (`lib/win_minmax`).
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowedMin {
    s: [(u64, u32); 3],
}

impl WindowedMin {
    pub fn new() -> WindowedMin {
        WindowedMin { s: [(0, u32::MAX); 3] }
    }
    /// The current minimum; `u32::MAX` before the first sample.
    #[inline]
    pub fn get(&self) -> u32 {
        self.s[0].1
    }
    /// Takes sample `v` at time `t` with a window of `win` (same unit as `t`).
    pub fn update(&mut self, win: u64, t: u64, v: u32) {
        let n = (t, v);
        if v <= self.s[0].1 || t - self.s[2].0 > win {
            self.s = [n; 3];
            return;
        }
        if v <= self.s[1].1 {
            self.s[1] = n;
            self.s[2] = n;
        } else if v <= self.s[2].1 {
            self.s[2] = n;
        }
        let dt = t - self.s[0].0;
        if dt > win {
            self.s = [self.s[1], self.s[2], n];
            if t - self.s[0].0 > win {
                self.s = [self.s[1], self.s[2], n];
            }
        } else if self.s[1].0 == self.s[0].0 && dt > win / 4 {
            self.s[1] = n;
            self.s[2] = n;
        } else if self.s[2].0 == self.s[1].0 && dt > win / 2 {
            self.s[2] = n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sample_sets_everything_and_the_floor_holds() {
        let mut r = Rtt::default();
        r.sample(100_001, 0, 1);
        assert_eq!((r.srtt_us >> 3, r.rttvar_us, r.rto_us()), (100_001, 200_002, 300_003));
    }

    #[test]
    fn follows_linux_after_a_first_sample_of_two_rtts() {
        // Recorded from Linux 6.1: a first sample of 100.001 ms, then ten of 50.001 ms give srtt 63,155 µs.
        let mut r = Rtt::default();
        r.sample(100_001, 0, 1);
        for i in 0..10u64 {
            r.sample(50_001, 2 + i, 20 + i);
        }
        assert_eq!(r.srtt_us >> 3, 63_155);
        assert_eq!(r.mdev_us >> 2, 23_492);
    }

    #[test]
    fn windowed_minimum_forgets() {
        let mut m = WindowedMin::new();
        m.update(100, 1, 50);
        m.update(100, 20, 70);
        assert_eq!(m.get(), 50);
        for t in (30..200).step_by(10) {
            m.update(100, t, 60 + (t % 20) as u32);
        }
        assert!(m.get() >= 60);
    }
}
