//! The sending application: writes chunks as fast as the socket takes them, at a rate, by turns with pauses, up to a number of bytes, or what its
//! client asks for.

use super::Costs;
use tcpscape_base::{Duration, Stream, Time};
use tcpscape_plan::{App, FlowPlan, Turns};
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
    /// The socket has taken a part of the chunk being written.
    continues: bool,
    /// Whether it waits for requests when there is nothing left.
    serves: bool,
    /// When it writes and when it pauses; none writes always.
    turns: Option<Turns>,
    /// When it began.
    begin: Time,
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
            continues: false,
            serves: plan.player.is_some() || matches!(app, App::Respond { .. }),
            turns: app.turns(),
            begin: Time::ZERO,
        }
    }

    /// The connection is open.
    pub fn begin(&mut self, now: Time) {
        (self.begin, self.due) = (now, now);
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
        let n = if self.continues { sender.continue_write(now, self.left) } else { sender.write(now, self.left) };
        self.left -= n;
        self.total -= n.min(self.total);
        if self.left > 0 {
            self.blocked = true;
            self.continues |= n > 0;
            return None;
        }
        self.continues = false;
        self.left = self.chunk.min(self.total);
        let next = now + costs.write;
        let ready = next + self.gap;
        self.due = match self.turns.and_then(|turns| turns.pause(ready.since(self.begin))) {
            Some(pause) => ready + pause + costs.oversleep(noise),
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
