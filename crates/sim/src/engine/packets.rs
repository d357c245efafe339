//! How packets come from machine to machine: what a sender or receiver has to send enters the network, what comes out of it is handed over.
//!
//! Hosts take time: each packet that arrives is between the wire and TCP for a while (interrupt, device driver, IP).
//!
//! Source: the smallest RTTs of paths without a delay (docs/models/tcp/hosts.md). All hosts of a trial take the same time for each packet, so that the
//! packets of all of them wait in one line. Not modelled: that a host with much to do takes longer, and hands several packets over at once. Where they take
//! none, all of an instant is taken in at once, 64 at a time (docs/models/methods/engine.md, "Batches").

use super::clock::Clock;
use super::network::{arrival, Arrival, Hop, Load, Wire};
use super::node::{Node, Part};
use super::Engine;
use std::collections::VecDeque;
use tcpscape_base::{Duration, Flags, Packet, Segment, Time};
use tcpscape_tcp::Transmit;

/// Packets that a host takes in before the processes run which they have woken (`net.core.dev_weight`; Linux: Documentation/admin-guide/sysctl/net.rst).
const BATCH: u32 = 64;

impl Engine<'_> {
    /// A pipe of the network is called again when something happens there.
    #[inline]
    pub(super) fn wake(&mut self, pipe: u32) {
        if let Some(t) = self.network.next_event(pipe, self.now) {
            self.events.want(Node::Pipe(pipe), t.max(self.now));
        }
    }

    /// Something happens in a pipe.
    #[inline]
    pub(super) fn call_pipe(&mut self, pipe: u32) {
        match self.network.leaves_to(pipe) {
            Some(to) => self.leave_host(pipe, to),
            None => self.deliver_from(pipe),
        }
    }

    // ---- the sender's host ----

    /// Gives a segment to the sender's host; false if its queue has no room for it.
    pub(super) fn transmit(&mut self, i: usize, t: &Transmit) -> bool {
        self.observer.at_sender(self.now, i, &t.segment, false);
        let (pipe, taken) = self.network.send(self.now, self.number(i), t);
        self.wake(pipe);
        taken
    }

    /// Sends what a sender has to send, wakes its application if it may write, and sees when the sender wants to be called again.
    pub(super) fn flush_sender(&mut self, i: usize) {
        self.observer.sender_sends(self.now, i, &self.flows[i].sender);
        while let Some(t) = self.flows[i].sender.poll_transmit() {
            if !self.flows[i].is_closed() && !self.transmit(i, &t) {
                self.flows[i].sender.on_refused(self.now, &t);
            }
        }
        let f = &mut self.flows[i];
        self.observer.sender_ran(self.now, i, &f.sender);
        if f.is_closed() {
            return;
        }
        if f.sender.take_wake() && f.writer_blocked() {
            let wakes = Duration(self.clock.as_ref().map_or(0, Clock::wake_ns));
            self.want_application(Node::Flow(i as u32, Part::Writer), self.now + wakes, true);
        }
        let f = &mut self.flows[i];
        if let Some(t) = f.sender.next_event() {
            self.events.want(Node::Flow(i as u32, Part::Sender), t.max(self.now));
        }
        if f.finished() {
            f.stop = self.now;
            self.stop_flow(i);
            self.on_finished(i);
        }
    }

    /// What has left a host's own queue enters the pipe behind it.
    fn leave_host(&mut self, pipe: u32, to: u32) {
        self.network.leave_host(pipe, to, self.now);
        self.tell_releases(pipe);
        self.wake(pipe);
        self.deliver_from(to);
    }

    /// Tells senders what has left the queue of their host, or was dropped there: with small queues there is room again.
    fn tell_releases(&mut self, pipe: u32) {
        let small_queues = self.network.holds_sender(pipe);
        for d in self.network.released(pipe) {
            let Some(i) = self.transfers.slot(d.flow) else { continue };
            let sender = &mut self.flows[i].sender;
            sender.on_departure(self.now, d.burst, d.bytes);
            if small_queues && (sender.next_event().is_some() || sender.has_output()) {
                self.events.want(Node::Flow(i as u32, Part::Sender), self.now);
            }
        }
    }

    /// A batch of ACKs, a timer or a write is done: what it sent has left a host without a queue.
    pub(super) fn tell_departures(&mut self) {
        loop {
            let departed = self.network.departed();
            if departed.is_empty() {
                return;
            }
            for d in departed {
                let Some(i) = self.slot(d.flow) else { continue };
                let sender = &mut self.flows[i].sender;
                sender.on_departure(self.now, d.burst, d.bytes);
                if sender.has_output() {
                    self.flush_sender(i);
                }
            }
        }
    }

    // ---- the network ----

    /// Hands over what has come out of a pipe.
    pub(super) fn deliver_from(&mut self, pipe: u32) {
        let mut taken = 0;
        while let Some(mut p) = self.network.pop(pipe, self.now) {
            match self.network.hop(&p) {
                Hop::Pipe(next) => {
                    self.network.move_on(self.now, p, next);
                    self.wake(next);
                }
                _ if p.corrupt => {} // the receiving device's checksum
                end if self.stack.takes_time() => self.stack.enter(self.now, pipe, arrival(&p, end)),
                end => {
                    self.take_in(&mut p, end);
                    taken += 1;
                    if taken % BATCH == 0 && matches!(end, Hop::Receiver) {
                        self.begin_read(p.flow as usize);
                    }
                }
            }
        }
        self.end_batch(pipe);
        self.wake_hosts();
        self.wake(pipe);
    }

    /// A host has taken in as many packets as it does before processes run: the reader of the last one begins to read, if it waited for data and no other
    /// reader has the CPU. What else is due finds its socket locked.
    #[cold]
    fn begin_read(&mut self, number: usize) {
        let Some(i) = self.slot(number).filter(|_| self.hosts.take_in_beside_processes()) else { return };
        if self.reading().is_none() && !self.flows[i].is_over() && self.flows[i].is_woken(self.now) {
            self.begin_to_read(i);
        }
    }

    /// The batch of packets that has come out of a pipe is done.
    fn end_batch(&mut self, pipe: u32) {
        if self.network.ends_at_sender(pipe) {
            self.tell_departures();
        }
    }

    /// Hosts are called again when the next packet has passed the way from the wire.
    #[inline]
    fn wake_hosts(&mut self) {
        if let Some(t) = self.stack.next_event() {
            self.events.want(Node::Hosts, t);
        }
    }

    /// Packets have passed the way from the wire in their hosts.
    pub(super) fn run_hosts(&mut self) {
        let mut batch = None;
        while let Some((pipe, arrival)) = self.stack.leave(self.now) {
            if let Some(before) = batch.replace(pipe).filter(|before| *before != pipe) {
                self.end_batch(before);
            }
            self.hand_over(arrival);
        }
        if let Some(last) = batch {
            self.end_batch(last);
        }
        self.wake_hosts();
    }

    /// Hands over a packet at the end of its way; data with the mark that they got.
    #[inline]
    fn take_in(&mut self, p: &mut Packet<Wire>, end: Hop) {
        match (&mut p.body.load, end) {
            (Load::Segment(segment), Hop::Receiver) => {
                segment.ecn = p.ecn;
                self.deliver(p.flow as usize, segment);
            }
            (Load::Segment(segment), _) => self.acknowledge(p.flow as usize, segment),
            _ => self.hand_over(arrival(p, end)),
        }
    }

    /// Hands a packet to whom it is for.
    #[inline]
    fn hand_over(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Data(number, segment) => self.deliver(number, &segment),
            Arrival::Back(number, segment) => self.acknowledge(number, &segment),
            Arrival::Probe(packet) => self.on_probe(packet),
            Arrival::Question { up } => self.answer_neighbours(up),
            Arrival::Answer { up } => self.neighbours_known(up),
            Arrival::Moved(next) => self.wake(next),
        }
    }

    // ---- the receiver ----

    /// A segment has come to the receiver.
    pub(super) fn deliver(&mut self, number: usize, segment: &Segment) {
        self.observer.delivered(self.now, number, segment);
        let Some(i) = self.slot(number) else { return };
        let f = &mut self.flows[i];
        if f.is_over() {
            return;
        }
        if segment.flags.has(Flags::RST) {
            return self.on_reset(i, segment.seq);
        }
        let is_first = segment.flags.has(Flags::SYN) && !f.receiver.is_open();
        let is_taken = f.on_segment(self.now, segment);
        if is_first {
            self.rouse(i); // a SYN that comes again before the connection is open begins its sleep anew
            self.flows[i].accept(self.now, self.costs);
        } else if !is_taken {
            return;
        }
        self.flush_receiver(i);
    }

    /// A segment goes back from the receiver.
    pub(super) fn reply(&mut self, i: usize, segment: Segment) {
        let pipe = self.network.send_back(self.now, self.number(i), segment);
        self.wake(pipe);
    }

    /// Sends what a receiver has to send, and sees when it and its application want to be called again.
    pub(super) fn flush_receiver(&mut self, i: usize) {
        while let Some(segment) = self.flows[i].receiver.poll_transmit(self.now) {
            self.reply(i, segment);
        }
        let f = &self.flows[i];
        if let Some(t) = f.receiver.next_event() {
            self.events.want(Node::Flow(i as u32, Part::Receiver), t.max(self.now));
        }
        if let Some(t) = f.read_due(self.now) {
            self.want_reader(i, t);
        }
    }

    // ---- the sender ----

    /// A segment has come back to the sender.
    fn acknowledge(&mut self, number: usize, segment: &Segment) {
        self.observer.delivered(self.now, number, segment);
        let Some(i) = self.slot(number) else { return };
        self.observer.at_sender(self.now, i, segment, true);
        let f = &mut self.flows[i];
        if f.is_over() {
            return;
        }
        if f.is_closed() {
            return self.send_reset(i, segment.ack);
        }
        f.sender.on_segment(self.now, segment);
        if segment.len > 0 && f.on_request(segment) {
            self.events.want(Node::Flow(i as u32, Part::Writer), self.now);
        }
        self.flush_sender(i);
    }
}

