//! The sending application: writes chunks as fast as the socket takes them, at a rate, by turns with pauses, up to a number of bytes, or what its
//! client asks for.

use super::Costs;
use crate::plan::{App, FlowPlan};
use tcpscape_base::{Duration, Stream, Time};
use tcpscape_tcp::Sender;

pub(super) struct Writer {
    /// Bytes a write.
    chunk: u64,
    /// The sleep after each.
    gap: Duration,
    /// Bytes left of the chunk being written.
    left: u64,
    /// Bytes left in all.
    total: u64,
    /// When it writes next, unless it is blocked.
    due: Time,
    /// In write(), where the socket takes no more.
    blocked: bool,
    /// Whether it waits for requests when there is nothing left.
    serves: bool,
    /// When it writes and when it pauses; none writes always.
    turns: Option<Turns>,
}

/// Periods that begin with writing and end with a pause.
struct Turns {
    on: Duration,
    period: Duration,
    /// When the first one began.
    begin: Time,
}

impl Turns {
    fn of(app: &App) -> Option<Turns> {
        match *app {
            App::OnOff { on_ns, off_ns, .. } if off_ns > 0 => {
                Some(Turns { on: Duration(on_ns), period: Duration(on_ns.saturating_add(off_ns)), begin: Time::ZERO })
            }
            _ => None,
        }
    }

    /// When the period after the one that `t` lies in begins, if `t` lies in a pause.
    fn pause_until(&self, t: Time) -> Option<Time> {
        let into = Duration(t.since(self.begin).0 % self.period.0);
        (into >= self.on).then(|| t + (self.period - into))
    }
}

impl Writer {
    /// The writer of a flow whose application is `app`: the plan's, or what was drawn for it.
    pub fn new(plan: &FlowPlan, app: &App) -> Writer {
        let (chunk, total) = match *app {
            App::Bulk { chunk } if plan.player.is_some() => (chunk, 0),
            App::Bulk { chunk } | App::Paced { chunk, .. } | App::OnOff { chunk, .. } => (chunk, u64::MAX),
            App::Respond { chunk, .. } => (chunk, 0),
            App::Finite { chunk, bytes } => (chunk, bytes),
        };
        Writer {
            chunk,
            gap: app.gap(),
            left: chunk.min(total),
            total,
            due: Time::ZERO,
            blocked: false,
            serves: plan.player.is_some() || matches!(app, App::Respond { .. }),
            turns: Turns::of(app),
        }
    }

    /// The connection is open.
    pub fn begin(&mut self, now: Time) {
        self.due = now;
        if let Some(turns) = &mut self.turns {
            turns.begin = now;
        }
    }

    /// A request for so many bytes has come.
    pub fn serve(&mut self, bytes: u64) {
        self.total += bytes;
        if self.left == 0 {
            self.left = self.chunk.min(self.total);
        }
    }

    /// It runs: writes what is due, one chunk. Returns when it wants to run again, if it is not blocked.
    #[inline]
    pub fn run(&mut self, now: Time, costs: Costs, sender: &mut Sender, noise: &mut Stream) -> Option<Time> {
        if now < self.due {
            return Some(self.due);
        }
        self.blocked = false;
        if self.total == 0 {
            return None;
        }
        let n = sender.write(now, self.left);
        self.left -= n;
        self.total -= n.min(self.total);
        if self.left > 0 {
            self.blocked = true;
            return None;
        }
        self.left = self.chunk.min(self.total);
        let next = now + costs.write;
        let ready = next + self.gap;
        self.due = match self.turns.as_ref().and_then(|turns| turns.pause_until(ready)) {
            Some(begin) => begin + costs.oversleep(noise),
            None if self.gap > Duration::ZERO => ready + costs.oversleep(noise),
            None => next,
        };
        Some(self.due)
    }

    /// Whether it waits for room rather than for time.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Whether everything was written and nothing can follow.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.total == 0 && !self.serves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Periods of 300 ms from 1 s on, of which 100 ms are written in: 1.099 s is in the first one, 1.1 s in its pause, which lasts until 1.3 s.
    #[test]
    fn a_pause_lasts_to_the_next_period() {
        let ms = |n: u64| Time(n * 1_000_000);
        let app = App::OnOff { chunk: 1, on_ns: 100_000_000, off_ns: 200_000_000, rate: 0.0 };
        let turns = Turns { begin: ms(1_000), ..Turns::of(&app).unwrap() };
        assert_eq!(
            [1_000, 1_099, 1_100, 1_299, 1_300].map(|t| turns.pause_until(ms(t))),
            [None, None, Some(ms(1_300)), Some(ms(1_300)), None]
        );
        assert!(Turns::of(&App::OnOff { chunk: 1, on_ns: 5, off_ns: 0, rate: 0.0 }).is_none());
    }
}
