//! One connection: its sender and receiver, the application at each end, and how far it has come.
//!
//! docs/models/tcp/applications.md says where the applications' times come from.

mod client;
mod reader;
mod summary;
mod writer;

use client::Client;
use reader::Reader;
use tcpscape_base::{Duration, Segment, Stream, Time};
use tcpscape_plan::{App, FlowPlan};
use tcpscape_tcp::{Receiver, Sender};
use writer::Writer;

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
    pub reader: Reader,
    /// What asks for data, where the receiving application does.
    client: Option<Box<Client>>,
    /// By how much longer its applications' sleeps last.
    noise: Stream,
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

/// What the application of a connection does, and from when until when.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub app: App,
    pub start: Time,
    pub stop: Time,
}

impl<'a> Flow<'a> {
    /// A connection before its start.
    pub fn new(plan: &'a FlowPlan, task: &Task, sender: Sender, receiver: Receiver, noise: Stream) -> Flow<'a> {
        Flow {
            plan,
            start: task.start,
            stop: task.stop,
            sender,
            receiver,
            life: Life::Waiting,
            begin: None,
            writer: Writer::new(plan, &task.app),
            reader: Reader::new(plan.read),
            client: Client::of(plan).map(Box::new),
            noise,
        }
    }

    /// Whether its data travel up the chain: from the right host to the left one.
    pub fn is_up(&self) -> bool {
        self.plan.up
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

    /// Its sender stops. Returns the sequence number of the RST that tells the receiver, None if there is nobody to tell.
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

    /// It runs. Returns when it wants to run again, if it is not blocked.
    pub fn write(&mut self, now: Time, costs: Costs) -> Option<Time> {
        if self.is_closed() || now >= self.stop {
            return None;
        }
        if self.begin.is_none() {
            self.begin = Some(now);
            self.writer.begin(now);
        }
        self.writer.run(now, costs, &mut self.sender, &mut self.noise)
    }

    /// Whether it waits for room, or for the connection, rather than for time.
    #[inline]
    pub fn writer_blocked(&self) -> bool {
        self.writer.is_blocked() || self.begin.is_none()
    }

    /// Whether everything of a finite transfer was written.
    #[inline]
    pub fn is_written(&self) -> bool {
        self.writer.is_done()
    }

    /// Everything of a finite transfer was written and acknowledged.
    #[inline]
    pub fn finished(&self) -> bool {
        self.is_written() && self.sender.idle() && self.begin.is_some()
    }

    // ---- the receiving application ----

    /// The connection was accepted: it starts its loop.
    pub fn accept(&mut self, now: Time, costs: Costs) {
        self.reader.begin(now, costs, &mut self.noise);
        if let Some(client) = &mut self.client {
            client.on_syn(now);
        }
    }

    /// Bytes that reached the receiver in order: its application's, also what it had no time to read; what it only pretends to have left out.
    pub fn bytes_received(&self) -> u64 {
        (self.reader.received() + self.receiver.readable()).saturating_sub(self.receiver.missing())
    }

    /// When it should run, given that there may be data.
    #[inline]
    pub fn read_due(&self, now: Time) -> Option<Time> {
        let due = self.reader.due(now, &self.receiver);
        match self.client.as_ref().and_then(|client| client.due()).filter(|_| self.reader.is_free() && !self.is_over()) {
            Some(own) => Some(due.map_or(own, |reader| reader.min(own)).max(now)),
            None => due,
        }
    }

    /// Whether the receiving application will go on to find nothing, unless data come, and does nothing else.
    #[inline]
    pub fn finds_nothing(&self) -> bool {
        self.client.is_none() && self.reader.finds_nothing(&self.receiver)
    }

    /// Whether the receiving application waited before `now` for data that are there now.
    pub fn is_woken(&self, now: Time) -> bool {
        self.client.is_none() && self.reader.is_woken(now, &self.receiver)
    }

    /// Whether the receiving application neither sleeps nor waits.
    #[inline]
    pub fn reads_on(&self) -> bool {
        self.reader.runs()
    }

    /// A segment comes to the receiver; while the application is in read() it waits. Whether the receiver has taken anything in since it was asked
    /// last what it sends.
    #[inline]
    pub fn on_segment(&mut self, now: Time, segment: &Segment) -> bool {
        let is_taken = self.reader.on_segment(now, segment, &mut self.receiver);
        if let Some(client) = self.client.as_mut().filter(|_| self.receiver.is_open()) {
            client.on_open(now);
        }
        is_taken || self.reader.take_absorbed()
    }

    /// Data come to the sender: whether they are a request, for which its application writes from now on.
    pub fn on_request(&mut self, segment: &Segment) -> bool {
        let Some(client) = self.client.as_ref().filter(|_| self.sender.receive(segment)) else { return false };
        self.writer.serve(client.asked_bytes());
        true
    }

    /// The receiver takes in at once what waits for its socket.
    pub fn absorb_all(&mut self, now: Time) {
        self.reader.absorb_all(now, &mut self.receiver);
    }

    /// It runs. Bytes read before `half` count for the first half of the trial. Whether that did more than make room: a receiver that has taken
    /// nothing in and has nothing to send waits for what it waited for.
    pub fn read(&mut self, now: Time, costs: Costs, half: Time) -> bool {
        self.reader.run(now, costs, half, &mut self.receiver, &mut self.noise);
        if let Some(client) = self.client.as_mut().filter(|_| self.reader.is_free()) {
            client.run(now, costs, self.reader.received(), &mut self.receiver, &mut self.noise);
        }
        self.reader.take_absorbed() || self.receiver.has_output()
    }
}
