//! The engine: one trial, one event after the other.
//!
//! An event calls a [`Node`]: a pipe of the network moves packets, a machine's timer fires, an application runs, somebody looks. The order
//! within an instant is that of `events.rs`: all packets and timers, then applications (as a process runs when the interrupts are done),
//! then samples. Each part of a trial has a file with its own state: `pipes.rs` which pipes there are, `network.rs` the packets in them,
//! `neighbours.rs` address resolution, `cpu.rs` the applications' CPUs, `observe.rs` what comes out, `progress.rs` whether anything comes of it,
//! `reading.rs` when readers run; `probes.rs` and `transfers.rs` the traffic besides the plan's flows; `packets.rs` and `connections.rs` are what they do
//! together.

mod clock;
mod connections;
mod cpu;
mod neighbours;
mod network;
mod node;
mod observe;
mod packets;
mod pipes;
mod probes;
mod progress;
mod reading;
mod setup;
mod transfers;

use crate::checked::CheckedPlan;
use crate::events::Events;
use crate::flow::{Costs, Flow};
use crate::output::TrialOutput;
use clock::{Clock, Step};
use cpu::Cpu;
use neighbours::Neighbours;
pub use network::{Arrival, Departure, HostKind, Network};
use node::{Node, Part};
use observe::Observer;
pub(crate) use observe::EVENTS_MAX;
use packets::Stack;
pub(crate) use pipes::Pipes;
pub use probes::ProbePacket;
use probes::Probes;
use progress::Progress;
use setup::Hosts;
use tcpscape_base::{Duration, Time};
use transfers::Transfers;

/// How long after the last flow's end packets may still arrive.
const LINGER: Duration = Duration::secs(10);

/// Work (events and deliveries) between two looks at whether a trial is still wanted: about a millisecond.
const LOOK: u64 = 4_096;

/// A trial.
struct Engine<'a> {
    now: Time,
    /// When connections end at the latest.
    end: Time,
    events: Events<Node>,
    /// The hosts' clock, where it goes in steps.
    clock: Option<Clock>,
    network: Network,
    /// Packets between the wire and TCP in their hosts.
    stack: Stack,
    /// What the left host knows of the right one, and the right one of the left one.
    neighbours: [Neighbours; 2],
    /// Those of the plan, then the slots of transfers.
    flows: Vec<Flow<'a>>,
    /// How many the plan has.
    plan_flows: usize,
    probes: Probes<'a>,
    transfers: Transfers<'a>,
    hosts: Hosts<'a>,
    /// Connections that are not over; while connections are still to arrive and while probes run, one for each of these.
    alive: usize,
    /// What running costs applications, and the time up to which their bytes count for the first half.
    costs: Costs,
    half: Time,
    /// The CPU that all sending applications share.
    writers: Cpu,
    /// The CPU that all receiving applications share where hosts take no time for packets; elsewhere each has its own.
    readers: Cpu,
    /// The reader that was woken by what happens now.
    next_reader: reading::Next,
    observer: Observer,
    progress: Progress,
}

impl CheckedPlan<'_> {
    /// Runs one trial: the same plan and seed give the same trial to the last bit.
    pub fn run(&self, seed: u64) -> TrialOutput {
        self.run_within(seed, u64::MAX)
    }

    /// The same for at most so much work, counted in events and deliveries; a trial that would need more ends there.
    pub fn run_within(&self, seed: u64, work: u64) -> TrialOutput {
        let mut engine = Engine::new(self, seed);
        engine.run(work);
        engine.finish()
    }

    /// The same, unless it is stopped: `is_stopped` is asked again and again while the trial runs, and None is the answer once it says so. Asking
    /// changes nothing in the trial.
    pub fn run_unless(&self, seed: u64, mut is_stopped: impl FnMut() -> bool) -> Option<TrialOutput> {
        let mut engine = Engine::new(self, seed);
        let mut until = 0;
        while !is_stopped() {
            until += LOOK;
            if engine.run(until) == Ended::Over {
                return Some(engine.finish());
            }
        }
        None
    }
}

/// Why events were not handled any further.
#[derive(PartialEq, Eq)]
enum Ended {
    /// The trial is over.
    Over,
    /// It has done the work that it might do.
    Work,
}

