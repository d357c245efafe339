//! The network of a trial: three pipes (the sender's own host, the way to the receiver, the way back) and the packets on them.
//!
//! Super-packets exist on the sender's host only, unless segmentation offloads are on: between the first and the second pipe they are cut.
//! A host without a queue hands a packet to its device at once; who sent it hears of it when the batch is done.

use super::node::Leg;
use super::ProbePacket;
use crate::checked::CheckedPlan;
use crate::wire::Wire;
use tcpscape_base::{Packet, Segment, Time, ETH_HEADER};
use tcpscape_path::{segments, Host, Pipe, StageStats, HOST_STREAMS, NETWORK_STREAMS, REVERSE_STREAMS};
use tcpscape_tcp::Transmit;

/// Flow number of the packets of neighbour discovery.
const ARP: u32 = u32::MAX;
/// Bytes of such a packet: RFC 826 for IPv4 over Ethernet.
const ARP_BYTES: u32 = 28 + ETH_HEADER;

/// What has come through a direction intact.
pub enum Arrival {
    /// A segment of that flow.
    Segment(usize, Segment),
    /// A packet of a probe.
    Probe(ProbePacket),
    /// A question or an answer of neighbour discovery.
    Neighbours,
}

/// What has left the sender's host of one super-packet.
pub struct Departure {
    /// Its flow.
    pub flow: usize,
    /// The super-packet's number.
    pub burst: u32,
    /// Bytes of frames.
    pub bytes: u32,
}

/// Three pipes.
pub struct Network {
    host: Pipe<Wire>,
    forward: Pipe<Wire>,
    reverse: Pipe<Wire>,
    mss: u16,
    /// Flows of the plan: the numbers behind them are those of its probes.
    flows: usize,
    /// Whether super-packets survive the sender's device.
    offload: bool,
    /// Whether the sender's host has no queue; then what its device has taken since the last batch.
    bare_host: bool,
    departed: Vec<Departure>,
    /// Whether the first queue on the way back is the receiver's own, whose packets have a departure time.
    receivers_queue: bool,
}

impl Network {
    /// Empty, for segments of at most `mss` bytes of payload.
    pub fn new(checked: &CheckedPlan<'_>, mss: u32, seed: u64) -> Network {
        let plan = checked.plan();
        let mut host: Pipe<Wire> = Pipe::new(checked.host(), seed, HOST_STREAMS);
        host.track_departures();
        Network {
            bare_host: host.stages() == 0,
            host,
            forward: Pipe::new(checked.network(), seed, NETWORK_STREAMS),
            reverse: Pipe::new(&plan.reverse, seed, REVERSE_STREAMS),
            mss: mss as u16,
            flows: plan.flows.len(),
            offload: plan.offload,
            departed: Vec::new(),
            receivers_queue: plan.reverse.stages.first().is_some_and(|s| s.at != Host::Router),
        }
    }

    /// Whether the sender's host has no queue of its own.
    pub fn bare_host(&self) -> bool {
        self.bare_host
    }

    /// Whether what waits at the sender's host counts against its sender's limit (TCP small queues).
    pub fn holds_sender(&self) -> bool {
        self.bare_host || self.host.holds_sender()
    }

    /// When something happens on a leg, the past if it has happened; None if nothing will without another packet.
    #[inline]
    pub fn next_event(&self, leg: Leg, now: Time) -> Option<Time> {
        match leg {
            // What was dropped on entering must be told to its sender, even if nothing else happens there.
            Leg::Host if self.host.released() > 0 => Some(now),
            Leg::Host => self.host.next_event(),
            Leg::Network => self.forward.next_event(),
            Leg::Reverse => self.reverse.next_event(),
        }
    }

    /// Gives a segment to the sender's host; false if its queue has no room.
    #[inline]
    pub fn send(&mut self, now: Time, flow: usize, t: &Transmit) -> bool {
        let segment = t.segment;
        let size = segment.frame_len() + u32::from(t.segs - 1) * (segment.frame_len() - segment.len);
        if self.bare_host {
            self.departed.push(Departure { flow, burst: t.burst, bytes: size });
        }
        let p = Packet {
            id: u64::from(t.burst),
            flow: flow as u32,
            size,
            segs: t.segs,
            ecn: segment.ecn,
            edt: t.departure.max(Time(1)), // 0 is none
            corrupt: false,
            body: Wire { segment, mss: self.mss },
        };
        self.host.push(now, p)
    }

    /// Gives a segment to the receiver's host.
    #[inline]
    pub fn send_back(&mut self, now: Time, flow: usize, segment: Segment) {
        let edt = if self.receivers_queue { now.max(Time(1)) } else { Time::ZERO };
        let (size, body) = (segment.frame_len(), Wire { segment, mss: self.mss });
        self.reverse.push(now, Packet { flow: flow as u32, size, segs: 1, ecn: segment.ecn, edt, body, ..Packet::default() });
    }

