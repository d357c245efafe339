//! The jiffies clock: ticks of a kernel's timer, and when a timer that was armed for some of them really fires.

use tcpscape_base::{Duration, Time};

/// Levels of the timer wheel; a tick of each is 8 of the one below.
const WHEEL_LEVELS: u32 = 9;
/// A timer is on the lowest level if it is fewer ticks ahead than this.
const LOWEST_LEVEL: u64 = 63;

/// The tick counter: a timer armed for `n` jiffies fires on the tick that ends jiffy `n`, later ones on coarser grids.
#[derive(Clone, Copy, Debug)]
pub struct Jiffies {
    /// Length of a tick.
    tick: u64,
    /// 2⁸⁰ / tick, rounded up: with it a division is a multiplication, exact below 2⁵⁴ ns.
    per_tick: u64,
    /// Phase: the first tick after time zero.
    phase: u64,
    hz: u32,
}

impl Jiffies {
    /// `hz` ticks a second, shifted by `phase` (taken modulo a tick).
    pub fn new(hz: u32, phase: Duration) -> Jiffies {
        let tick = 1_000_000_000 / u64::from(hz.max(1));
        // Ticks of 2¹⁶ ns and less (above 15 kHz) would not fit.
        let tick = tick.max(1 << 16 | 1);
        Jiffies { tick, per_tick: ((1u128 << 80) / u128::from(tick) + 1) as u64, phase: phase.0 % tick, hz: hz.max(1) }
    }
    /// Whole ticks in `ns`.
    #[inline]
    fn ticks(&self, ns: u64) -> u64 {
        debug_assert!(ns < 1 << 54, "half a year");
        ((u128::from(ns) * u128::from(self.per_tick)) >> 80) as u64
    }
    /// Ticks a second.
    #[inline]
    pub fn hz(&self) -> u32 {
        self.hz
    }
    /// The tick counter at `now`.
    #[inline]
    pub fn at(&self, now: Time) -> u64 {
        self.ticks(now.0 + self.tick - self.phase)
    }
    /// Nanoseconds at `now` since the last tick before time zero.
    #[inline]
    pub fn since_tick(&self, now: Time) -> u64 {
        now.0 + self.tick - self.phase
    }
    /// When tick `j` happens.
    #[inline]
    pub fn time_of(&self, j: u64) -> Time {
        Time((j * self.tick + self.phase).saturating_sub(self.tick))
    }
    /// The clock of timestamps (RFC 7323 §5.4) at `now`: milliseconds that begin with the ticks, never 0, so that an echo of it is always an echo.
    #[inline]
    pub fn stamp(&self, now: Time) -> u32 {
        ((now.0 + (self.tick - self.phase) % 1_000_000) / 1_000_000) as u32 + 1
    }
    /// Microseconds to ticks, rounded up.
    #[inline]
    pub fn from_micros(&self, us: u64) -> u64 {
        self.ticks(us * 1_000 + self.tick - 1)
    }
    /// Ticks to microseconds.
    #[inline]
    pub fn to_micros(&self, j: u64) -> u64 {
        j * self.tick / 1_000
    }
    /// Ticks of one `divisor`th of a second, rounded down.
    #[inline]
    pub fn hz_over(&self, divisor: u32) -> u64 {
        u64::from(self.hz / divisor)
    }
    /// When a timer armed at `now` for `n` ticks ahead really fires: on the timer wheel it is rounded up by one unit of its level, 1 tick up
    /// to 63 ahead, 8 up to 504, 64 up to 4,032, and so on (docs/models/tcp/kernel-profiles.md, "Timers").
    #[inline]
    pub fn fire(&self, now: Time, n: u64) -> Time {
        self.fire_from(self.at(now), n)
    }
    /// The same for a timer armed in tick `tick`.
    #[inline]
    pub fn fire_from(&self, tick: u64, n: u64) -> Time {
        let top = WHEEL_LEVELS - 1;
        let level = (0..top).find(|level| n < LOWEST_LEVEL << (3 * level)).unwrap_or(top);
        let unit = 3 * level;
        self.time_of((((tick + n) >> unit) + 1) << unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/models/tcp/rtt.md, "Phase": with a tick of 4 ms that falls 1.3 ms after time 0, milliseconds begin 0.3 ms after each whole one.
    #[test]
    fn the_milliseconds_of_timestamps_begin_with_the_tick() {
        let j = Jiffies::new(250, Duration::micros(1_300));
        assert_eq!([0, 299_999, 300_000, 1_299_999, 1_300_000].map(|ns| j.stamp(Time(ns))), [1, 1, 2, 2, 3]);
    }

    #[test]
    fn a_200_ms_timer_fires_between_200_and_210_ms_at_hz_100() {
        let j = Jiffies::new(100, Duration::millis(3));
        for t in 0..30u64 {
            let now = Time(t * 1_000_000 + 500);
            let d = j.fire(now, 20).since(now).0;
            assert!((200_000_000..=210_000_000).contains(&d), "{d}");
        }
    }

    /// The levels' bounds: 62 ticks ahead is on the lowest, 63 on the second, 504 on the third.
    #[test]
    fn a_timer_is_rounded_up_by_one_unit_of_its_level() {
        let j = Jiffies::new(1_000, Duration::ZERO);
        let now = j.time_of(1_000);
        let fires = |n| j.at(j.fire(now, n));
        assert_eq!((fires(62), fires(63), fires(503)), (1_063, 1_064, 1_504));
        assert_eq!((fires(504), fires(4_031), fires(4_032)), (1_536, 5_056, 5_120));
    }

    #[test]
    fn far_timers_are_coarser() {
        let j = Jiffies::new(100, Duration::ZERO);
        let now = Time(1_000_000_000);
        let d = j.fire(now, 100).since(now).0;
        assert!((1_000_000_000..=1_080_000_000).contains(&d), "{d}");
    }

    #[test]
    fn ticks_and_times_agree() {
        let j = Jiffies::new(250, Duration::micros(1_234));
        for k in 1..1_000 {
            assert_eq!(j.at(j.time_of(k)), k);
            assert_eq!(j.at(Time(j.time_of(k).0 - 1)), k - 1);
        }
    }

    #[test]
    fn the_division_by_multiplication_is_exact() {
        for hz in [24, 100, 250, 300, 999, 1_000, 10_000] {
            let j = Jiffies::new(hz, Duration::ZERO);
            for k in (0..54).map(|b| 1u64 << b).chain([1, 99, 12_345_678_901, 86_400_000_000_000]) {
                for ns in [k - 1, k, k / j.tick * j.tick, (k / j.tick * j.tick).saturating_sub(1)] {
                    assert_eq!(j.ticks(ns), ns / j.tick, "{ns} at {hz}");
                }
            }
        }
    }
}
