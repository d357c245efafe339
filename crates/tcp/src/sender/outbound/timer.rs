//! The one timer of a connection, which stands for four things in turn.
//!
//! Source: RFC 6298 §5 (retransmission), RFC 8985 §6.2 step 5 and §7.2 (reordering, loss probe), RFC 9293 §3.8.6.1 (window probe). It counts in ticks
//! of its host's clock (docs/models/tcp/rtt.md, "Ticks").

use crate::jiffies::Jiffies;
use crate::sender::rtt::RTO_MAX_US;
use tcpscape_base::Time;

/// What the timer is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Purpose {
    /// A retransmission timeout.
    Retransmit,
    /// A tail loss probe.
    LossProbe,
    /// Another look for losses, once the time for reordering has passed.
    Reordering,
    /// A probe of a closed window.
    WindowProbe,
}

/// A timer that is set.
#[derive(Clone, Copy, Debug)]
struct Armed {
    purpose: Purpose,
    /// The tick that it waits for.
    tick: u64,
    /// When it fires, which may be early for a far tick.
    fires: Time,
}

/// The timer.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct Timer(Option<Armed>);

impl Timer {
    /// Sets it `ticks` after tick `now`, 120 s at most.
    #[inline]
    pub fn arm(&mut self, purpose: Purpose, ticks: u64, now: u64, clock: &Jiffies) {
        let ticks = ticks.min(clock.from_micros(RTO_MAX_US));
        self.0 = Some(Armed { purpose, tick: now + ticks, fires: clock.fire_from(now, ticks) });
    }
    /// Stops it.
    #[inline]
    pub fn stop(&mut self) {
        self.0 = None;
    }
    /// What it is set for.
    #[inline]
    pub fn purpose(&self) -> Option<Purpose> {
        self.0.map(|a| a.purpose)
    }
    /// When it fires.
    #[inline]
    pub fn fires(&self) -> Option<Time> {
        self.0.map(|a| a.fires)
    }

    /// What has become due at `now`. The timer runs on; one that fired before its tick is set for the rest.
    pub fn due(&mut self, now: Time, clock: &Jiffies) -> Option<Purpose> {
        let armed = self.0.as_mut().filter(|a| a.fires <= now)?;
        let tick = clock.at(now);
        if armed.tick > tick {
            armed.fires = clock.fire(now, armed.tick - tick);
            return None;
        }
        Some(armed.purpose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Duration;

    #[test]
    fn it_is_due_on_the_tick_after_those_asked_for() {
        let clock = Jiffies::new(100, Duration::ZERO);
        let mut t = Timer::default();
        t.arm(Purpose::LossProbe, 20, clock.at(Time(5_000_000)), &clock);
        let fires = t.fires().unwrap();
        assert!((205_000_000..=215_000_000).contains(&fires.0), "{fires}");
        assert_eq!(t.due(Time(fires.0 - 1), &clock), None);
        assert_eq!((t.due(fires, &clock), t.purpose()), (Some(Purpose::LossProbe), Some(Purpose::LossProbe)));
        t.stop();
        assert_eq!(t.due(fires, &clock), None);
    }

    #[test]
    fn it_never_waits_longer_than_120_s() {
        let clock = Jiffies::new(100, Duration::ZERO);
        let mut t = Timer::default();
        t.arm(Purpose::WindowProbe, 1 << 20, 0, &clock);
        assert!(t.fires().unwrap().secs_f64() < 130.0);
    }
}