    /// Gives a packet of a probe, whose number among flows this is, to the host of the receiver or of the sender.
    pub fn send_single(&mut self, now: Time, at_receiver: bool, number: usize, size: u32, packet: ProbePacket) {
        let pipe = if at_receiver { &mut self.reverse } else { &mut self.host };
        pipe.push(now, Packet { flow: number as u32, size, segs: 1, body: Wire::probe(packet), ..Packet::default() });
    }

    /// Sends a question of neighbour discovery.
    pub fn ask_neighbours(&mut self, now: Time) {
        self.host.push(now, Packet { flow: ARP, size: ARP_BYTES, segs: 1, ..Packet::default() });
    }

    /// Sends its answer.
    pub fn answer_neighbours(&mut self, now: Time) {
        self.reverse.push(now, Packet { flow: ARP, size: ARP_BYTES, segs: 1, ..Packet::default() });
    }

    /// Moves what has left the sender's host into the network.
    #[inline]
    pub fn leave_host(&mut self, now: Time) {
        while let Some(p) = self.host.pop(now) {
            if p.segs > 1 && !self.offload {
                for part in segments(&p) {
                    self.forward.push(now, part);
                }
            } else {
                self.forward.push(now, p);
            }
        }
    }

    /// What has left the queue of the sender's host since the last call, or was dropped there.
    #[inline]
    pub fn released(&mut self) -> impl Iterator<Item = Departure> + '_ {
        let departure = |(flow, bytes, burst): (u32, u32, u64)| Departure { flow: flow as usize, burst: burst as u32, bytes };
        self.host.drain_released().filter(|r| r.0 != ARP).map(departure)
    }

    /// What the device of a host without a queue has taken since the last call; nothing where there is a queue.
    #[inline]
    pub fn departed(&mut self) -> Vec<Departure> {
        std::mem::take(&mut self.departed)
    }

    /// The next thing that has come to the receiver, with the marks that it got on its way.
    #[inline]
    pub fn arrived(&mut self, now: Time) -> Option<Arrival> {
        let p = intact(&mut self.forward, now)?;
        if p.body.mss == 0 {
            return Some(self.other(p.flow, p.body.probe_packet()));
        }
        Some(Arrival::Segment(p.flow as usize, Segment { ecn: p.ecn, ..p.body.segment }))
    }

    /// The next thing that has come back to the sender. Marks on ACKs are not seen: TCP does not read them.
    #[inline]
    pub fn came_back(&mut self, now: Time) -> Option<Arrival> {
        let p = intact(&mut self.reverse, now)?;
        if p.body.mss == 0 {
            return Some(self.other(p.flow, p.body.probe_packet()));
        }
        Some(Arrival::Segment(p.flow as usize, p.body.segment))
    }

    /// What is no segment of a connection.
    #[cold]
    fn other(&self, flow: u32, (number, is_answer): (u64, bool)) -> Arrival {
        match flow {
            ARP => Arrival::Neighbours,
            _ => Arrival::Probe(ProbePacket { probe: flow as usize - self.flows, number, is_answer }),
        }
    }

    /// How much has left a host of which its sender was not told.
    #[cfg(test)]
    pub fn news(&self) -> usize {
        self.departed.len() + self.pipes().iter().map(|pipe| pipe.released()).sum::<usize>()
    }

    /// Packets on their way.
    #[cfg(test)]
    pub fn held(&self) -> u64 {
        self.pipes().iter().map(|pipe| pipe.held()).sum()
    }

    fn pipes(&self) -> [&Pipe<Wire>; 3] {
        [&self.host, &self.forward, &self.reverse]
    }

    /// The account of every queue, pipe by pipe.
    pub fn stats(&self) -> [Vec<StageStats>; 3] {
        self.pipes().map(Pipe::stats)
    }

    /// The same, with what each stage holds at this moment.
    pub fn stats_now(&self) -> [Vec<StageStats>; 3] {
        self.pipes().map(|pipe| {
            let mut queues = pipe.stats();
            for q in queues.iter_mut().filter(|q| q.depth == 0) {
                (q.backlog_packets, q.backlog_bytes) = pipe.backlog(q.stage);
            }
            queues
        })
    }
}

/// The next packet out of a pipe that the receiving device's checksum accepts.
#[inline]
fn intact(pipe: &mut Pipe<Wire>, now: Time) -> Option<Packet<Wire>> {
    loop {
        let p = pipe.pop(now)?;
        if !p.corrupt {
            return Some(p);
        }
    }
}
