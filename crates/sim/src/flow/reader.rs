//! The receiving application: sleeps, then reads, and blocks while there is nothing.
//!
//! Copying takes time for each buffer. What comes in the meantime waits in the backlog, since the socket is locked; the reader takes it in,
//! which costs time for each segment, and reads it as well. Only the end of the call says whether an ACK is due.

use super::Costs;
use crate::events::Turn;
use tcpscape_base::{Duration, Segment, Stream, Time};
use tcpscape_plan::Read;
use tcpscape_tcp::{Backlog, Receiver};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Sleeps or works until then, then reads.
    Busy(Time),
    /// In read() until then, with room left for so many bytes.
    Copying(Time, u64),
    /// In read(), takes a segment of the backlog in at that time; then copies on if there is room.
    Absorbing(Time, Option<u64>),
    /// Blocked in read().
    Blocked,
}

pub(crate) struct Reader {
    plan: Read,
    state: State,
    /// Its place among what happens when it goes on to find nothing, while it is not called for that.
    dozes: Option<Turn>,
    /// What came while the reader held the socket.
    backlog: Backlog,
    /// The receiver has taken segments in from there.
    absorbed: bool,
    /// Bytes read, and of these by the middle of the trial.
    received: u64,
    received_first_half: u64,
}

impl Reader {
    pub fn new(plan: Read) -> Reader {
        Reader {
            plan,
            state: State::Blocked,
            dozes: None,
            backlog: Backlog::default(),
            absorbed: false,
            received: 0,
            received_first_half: 0,
        }
    }

    /// Bytes read.
    pub fn received(&self) -> u64 {
        self.received
    }
    /// Bytes read by the middle of the trial.
    pub fn received_first_half(&self) -> u64 {
        self.received_first_half
    }

    /// Whether it is in no read().
    pub fn is_free(&self) -> bool {
        matches!(self.state, State::Busy(_) | State::Blocked)
    }

    /// The connection was accepted: the loop begins with a sleep.
    pub fn begin(&mut self, now: Time, costs: Costs, noise: &mut Stream) {
        self.state = if self.plan.delay_ns > 0 { State::Busy(self.awake(now, costs, noise)) } else { State::Blocked };
    }

    /// Whether it waited before `now` for data that are there now. A sleep that ends now is not over: what is due now comes before applications.
    pub fn is_woken(&self, now: Time, receiver: &Receiver) -> bool {
        let waited = match self.state {
            State::Blocked => true,
            State::Busy(until) => until < now,
            State::Copying(..) | State::Absorbing(..) => false,
        };
        waited && receiver.readable() > 0
    }

    /// Whether it neither sleeps nor waits for data.
    #[inline]
    pub fn runs(&self) -> bool {
        match self.state {
            State::Busy(_) => self.plan.delay_ns == 0,
            State::Copying(..) | State::Absorbing(..) => true,
            State::Blocked => false,
        }
    }

    /// Whether it uses a CPU at `now`: in read(), or on its way to the next one. Unlike one that [`runs`](Self::runs), it may have found nothing by now.
    #[inline]
    pub fn is_running(&self, now: Time) -> bool {
        match self.state {
            State::Busy(until) => self.plan.delay_ns == 0 && until >= now,
            State::Copying(..) | State::Absorbing(..) => true,
            State::Blocked => false,
        }
    }

    /// When it should run, given that `receiver` may have data.
    #[inline]
    pub fn due(&self, now: Time, receiver: &Receiver) -> Option<Time> {
        match self.state {
            State::Busy(t) | State::Copying(t, _) | State::Absorbing(t, _) => Some(t.max(now)),
            State::Blocked if receiver.readable() > 0 => Some(now),
            State::Blocked => None,
        }
    }