impl Engine<'_> {
    /// Handles events until the trial is over, or has done so much work since its begin.
    fn run(&mut self, most_work: u64) -> Ended {
        let limit = self.end + LINGER;
        while self.observer.work() < most_work {
            let next_look = most_work.min(self.progress.due());
            while self.observer.work() < next_look {
                let Some((t, node)) = self.next(limit) else {
                    self.pass_dozing(limit);
                    return Ended::Over;
                };
                self.now = t;
                self.observer.event();
                self.call(node);
                if self.alive == 0 {
                    return Ended::Over;
                }
                self.read_next();
            }
            if let Some(problem) = self.progress.missing(self.now, &self.observer) {
                self.observer.stalled(problem);
                return Ended::Over;
            }
        }
        Ended::Work
    }

    /// The next event at or before `limit`, and when it happens.
    #[inline]
    fn next(&mut self, limit: Time) -> Option<(Time, Node)> {
        if self.clock.is_none() {
            return self.events.pop(limit);
        }
        self.next_by_clock(limit)
    }

    fn next_by_clock(&mut self, limit: Time) -> Option<(Time, Node)> {
        let clock = self.clock.as_mut()?;
        loop {
            if let Some((_, node)) = self.events.pop(clock.now()) {
                return Some((clock.now(), node));
            }
            match clock.advance(self.events.next(limit)) {
                Step::Shows(t) if t > limit => return None,
                Step::Shows(_) => {}
                Step::Runs(node) => return Some((clock.now(), node)),
                Step::Nothing => return None,
            }
        }
    }

    /// An application wants to go on at `t`: it runs until then, or sleeps.
    #[inline]
    fn want_application(&mut self, node: Node, t: Time, runs: bool) {
        if self.clock.is_none() {
            return self.events.want(node, t.max(self.now));
        }
        self.want_by_clock(node, t, runs);
    }

    #[inline(never)]
    fn want_by_clock(&mut self, node: Node, t: Time, runs: bool) {
        match &mut self.clock {
            Some(clock) if runs && t > self.now => clock.run(node, t.since(self.now).0),
            _ => self.events.want(node, t.max(self.now)),
        }
    }

    fn finish(mut self) -> TrialOutput {
        (0..self.flows.len()).for_each(|i| self.forget_reader(i));
        self.observer.traffic(self.probes.summaries(self.end), self.probes.samples(), self.transfers.summaries(&self.flows));
        self.observer.finish(self.now, self.end, &mut self.flows[..self.plan_flows], &self.network)
    }

    fn call(&mut self, node: Node) {
        match node {
            Node::Pipe(pipe) => self.call_pipe(pipe),
            Node::Neighbours => self.repeat_question(),
            Node::FlowSamples => self.sample_flows(),
            Node::QueueSamples => self.sample_queues(),
            Node::Cpu => self.schedule(),
            Node::Probes => self.run_probes(),
            Node::Transfers => self.run_transfers(),
            Node::Hosts => self.run_hosts(),
            Node::Flow(i, Part::Connection) => self.start_or_stop(i as usize),
            Node::Flow(i, Part::Sender) => self.call_sender(i as usize),
            Node::Flow(i, Part::Receiver) => self.call_receiver(i as usize),
            Node::Flow(i, Part::Writer) => self.write(i as usize),
            Node::Flow(i, Part::Reader) => self.read(i as usize),
        }
    }

    /// A sender's timer, perhaps, or there is room in its host's queue again. The timers of a connection that was aborted are gone.
    fn call_sender(&mut self, i: usize) {
        if self.flows[i].is_closed() {
            return;
        }
        let sender = &mut self.flows[i].sender;
        if sender.next_event().is_some_and(|t| t <= self.now) {
            sender.on_timer(self.now);
        }
        self.flush_sender(i);
        self.tell_departures();
    }

    /// A receiver's timer, perhaps.
    fn call_receiver(&mut self, i: usize) {
        let receiver = &mut self.flows[i].receiver;
        if receiver.next_event().is_some_and(|t| t <= self.now) {
            receiver.on_timer(self.now);
        }
        self.flush_receiver(i);
    }
}

#[cfg(test)]
mod tests;
