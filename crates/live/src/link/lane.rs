//! One direction of the link: its pipes, in the simulator's order.
//!
//! The stages at the sender's own host form a pipe of their own, as in the simulator; between it and the network's pipe super-packets are
//! cut. Whatever happens inside happens at its own time and in order, however late the owner of the clock comes.

use super::frame::Cargo;
use super::Whole;
use tcpscape_base::{Packet, Time};
use tcpscape_path::{segments, Direction, Host, PathSpec, Pipe, StageStats, HOST_STREAMS, NETWORK_STREAMS, REVERSE_STREAMS};

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
            Direction::Forward => spec.split_host(),
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
            p.edt = at.max(Time(1)); // 0 is none
        }
        let first = self.host.as_mut().unwrap_or(&mut self.network);
        if self.whole || p.segs <= 1 {
            first.push(at, p);
        } else {
            parts(&p, |part| {
                first.push(at, part);
            });
        }
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
            if let Some(p) = self.network.pop(t) {
                return Some((t, p));
            }
        }
    }

    /// Moves what leaves the sender's host at `t` into the network.
    fn leave_host(&mut self, t: Time) {
        let Some(host) = &mut self.host else { return };
        if host.next_event().map_or(true, |h| h > t) {
            return;
        }
        while let Some(p) = host.pop(t) {
            if p.segs > 1 && !self.offload {
                parts(&p, |part| {
                    self.network.push(t, part);
                });
            } else {
                self.network.push(t, p);
            }
        }
    }

    /// Packets inside; a super-packet counts once where it travels whole.
    pub fn held(&self) -> u64 {
        self.pipes().map(Pipe::held).sum()
    }

    /// The sender's host, where it has a queue, and the network.
    pub fn pipes(&self) -> impl Iterator<Item = &Pipe<Cargo>> {
        self.host.iter().chain([&self.network])
    }

    /// The accounts of the queues of the sender's host and of the network, with what each stage holds now.
    pub fn stats(&self) -> [Vec<StageStats>; 2] {
        let now = |pipe: &Pipe<Cargo>| {
            let mut queues = pipe.stats();
            for q in queues.iter_mut().filter(|q| q.depth == 0) {
                (q.backlog_packets, q.backlog_bytes) = pipe.backlog(q.stage);
            }
            queues
        };
        [self.host.as_ref().map(now).unwrap_or_default(), now(&self.network)]
    }
}

/// The packets of MTU size inside, each with its own number.
fn parts(p: &Packet<Cargo>, mut each: impl FnMut(Packet<Cargo>)) {
    for mut part in segments(p) {
        part.id = part.body.number();
        each(part);
    }
}
