//! Integer newtypes: the unit is in the type, not in the variable's name.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// A moment of virtual time: nanoseconds since the start of the trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub u64);

/// A length of time in nanoseconds; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub u64);

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(pub u64);

impl Time {
    /// The start of the trial.
    pub const ZERO: Time = Time(0);
    /// Later than any event.
    pub const MAX: Time = Time(u64::MAX);

    /// Whole microseconds since the start, as `tcp_mstamp` counts them.
    #[inline]
    pub const fn micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole milliseconds since the start.
    #[inline]
    pub const fn millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Seconds since the start, for people and plots.
    #[inline]
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
    /// The time passed since `earlier`, zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// A duration of `n` nanoseconds.
    #[inline]
    pub const fn nanos(n: u64) -> Duration {
        Duration(n)
    }
    /// A duration of `n` microseconds.
    #[inline]
    pub const fn micros(n: u64) -> Duration {
        Duration(n * 1_000)
    }
    /// A duration of `n` milliseconds.
    #[inline]
    pub const fn millis(n: u64) -> Duration {
        Duration(n * 1_000_000)
    }
    /// A duration of `n` seconds.
    #[inline]
    pub const fn secs(n: u64) -> Duration {
        Duration(n * 1_000_000_000)
    }
    /// Whole microseconds.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Seconds, for people and plots.
    #[inline]
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
}

impl Rate {
    /// Bytes per second, rounded down.
    #[inline]
    pub const fn bytes_per_sec(self) -> u64 {
        self.0 / 8
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    #[inline]
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}
impl AddAssign<Duration> for Time {
    #[inline]
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Add for Duration {
    type Output = Duration;
    #[inline]
    fn add(self, d: Duration) -> Duration {
        Duration(self.0.saturating_add(d.0))
    }
}
impl Sub for Duration {
    type Output = Duration;
    #[inline]
    fn sub(self, d: Duration) -> Duration {
        Duration(self.0.saturating_sub(d.0))
    }
}
impl Mul<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn mul(self, n: u64) -> Duration {
        Duration(self.0.saturating_mul(n))
    }
}
impl Div<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn div(self, n: u64) -> Duration {
        Duration(self.0 / n)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}s", self.secs_f64())
    }
}
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}ms", self.0 as f64 * 1e-6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_wraps() {
        assert_eq!(Time::MAX + Duration::secs(1), Time::MAX);
        assert_eq!(Time(5).since(Time(9)), Duration::ZERO);
    }
}
