//! One direction of the link: its pipes, in the simulator's order.
//!
//! The stages at the sender's own host form a pipe of their own, as in the simulator; between it and the network's pipe super-packets are
//! cut. Whatever happens inside happens at its own time and in order, however late the owner of the clock comes.

use super::frame::Cargo;
use super::Whole;
use tcpscape_base::{Edt, Packet, Time};
use tcpscape_path::{
    Direction, Dropped, Host, Patch, PathSpec, Pipe, ScheduledChange, StageStats, HOST_STREAMS, NETWORK_STREAMS, REVERSE_STREAMS,
};

/// Packets with the time when they were due.
pub(crate) type Due = (Time, Packet<Cargo>);

/// The pipes of one direction.
pub(crate) struct Lane {
    host: Option<Pipe<Cargo>>,
    network: Pipe<Cargo>,
    /// Whether super-packets survive the sender's device.
    offload: bool,
    /// Whether the first queue is that of the host where the direction begins, whose packets have a departure time.
    own_queue: bool,
    whole: bool,
}

impl Lane {
    /// Empty. The specification must have passed [`PathSpec::validate`].
    pub fn new(direction: Direction, spec: &PathSpec, seed: u64, whole: Whole) -> Lane {
        let (host, network) = match direction {
            Direction::Forward => spec.split_host(Host::Sender),
            Direction::Reverse => (PathSpec::default(), spec.clone()),
        };
        let streams = if direction == Direction::Forward { NETWORK_STREAMS } else { REVERSE_STREAMS };
        let at_router = spec.stages.first().map_or(true, |s| s.at == Host::Router);
        let has_host = !host.stages.is_empty();
        Lane {
            host: has_host.then(|| Pipe::new(&host, seed, HOST_STREAMS)),
            network: Pipe::new(&network, seed, streams),
            offload: whole == Whole::Everywhere,
            // The simulator's sender sets it also where its host has no queue.
            own_queue: direction == Direction::Forward || !at_router,
            whole: whole == Whole::Everywhere || has_host && whole == Whole::AtHost,
        }
    }

    /// A frame's packets enter.
    pub fn push(&mut self, at: Time, mut p: Packet<Cargo>) {
        if self.own_queue {
            p.edt = Some(Edt::at(at));
        }
        self.host.as_mut().unwrap_or(&mut self.network).enter(at, p, self.whole);
    }

    /// When something happens.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        let (host, network) = (self.host.as_ref().and_then(Pipe::next_event), self.network.next_event());
        host.into_iter().chain(network).min()
    }

    /// The next packet that has come out at or before `until`; `latest` follows the events.
    pub fn pop(&mut self, until: Time, latest: &mut Time) -> Option<Due> {
        loop {
            let t = self.next_event().filter(|t| *t <= until)?;
            *latest = t.max(*latest);
            self.leave_host(t);
            if self.network.next_event().is_some_and(|n| n <= t) {
                if let Some(p) = self.network.pop(t) {
                    return Some((t, p));
                }
            }
        }
    }

    /// Moves what leaves the sender's host until `until` into the network, each packet at its own time.
    fn leave_host(&mut self, until: Time) {
        let Some(host) = &mut self.host else { return };
        while let Some(t) = host.next_event().filter(|t| *t <= until) {
            let Some(p) = host.pop(t) else { continue };
            self.network.enter(t, p, self.offload);
        }
    }

    /// The pipe with stage `stage` of the path, and its number there.
    fn pipe_of(&mut self, stage: usize) -> (&mut Pipe<Cargo>, usize) {
        let own = self.own_stages();
        match &mut self.host {
            Some(host) if stage < own => (host, stage),
            _ => (&mut self.network, stage - own),
        }
    }

    /// Stages at the sender's own host.
    fn own_stages(&self) -> usize {
        self.host.as_ref().map_or(0, Pipe::stages)
    }

    /// Changes a queue, after everything that is due before.
    pub fn change(&mut self, now: Time, stage: usize, depth: usize, patch: &Patch) {
        self.leave_host(now);
        let (pipe, stage) = self.pipe_of(stage);
        pipe.change(now, stage, depth, patch);
    }

    /// Ends outages.
    pub fn unblock(&mut self, now: Time) {
        let stages = self.pipes().map(Pipe::stages).sum();
        let open = Patch { outage: Some(false), keep_tokens: true, ..Patch::default() };
        (0..stages).for_each(|stage| self.change(now, stage, 0, &open));
    }

    /// Replaces the changes to come, after everything that is due before.
    pub fn set_schedule(&mut self, now: Time, schedule: &[ScheduledChange]) {
        self.leave_host(now);
        let [host, network] = ScheduledChange::split(schedule, self.own_stages());
        self.network.advance(now);
        self.network.set_schedule(&network);
        if let Some(pipe) = &mut self.host {
            pipe.set_schedule(&host);
        }
    }

    /// Writes down drops from now on.
    pub fn track_drops(&mut self) {
        self.host.iter_mut().chain([&mut self.network]).for_each(Pipe::track_drops);
    }

    /// Every drop since the last call, with the number of its stage in the path.
    pub fn drain_drops(&mut self, mut each: impl FnMut(Dropped)) {
        let own = self.own_stages();
        self.host.iter_mut().for_each(|host| host.drain_drops().for_each(&mut each));
        self.network.drain_drops().for_each(|d| each(Dropped { stage: d.stage + own, ..d }));
    }

    /// Packets inside; a super-packet counts once where it travels whole.
    pub fn held(&self) -> u64 {
        self.pipes().map(Pipe::held).sum()
    }

    /// Their bytes, without what has come out of a pipe already.
    pub fn bytes_held(&self) -> u64 {
        self.pipes().map(|pipe| (0..pipe.stages()).map(|stage| pipe.backlog(stage).1).sum::<u64>()).sum()
    }

    /// The sender's host, where it has a queue, and the network.
    pub fn pipes(&self) -> impl Iterator<Item = &Pipe<Cargo>> {
        self.host.iter().chain([&self.network])
    }

    /// The accounts of the queues of the sender's host and of the network.
    pub fn stats(&self) -> [Vec<StageStats>; 2] {
        [self.host.as_ref().map(Pipe::stats).unwrap_or_default(), self.network.stats()]
    }
}
