//! When receiving applications run.
//!
//! Where they share a CPU, who wants to read while another one has it waits until that one finds nothing.
//!
//! What need not be looked up in the calendar is not filed there: a reader that will find nothing keeps its place until there are data (it dozes), one that
//! is woken runs after the event that woke it, and goes on, where nothing else happens before. All of it happens in the calendar's order and counts as the
//! events that it stands for. With the hosts' own clock a reader that runs is the clock's, and each run an event.

use super::node::{Node, Part};
use super::{Engine, LINGER};
use crate::events::Turn;
use tcpscape_base::Time;

/// The reader that runs next, if nothing else happens before at this time, and its place.
pub(super) type Next = Option<(usize, Turn)>;

impl Engine<'_> {
    /// A receiving application wants to run.
    pub(super) fn read(&mut self, i: usize) {
        if self.readers.belongs_to(i) || self.is_cpu_free() {
            self.run_reader(i);
        } else {
            self.wait_to_read(i);
        }
    }

    /// The receiving application that has the CPU which they share. One that dozes past its time has given it up.
    pub(super) fn reading(&self) -> Option<usize> {
        let has_clock = self.clock.is_some();
        self.readers.running().filter(|&r| if has_clock { self.flows[r].reads_on() } else { self.flows[r].reader.is_running(self.now) })
    }

    /// Whether the CPU that they share can go to none but the receiving application that wants it now.
    #[inline]
    fn is_cpu_free(&self) -> bool {
        !self.readers.is_wanted() && self.reading().is_none() && self.events.has_nothing_until(self.now)
    }

    /// A receiving application waits for the CPU. The one that has it is called when it finds nothing, as it gives the CPU up then.
    #[cold]
    fn wait_to_read(&mut self, i: usize) {
        self.readers.wait(i);
        if let Some(r) = self.reading() {
            self.rouse(r);
        } else {
            self.readers.release();
            self.events.want(Node::Cpu, self.now);
        }
    }

    /// A receiving application that waited for data begins to read before all packets of this time are taken in.
    #[cold]
    pub(super) fn begin_to_read(&mut self, i: usize) {
        self.readers.forget(i);
        self.next_reader = self.next_reader.filter(|(next, _)| *next != i);
        if self.flows[i].read(self.now, self.costs, self.half) {
            self.flush_receiver(i);
        } else if let Some(t) = self.flows[i].read_due(self.now) {
            self.want_reader(i, t);
        }
        self.reader_ran(i);
    }

    /// A receiving application runs.
    pub(super) fn run_reader(&mut self, i: usize) {
        self.read_on(i);
        self.reader_ran(i);
    }

    /// A receiving application has run: another one may have the CPU, now or when it has found nothing.
    #[inline]
    fn reader_ran(&mut self, i: usize) {
        if !self.readers.is_shared() {
            return;
        }
        let keeps = self.flows[i].reader.is_running(self.now);
        if self.readers.ran(i, keeps) {
            self.events.want(Node::Cpu, self.now);
        } else if keeps && self.readers.is_wanted() {
            self.rouse(i);
        }
    }

    /// Reads as long as nothing else happens.
    fn read_on(&mut self, i: usize) {
        loop {
            let f = &mut self.flows[i];
            if f.read(self.now, self.costs, self.half) {
                return self.flush_receiver(i);
            }
            let Some(t) = f.read_due(self.now) else { return };
            if self.clock.is_some()
                || t == self.now
                || t > self.end + LINGER
                || self.flows[i].finds_nothing()
                || !self.events.has_nothing_until(t)
            {
                return self.want_reader(i, t);
            }
            self.now = t;
            self.observer.event();
        }
    }

    /// Runs the reader that was woken, if it is its turn.
    #[inline]
    pub(super) fn read_next(&mut self) {
        while let Some((i, turn)) = self.next_reader.take() {
            if !self.events.has_nothing_until(self.now) {
                return self.events.want_in_turn(Node::Flow(i as u32, Part::Reader), self.now, turn);
            }
            self.observer.event();
            self.read(i);
        }
    }

    /// A receiving application wants to go on at `t`.
    pub(super) fn want_reader(&mut self, i: usize, t: Time) {
        let (node, f) = (Node::Flow(i as u32, Part::Reader), &mut self.flows[i]);
        if self.clock.is_some() {
            let runs = f.reads_on();
            return self.want_by_clock(node, t, runs);
        }
        if f.finds_nothing() {
            match (f.reader.dozes(), self.events.is_queued(node)) {
                (None, false) => f.reader.doze(self.events.reserve()),
                (None, true) => self.events.want(node, t),
                (Some(_), _) => {}
            }
            return;
        }
        if self.rouse(i) {
            return;
        }
        match self.next_reader {
            Some((next, _)) if next == i => {}
            None if t == self.now && !self.events.is_queued(node) => self.next_reader = Some((i, self.events.reserve())),
            _ => self.events.want(node, t),
        }
    }

    /// A reader dozes no longer: it takes its place in the calendar, and true comes back, or that it found nothing there counts as an event.
    pub(super) fn rouse(&mut self, i: usize) -> bool {
        match self.flows[i].reader.wake() {
            Some((due, turn)) if due >= self.now => {
                self.events.want_in_turn(Node::Flow(i as u32, Part::Reader), due, turn);
                return true;
            }
            Some(_) => self.observer.event(),
            None => {}
        }
        false
    }

    /// A receiving application is no more, or the trial is over: that it found nothing counts as an event.
    pub(super) fn forget_reader(&mut self, i: usize) {
        self.next_reader = self.next_reader.filter(|(next, _)| *next != i);
        if self.flows[i].reader.wake().is_some_and(|(due, _)| due < self.now) {
            self.observer.event();
        }
    }

    /// Nothing else happens up to `limit` but that readers find nothing.
    #[cold]
    pub(super) fn pass_dozing(&mut self, limit: Time) {
        for i in 0..self.flows.len() {
            if let Some((t, _)) = self.flows[i].reader.dozes().filter(|(t, _)| *t <= limit) {
                self.flows[i].reader.wake();
                self.observer.event();
                self.now = self.now.max(t);
            }
        }
    }
}