/// The packets that are between the wire and TCP, of all hosts, in the order in which they came.
pub(super) struct Stack {
    time: Duration,
    /// When each has passed, the pipe that it came out of, and what it is.
    waiting: VecDeque<(Time, u32, Arrival)>,
}

impl Stack {
    /// Hosts that take so long for a packet.
    pub fn new(time: Duration) -> Stack {
        Stack { time, waiting: VecDeque::new() }
    }

    /// Whether they take any time.
    #[inline]
    pub fn takes_time(&self) -> bool {
        self.time > Duration::ZERO
    }

    /// A packet has come out of a pipe.
    pub fn enter(&mut self, now: Time, pipe: u32, arrival: Arrival) {
        self.waiting.push_back((now + self.time, pipe, arrival));
    }

    /// The next packet that has passed by now, with the pipe that it came out of.
    pub fn leave(&mut self, now: Time) -> Option<(u32, Arrival)> {
        self.waiting.front().filter(|first| first.0 <= now)?;
        self.waiting.pop_front().map(|(_, pipe, arrival)| (pipe, arrival))
    }

    /// When the next packet has passed.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        self.waiting.front().map(|first| first.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_takes_the_same_time_and_they_keep_their_order() {
        let mut stack = Stack::new(Duration::micros(15));
        stack.enter(Time(0), 4, Arrival::Moved(1));
        stack.enter(Time(10_000), 5, Arrival::Moved(2));
        assert_eq!(stack.next_event(), Some(Time(15_000)));
        assert!(stack.leave(Time(14_999)).is_none());
        assert!(matches!(stack.leave(Time(15_000)), Some((4, Arrival::Moved(1)))));
        assert!(stack.leave(Time(15_000)).is_none());
        assert!(matches!(stack.leave(Time(25_000)), Some((5, Arrival::Moved(2)))));
        assert_eq!(stack.next_event(), None);
    }
}