    /// Whether it will go on to find nothing, unless data come: it need not be called for that.
    #[inline]
    pub fn finds_nothing(&self, receiver: &Receiver) -> bool {
        matches!(self.state, State::Busy(_)) && receiver.readable() == 0
    }
    /// It is not called before there are data, and keeps this place among what happens when it would have been.
    #[inline]
    pub fn doze(&mut self, turn: Turn) {
        self.dozes = Some(turn);
    }
    /// When it would have been called, and its place, while it dozes.
    #[inline]
    pub fn dozes(&self) -> Option<(Time, Turn)> {
        match self.state {
            State::Busy(t) => self.dozes.map(|turn| (t, turn)),
            _ => None,
        }
    }
    /// It dozes no longer. When it would have been called, and its place, if it did.
    #[inline]
    pub fn wake(&mut self) -> Option<(Time, Turn)> {
        let dozed = self.dozes();
        self.dozes = None;
        dozed
    }

    /// A segment comes: the receiver takes it in, unless the socket is locked; false then.
    #[inline]
    pub fn on_segment(&mut self, now: Time, segment: &Segment, receiver: &mut Receiver) -> bool {
        let is_free = self.is_free();
        if is_free {
            receiver.on_segment(now, segment, 0);
        } else {
            receiver.hold(segment, &mut self.backlog);
        }
        is_free
    }

    /// The receiver takes in at once what waits for its socket.
    pub fn absorb_all(&mut self, now: Time, receiver: &mut Receiver) {
        while receiver.absorb(now, &mut self.backlog) {
            self.absorbed = true;
        }
    }
    /// Whether the receiver has taken segments in from the backlog since this was last asked.
    #[inline]
    pub fn take_absorbed(&mut self) -> bool {
        std::mem::take(&mut self.absorbed)
    }

    /// It runs: a read begins, goes on, or ends. Bytes read before `half` count for the first half of the trial.
    #[inline]
    pub fn run(&mut self, now: Time, costs: Costs, half: Time, receiver: &mut Receiver, noise: &mut Stream) {
        let state = self.state;
        let (room, begun) = match state {
            State::Busy(t) | State::Copying(t, _) | State::Absorbing(t, _) if t > now => return,
            State::Absorbing(_, room) => {
                self.absorbed |= receiver.absorb(now, &mut self.backlog);
                if self.absorbs(now, costs, room) {
                    return;
                }
                let Some(room) = room else { return self.leave(now, costs, noise) };
                (room, true)
            }
            State::Copying(_, room) if room > 0 && self.absorbs(now, costs, Some(room)) => return,
            State::Copying(_, room) => (room, true),
            State::Busy(_) | State::Blocked => (self.plan.size, false),
        };
        let (n, buffers) = receiver.copy(now, room);
        self.received += n;
        if now < half {
            self.received_first_half = self.received.saturating_sub(receiver.missing());
        }
        if n > 0 {
            self.state = State::Copying(now + costs.read / 2 * u64::from(buffers), room - n);
            if costs.read > Duration::ZERO {
                return;
            }
        } else if !begun {
            self.state = State::Blocked;
            return;
        }
        receiver.finish_read(now, true);
        if !self.absorbs(now, costs, None) {
            self.leave(now, costs, noise);
        }
    }

    /// Whether segments wait for the socket: then the next one is taken in after half a read's cost.
    #[inline]
    fn absorbs(&mut self, now: Time, costs: Costs, room: Option<u64>) -> bool {
        if self.backlog.is_empty() {
            return false;
        }
        self.state = State::Absorbing(now + costs.read / 2, room);
        true
    }

    /// The call returns; the application sleeps or calls again.
    #[inline]
    fn leave(&mut self, now: Time, costs: Costs, noise: &mut Stream) {
        let next = now + costs.read / 2;
        self.state = State::Busy(if self.plan.delay_ns > 0 { self.awake(next, costs, noise) } else { next });
    }

    /// When a sleep that begins at `t` is over.
    #[inline]
    fn awake(&self, t: Time, costs: Costs, noise: &mut Stream) -> Time {
        t + Duration(self.plan.delay_ns) + costs.oversleep(noise)
    }
}
