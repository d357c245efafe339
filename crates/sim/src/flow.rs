//! One connection with its two applications.
//!
//! The sending application writes chunks; the receiving one sleeps, reads, and takes in itself what comes while it holds the socket.
//! docs/models/applications.md says where their times come from.

mod summary;

use crate::plan::{App, FlowPlan};
use std::collections::VecDeque;
use tcpscape_base::{Duration, Segment, Stream, Time};
use tcpscape_tcp::{Receiver, Sender};

/// How far a connection has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    /// connect() has not sent anything yet.
    Waiting,
    /// The SYN was sent.
    Opened,
    /// The sender has stopped: whatever comes is answered with a RST.
    Closed,
    /// Nothing of it is left: the receiver has accepted the RST, or never heard of the connection.
    Over,
}

/// A connection in a trial.
pub(crate) struct Flow<'a> {
    plan: &'a FlowPlan,
    pub start: Time,
    pub stop: Time,
    pub sender: Sender,
    pub receiver: Receiver,
    life: Life,
    /// When connect() returned.
    begin: Option<Time>,
    writer: Writer,
    reader: Reader,
    /// What came while the reader held the socket.
    backlog: VecDeque<Segment>,
    noise: Stream,
    received: u64,
    received_first_half: u64,
}

struct Writer {
    chunk: u64,
    gap: Duration,
    /// Bytes left of the chunk being written.
    left: u64,
    /// Bytes left in all.
    total: u64,
    due: Time,
    blocked: bool,
}

/// What running costs an application in time.
#[derive(Clone, Copy)]
pub(crate) struct Costs {
    /// Timer slack of a sleep.
    pub slack: Duration,
    /// One write().
    pub write: Duration,
    /// One read().
    pub read: Duration,
    /// Most that a sleep lasts longer.
    pub noise: Duration,
}

