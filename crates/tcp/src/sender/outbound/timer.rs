//! The one timer of a connection, which stands for four things in turn: when it is set, and for what.
//!
//! Source: RFC 6298 §5 (retransmission), RFC 8985 §6.2 step 5 and §7.2 (reordering, loss probe), RFC 9293 §3.8.6.1 (window probe). It counts in ticks
//! of its host's clock. How it differs: docs/models/tcp/rtt.md ("Ticks") and rack.md. Not modelled: giving up.

use super::Outbound;
use crate::jiffies::Jiffies;
use crate::sender::connection::Connection;
use crate::sender::governor::Governor;
use crate::sender::report::{Standing, TimerOrder};
use crate::sender::rtt::RTO_MAX_US;
use tcpscape_base::CaState;
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

impl Outbound {
    /// Sets the timer `ticks` ahead.
    #[inline]
    pub fn arm(&mut self, purpose: Purpose, ticks: u64, c: &Connection) {
        self.timer.arm(purpose, ticks, c.tick(), &c.cfg.jiffies);
    }

    /// Sets the timer `ticks` after what pacing still holds back.
    #[inline]
    pub(super) fn arm_paced(&mut self, purpose: Purpose, ticks: u64, c: &Connection) {
        let hold_ns = self.pacer.hold_ns(c.now.time);
        let hold = if hold_ns == 0 { 0 } else { c.cfg.jiffies.from_micros(hold_ns / 1_000) };
        self.arm(purpose, ticks + hold, c);
    }

    /// Stops it.
    pub fn stop_timer(&mut self) {
        self.timer.stop();
    }

    /// What has become due. It runs on.
    pub fn due(&mut self, c: &Connection) -> Option<Purpose> {
        self.timer.due(c.now.time, &c.cfg.jiffies)
    }

    /// Does with it what an ACK asks for. RFC 6298 §5.3, RFC 8985 §7.2: one that made progress starts it anew, for a loss probe if one is due
    /// before the retransmission timeout, else for that.
    #[inline]
    pub fn set_timer(&mut self, order: TimerOrder, c: &Connection) {
        match order {
            TimerOrder::Keep => {}
            TimerOrder::Restart(state) => {
                let rto_us = c.cfg.jiffies.to_micros(c.rtt.rto());
                if !self.schedule_probe(Some(rto_us), c, state) {
                    self.rearm_rto(c);
                }
            }
            TimerOrder::LookAgain(us) => {
                let ticks = c.cfg.jiffies.from_micros(us + TIMER_MARGIN_US).min(c.rtt.rto());
                self.arm(Purpose::Reordering, ticks, c);
            }
            TimerOrder::Timeout(us) => self.arm(Purpose::Retransmit, c.cfg.jiffies.from_micros(us), c),
        }
    }

    /// RFC 6298 §5.2 and §5.3: restarts the retransmission timer, or stops it when nothing is in flight. After another purpose it runs for
    /// what is left of the oldest segment's timeout.
    pub fn rearm_rto(&mut self, c: &Connection) {
        if c.flight.out() == 0 {
            return self.timer.stop();
        }
        let ticks = match self.timer.purpose() {
            Some(Purpose::Reordering | Purpose::LossProbe) => c.cfg.jiffies.from_micros(left_of_rto_us(c).unwrap_or(1)),
            _ => c.rtt.rto(),
        };
        self.arm_paced(Purpose::Retransmit, ticks, c);
    }

    /// New data have left; nothing else was in flight if `was_idle`. RFC 6298 §5.1: the retransmission timer runs, also in place of a probe's.
    #[inline]
    pub(super) fn restart_rto(&mut self, was_idle: bool, c: &Connection) {
        if was_idle || self.timer.purpose() == Some(Purpose::LossProbe) {
            self.rearm_rto(c);
        }
    }

    // ---- loss probe ----

    /// Sets the timer for a probe after data were sent; the RTO of the oldest segment bounds it.
    #[inline]
    pub(super) fn schedule_probe_after_sending(&mut self, c: &Connection, state: CaState) {
        self.schedule_probe(left_of_rto_us(c), c, state);
    }

    /// RFC 8985 §7.2: two round trips, and room for a delayed ACK when one segment is out, at most `bound_us`. Only in Open and CWR.
    fn schedule_probe(&mut self, bound_us: Option<u64>, c: &Connection, state: CaState) -> bool {
        if c.flight.out() == 0 || !may_probe(c, state) {
            return false;
        }
        let margin_us = if c.flight.out() == 1 { MAX_ACK_DELAY_US } else { TIMER_MARGIN_US };
        let clock = &c.cfg.jiffies;
        let ticks = clock.from_micros(u64::from(c.rtt.srtt8_us() / 4) + margin_us);
        let bound = bound_us.map_or(u64::MAX, |us| clock.from_micros(us));
        self.arm_paced(Purpose::LossProbe, ticks.min(bound), c);
        true
    }

    // ---- window probe ----

    /// Data wait, nothing is in flight and no timer runs: the window will be probed.
    pub fn schedule_window_probe(&mut self, c: &Connection) {
        if c.flight.out() == 0 && self.timer.purpose().is_none() && !self.buffer.is_empty() {
            self.arm_paced(Purpose::WindowProbe, c.rtt.first_probe(&c.cfg.jiffies), c);
        }
    }

    /// An ACK came while nothing was in flight: the window is open, or will be probed.
    pub fn on_window_news(&mut self, c: &mut Connection) {
        let Some(head) = self.buffer.head() else { return };
        if c.flight.nxt() + u64::from(head.len) <= c.window_end() {
            c.rtt.reset_backoff();
            self.timer.stop();
        } else {
            self.arm_paced(Purpose::WindowProbe, c.rtt.probe_interval(&c.cfg.jiffies), c);
        }
    }

    /// RFC 9293 §3.8.6.1: as much as the window admits of the next segment, else an ACK below the left edge, which the peer must answer.
    pub fn on_window_probe_timer(&mut self, c: &mut Connection, g: &mut Governor, st: Standing) {
        if c.flight.out() > 0 || self.buffer.is_empty() {
            return;
        }
        if c.flight.nxt() < c.window_end() {
            self.send_what_fits(c, g, st);
        } else {
            self.give(c.bare_ack(c.flight.una() - 1));
        }
        c.stats.window_probes += 1;
        if c.flight.out() > 0 || self.buffer.is_empty() {
            return c.rtt.reset_backoff();
        }
        c.rtt.count_probe();
        self.arm_paced(Purpose::WindowProbe, c.rtt.probe_interval(&c.cfg.jiffies), c);
    }
}

/// Time from now until the timeout of the oldest segment, µs; `None` if that has passed.
fn left_of_rto_us(c: &Connection) -> Option<u64> {
    let rto_us = c.cfg.jiffies.to_micros(c.rtt.rto());
    let left = c.flight.front().map_or(rto_us, |s| (s.sent_us() + rto_us).saturating_sub(c.now_us()));
    Some(left).filter(|&us| us > 0)
}

/// Whether a loss probe may be sent.
#[inline]
pub(super) fn may_probe(c: &Connection, state: CaState) -> bool {
    c.cfg.tuning.loss_probes && matches!(state, CaState::Open | CaState::Cwr)
}

/// Least time of the probe and reordering timers beyond their estimate: 2 ms.
const TIMER_MARGIN_US: u64 = 2_000;
/// Longest delay of an ACK that the probe allows for (RFC 8985 §7.2, `TLP.max_ack_delay`): 200 ms.
const MAX_ACK_DELAY_US: u64 = 200_000;

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
