//! How late a thread wakes up from a sleep, with real-time priority and without.
//!
//! The emulator releases packets at such moments, so this bounds how well it can keep a delay on this machine now.
//! Source: clock_nanosleep(2) with absolute times, prctl(2) PR_SET_TIMERSLACK.

use crate::spaces::realtime;
use serde::Serialize;
use std::io;
use tcpscape_testbed::sys;

/// Sleeps of one measurement, and the time between their ends, ns: half a second.
const SLEEPS: u64 = 500;
const INTERVAL: u64 = 1_000_000;

/// How late, µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lateness {
    /// Half of the wake-ups are not later.
    pub p50_us: f64,
    /// 99 % of the wake-ups are not later.
    pub p99_us: f64,
    /// The latest.
    pub max_us: f64,
}

/// Both kinds of threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timer {
    /// A thread with real-time priority; None where it is not allowed.
    pub realtime: Option<Lateness>,
    /// An ordinary thread.
    pub ordinary: Lateness,
}

/// Measures for about a second.
pub fn probe() -> io::Result<Timer> {
    let with_priority = realtime::spawn("timer", || (realtime::priority() > 0).then(measure))?;
    let ended = || io::Error::other("the measuring thread ended");
    let realtime = with_priority.join().map_err(|_| ended())?;
    let ordinary = std::thread::spawn(measure).join().map_err(|_| ended())?;
    Ok(Timer { realtime, ordinary })
}

fn measure() -> Lateness {
    sys::timer_slack(1);
    let mut due = sys::now();
    let mut late = Vec::with_capacity(SLEEPS as usize);
    for _ in 0..SLEEPS {
        // A thread that is late keeps its rhythm: what it missed is not measured.
        due = (due + INTERVAL).max(sys::now());
        sys::nap_until(due);
        late.push(sys::now().saturating_sub(due));
    }
    summary(late)
}

fn summary(mut late: Vec<u64>) -> Lateness {
    late.sort_unstable();
    // The nearest rank: the least value that so many do not exceed.
    let quantile = |q: f64| late[((q * late.len() as f64).ceil() as usize).clamp(1, late.len()) - 1] as f64 / 1e3;
    Lateness { p50_us: quantile(0.5), p99_us: quantile(0.99), max_us: quantile(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_ranks() {
        let hundred = summary((1..=100).map(|i| i * 1000).rev().collect());
        assert_eq!(hundred, Lateness { p50_us: 50.0, p99_us: 99.0, max_us: 100.0 });
        assert_eq!(summary(vec![7000]), Lateness { p50_us: 7.0, p99_us: 7.0, max_us: 7.0 });
    }
}