impl Costs {
    /// What a sleep adds to the time asked for.
    fn oversleep(&self, noise: &mut Stream) -> Duration {
        if self.noise == Duration::ZERO {
            return self.slack;
        }
        self.slack + Duration(noise.next_u64() % self.noise.0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Sleeps or works until then, then reads.
    Busy(Time),
    /// In read() until then, with room left for so many bytes.
    Copying(Time, u64),
    /// In read(), takes a segment of the backlog in at that time; then copies on if there is room.
    Absorbing(Time, Option<u64>),
    /// Blocked in read().
    Blocked,
}

impl<'a> Flow<'a> {
    pub fn new(plan: &'a FlowPlan, duration_ns: u64, sender: Sender, receiver: Receiver, noise: Stream) -> Flow<'a> {
        let (start, stop) = plan.span(duration_ns);
        let (chunk, total) = match plan.app {
            App::Bulk { chunk } | App::Paced { chunk, .. } => (chunk, u64::MAX),
            App::Finite { chunk, bytes } => (chunk, bytes),
        };
        Flow {
            plan,
            start,
            stop,
            sender,
            receiver,
            life: Life::Waiting,
            begin: None,
            writer: Writer { chunk, gap: plan.gap(), left: chunk.min(total), total, due: Time::ZERO, blocked: false },
            reader: Reader::Blocked,
            backlog: VecDeque::new(),
            noise,
            received: 0,
            received_first_half: 0,
        }
    }

    // ---- how it begins and ends ----

    /// Whether its connection is still to be opened, at a time before its end.
    pub fn is_to_open(&self, now: Time) -> bool {
        self.life == Life::Waiting && now < self.stop
    }

    /// Whether it should have been opened already.
    pub fn waits_since_start(&self, now: Time) -> bool {
        self.life == Life::Waiting && self.start <= now
    }

    /// Its application calls connect(), at its start time; the SYN leaves now.
    pub fn open(&mut self, now: Time) {
        self.life = Life::Opened;
        self.sender.connect(now, self.start);
    }

    /// Whether its sender has stopped.
    #[inline]
    pub fn is_closed(&self) -> bool {
        matches!(self.life, Life::Closed | Life::Over)
    }

    /// Whether its sender stops: the RST that is to tell the receiver begins at the sequence number returned. None if there is nobody to tell.
    pub fn close(&mut self) -> Option<u64> {
        self.life = if self.begin.is_some() { Life::Closed } else { Life::Over };
        (self.life == Life::Closed).then(|| self.sender.snd_nxt())
    }

    /// The receiver has accepted a RST.
    pub fn reset(&mut self) {
        self.life = Life::Over;
    }

    /// Whether neither end has anything to do with it any more.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.life == Life::Over
    }

    /// Whether its application has connected and not stopped.
    pub fn carries_data(&self) -> bool {
        self.begin.is_some() && !self.is_closed()
    }

    // ---- the sending application ----

    /// The sender's application runs: writes what is due, one chunk. Returns when it wants to run again, if it is not blocked.
    pub fn write(&mut self, now: Time, costs: Costs) -> Option<Time> {
        if self.is_closed() || now >= self.stop {
            return None;
        }
        if self.begin.is_none() {
            self.begin = Some(now);
            self.writer.due = now;
        }
        let w = &mut self.writer;
        if now < w.due {
            return Some(w.due);
        }
        w.blocked = false;
        if w.total == 0 {
            return None;
        }
        let n = self.sender.write(now, w.left);
        w.left -= n;
        w.total -= n.min(w.total);
        if w.left > 0 {
            w.blocked = true;
            return None;
        }
        w.left = w.chunk.min(w.total);
        let next = now + costs.write;
        w.due = if w.gap > Duration::ZERO { next + w.gap + costs.oversleep(&mut self.noise) } else { next };
        Some(w.due)
    }

    /// Whether the writer waits for room, or for the connection, rather than for time.
    #[inline]
    pub fn writer_blocked(&self) -> bool {
        self.writer.blocked || self.begin.is_none()
    }

    /// Everything of a finite transfer was written and acknowledged.
    #[inline]
    pub fn finished(&self) -> bool {
        self.writer.total == 0 && self.sender.idle() && self.begin.is_some()
    }

    // ---- the receiving application ----

    /// The connection was accepted: the receiving application starts its loop.
    pub fn accept(&mut self, now: Time, costs: Costs) {
        let d = self.plan.read.delay_ns;
        self.reader = if d > 0 { Reader::Busy(now + Duration(d) + costs.oversleep(&mut self.noise)) } else { Reader::Blocked };
    }

    /// When the receiving application should run, given that there may be data.
    pub fn read_due(&self, now: Time) -> Option<Time> {
        match self.reader {
            Reader::Busy(t) | Reader::Copying(t, _) | Reader::Absorbing(t, _) => Some(t.max(now)),
            Reader::Blocked if self.receiver.readable() > 0 => Some(now),
            Reader::Blocked => None,
        }
    }

    /// A segment comes to the receiver. While its application is in read() it waits: the socket is locked.
    pub fn on_segment(&mut self, now: Time, seg: &Segment) {
        if matches!(self.reader, Reader::Copying(..) | Reader::Absorbing(..)) {
            self.backlog.push_back(*seg);
        } else {
            self.receiver.on_segment(now, seg, 0);
        }
    }

    /// The receiver takes in at once what waits for its socket.
    pub fn absorb_all(&mut self, now: Time) {
        for seg in std::mem::take(&mut self.backlog) {
            self.receiver.on_segment(now, &seg, 0);
        }
    }

    /// The receiving application runs: a read begins, goes on, or ends. Copying takes time for each buffer; what comes in the meantime
    /// waits in the backlog, is taken in by the reader, which costs time for each segment, and is read as well. Only the end of
    /// the call says whether an ACK is due.
    pub fn read(&mut self, now: Time, costs: Costs, half: Time) {
        let state = self.reader;
        let (room, begun) = match state {
            Reader::Busy(t) | Reader::Copying(t, _) | Reader::Absorbing(t, _) if t > now => return,
            Reader::Absorbing(_, room) => {
                if let Some(seg) = self.backlog.pop_front() {
                    self.receiver.on_segment(now, &seg, 0);
                }
                if self.absorbs(now, costs, room) {
                    return;
                }
                let Some(room) = room else { return self.leave_read(now, costs) };
                (room, true)
            }
            Reader::Copying(_, room) if room > 0 && self.absorbs(now, costs, Some(room)) => return,
            Reader::Copying(_, room) => (room, true),
            Reader::Busy(_) | Reader::Blocked => (self.plan.read.size, false),
        };
        let (n, buffers) = self.receiver.copy(now, room);
        self.received += n;
        if now < half {
            self.received_first_half = self.received;
        }
        if n > 0 {
            self.reader = Reader::Copying(now + costs.read / 2 * u64::from(buffers), room - n);
            if costs.read > Duration::ZERO {
                return;
            }
        } else if !begun {
            self.reader = Reader::Blocked;
            return;
        }
        self.receiver.finish_read(now, true);
        if !self.absorbs(now, costs, None) {
            self.leave_read(now, costs);
        }
    }

    /// Whether segments wait for the socket: then the reader takes the next one in after `costs.read / 2`.
    fn absorbs(&mut self, now: Time, costs: Costs, room: Option<u64>) -> bool {
        if self.backlog.is_empty() {
            return false;
        }
        self.reader = Reader::Absorbing(now + costs.read / 2, room);
        true
    }

    /// The call returns; the application sleeps or calls again.
    fn leave_read(&mut self, now: Time, costs: Costs) {
        let next = now + costs.read / 2;
        let d = self.plan.read.delay_ns;
        self.reader = Reader::Busy(if d > 0 { next + Duration(d) + costs.oversleep(&mut self.noise) } else { next });
    }
}
