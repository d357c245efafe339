//! The network of a trial: its pipes, and the packets on them.
//!
//! A packet knows what comes next on its way; the pipes of `pipes.rs` are passed one after the other, and each asks for its own events. Super-packets
//! exist on the sending host only, unless segmentation offloads are on: they are cut as they leave it. A host without a queue hands a packet to its
//! device at once; who sent it hears of it when the batch is done.
//! What a packet carries is a segment, possibly a super-packet, and how it is cut; or what a probe sends, which is no segment.

use super::pipes::{PipePlan, Pipes, Route};
use super::probes::ProbePacket;
use crate::checked::CheckedPlan;
use tcpscape_base::{Ecn, Edt, Packet, Segment, Time, ETH_HEADER};
use tcpscape_path::{Body, Direction, Host, Pipe, StageStats};
use tcpscape_plan::results::QueueAccount;
use tcpscape_plan::{LinkId, Plan};
use tcpscape_tcp::Transmit;

/// Flow numbers that queues see of neighbour discovery: of a question that travels down the chain, and its answer; and of one that travels up.
const DISCOVERY_FLOWS: [u32; 2] = [u32::MAX, u32::MAX - 1];
/// Bytes of such a packet: RFC 826 for IPv4 over Ethernet.
const DISCOVERY_BYTES: u32 = 28 + ETH_HEADER;

/// What comes next on a way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hop {
    Pipe(u32),
    /// The machine that gets data.
    Receiver,
    /// The machine that sends them.
    Sender,
}

/// What has come out of a pipe.
pub enum Arrival {
    /// A segment for the receiver of that flow.
    Data(usize, Segment),
    /// A segment for its sender.
    Back(usize, Segment),
    /// A packet of a probe at the other end of its way.
    Probe(ProbePacket),
    /// A packet that has gone on into that pipe.
    Moved(u32),
    /// A question of neighbour discovery at its end; `up`: it has travelled up the chain.
    Question {
        /// From the right host.
        up: bool,
    },
    /// Its answer.
    Answer {
        /// To the right host.
        up: bool,
    },
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

/// What a sending host is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostKind {
    /// It has no queue: its device takes each packet at once.
    pub bare: bool,
    /// What waits there counts against its sender's limit (TCP small queues).
    pub holds_sender: bool,
    /// Its queue paces by departure times.
    pub paces: bool,
}

/// A pipe at run time.
struct Leg {
    pipe: Pipe<Wire>,
    /// The pipe behind it, where it is the own queue of a host.
    leaves_to: Option<u32>,
    /// Whether ACKs come out of it at a sender's host.
    ends_at_sender: bool,
    direction: Direction,
    link: Option<LinkId>,
    /// What samples of queues call it.
    number: u32,
}

/// The begin of a way: its first pipe, and the place of what comes next in the list of hops.
#[derive(Clone, Copy, Debug)]
struct Begin {
    pipe: u32,
    next: u32,
}

/// The way of a flow's packets, there and back, laid once for all flows of its kind.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    /// The number of its hosts' place.
    place: u32,
    data: Begin,
    back: Begin,
    /// Whether its sender's host has no queue.
    bare: bool,
    /// Whether the first queue of what comes back is the receiver's own, whose packets have a departure time.
    receivers_queue: bool,
}

/// All pipes of a trial.
pub struct Network {
    legs: Vec<Leg>,
    /// For each way the pipes behind its first, in order, and then a machine.
    hops: Vec<Hop>,
    /// By place, for data down and up.
    ways: Vec<RoundTrip>,
    /// By flow, the place in `ways` of its own: many flows share few ways.
    trips: Vec<u32>,
    /// Those that send down and up, and whether their receivers have a queue of their own.
    hosts: [HostKind; 2],
    receivers_queues: [bool; 2],
    /// Whether packets are cut as they are sent, because no pipe is a host's.
    bare_places: bool,
    mss: u16,
    /// Whether super-packets survive the sender's device.
    offload: bool,
    /// What the devices of hosts without a queue have taken since the last batch.
    departed: Vec<Departure>,
}

impl Leg {
    fn new(plan: &PipePlan, seed: u64, has_clock: bool) -> Leg {
        let mut pipe: Pipe<Wire> = Pipe::new(&plan.spec, seed, &plan.streams);
        if plan.leaves_to.is_some() {
            pipe.track_departures();
        }
        if has_clock {
            pipe.wait_for_owner();
        }
        Leg { pipe, leaves_to: plan.leaves_to, ends_at_sender: false, direction: plan.direction, link: plan.link, number: plan.number }
    }
}

impl Network {
    /// Empty, for segments of at most `mss` bytes of payload; the flows and the probes of the plan have joined.
    pub fn new(checked: &CheckedPlan<'_>, mss: u32, seed: u64) -> Network {
        let (plan, all) = (checked.plan(), checked.pipes());
        let legs: Vec<Leg> = all.pipes.iter().map(|p| Leg::new(p, seed, plan.clock.is_some())).collect();
        let mut network = Network {
            hops: Vec::new(),
            ways: Vec::new(),
            trips: Vec::new(),
            hosts: hosts(all, &legs),
            receivers_queues: receivers_queues(plan),
            legs,
            bare_places: !plan.places.is_empty(),
            mss: mss as u16,
            offload: plan.offload,
            departed: Vec::new(),
        };
        for (place, route) in all.routes.iter().enumerate() {
            let (down, up) = (route.down.as_slice(), route.up.as_slice());
            let ways = [network.lay(place as u32, down, up, false), network.lay(place as u32, up, down, true)];
            network.ways.extend(ways);
            for last in used_last(route, plan.has_data_up()) {
                network.legs[last as usize].ends_at_sender = true;
            }
        }
        plan.flows.iter().for_each(|flow| network.join(flow.place, flow.up));
        plan.probes.iter().for_each(|probe| network.join(probe.place, probe.up));
        network
    }

    /// Writes down the hops of a way.
    fn lay(&mut self, place: u32, there: &[u32], back: &[u32], up: bool) -> RoundTrip {
        let mut begin = |pipes: &[u32], machine| {
            let begin = Begin { pipe: pipes[0], next: self.hops.len() as u32 };
            self.hops.extend(pipes[1..].iter().map(|&pipe| Hop::Pipe(pipe)).chain([machine]));
            begin
        };
        RoundTrip {
            place,
            data: begin(there, Hop::Receiver),
            back: begin(back, Hop::Sender),
            bare: self.hosts[usize::from(up)].bare,
            receivers_queue: self.receivers_queues[usize::from(up)],
        }
    }

    /// The next number of a flow is that of one between the hosts of a place, whose data travel up the chain or down.
    pub fn join(&mut self, place: usize, up: bool) {
        self.trips.push(way_number(place, up));
    }

    /// The way of a flow.
    #[inline]
    fn way(&self, flow: usize) -> RoundTrip {
        self.ways[self.trips[flow] as usize]
    }

    /// The host that sends what travels up the chain, or down.
    pub fn host(&self, up: bool) -> HostKind {
        self.hosts[usize::from(up)]
    }

    /// Number of pipes.
    pub fn pipes(&self) -> usize {
        self.legs.len()
    }

    /// The pipe behind this one, where this one is the own queue of a host.
    #[inline]
    pub fn leaves_to(&self, pipe: u32) -> Option<u32> {
        self.legs[pipe as usize].leaves_to
    }

    /// Whether ACKs come out of a pipe at the host of their sender.
    #[inline]
    pub fn ends_at_sender(&self, pipe: u32) -> bool {
        self.legs[pipe as usize].ends_at_sender
    }

    /// Whether what waits in a host's queue counts against its sender's limit (TCP small queues).
    pub fn holds_sender(&self, pipe: u32) -> bool {
        let pipe = &self.legs[pipe as usize].pipe;
        pipe.stages() == 0 || pipe.holds_sender()
    }

    /// When something happens in a pipe, the past if it has happened; None if nothing will without another packet.
    #[inline]
    pub fn next_event(&self, pipe: u32, now: Time) -> Option<Time> {
        let pipe = &self.legs[pipe as usize].pipe;
        // What was dropped on entering must be told to its sender, even if nothing else happens there.
        if pipe.released() > 0 {
            return Some(now);
        }
        pipe.next_event()
    }

    /// Gives a segment to the host of a flow's sender; gives the pipe that it enters, and whether its queue has room.
    #[inline]
    pub fn send(&mut self, now: Time, flow: usize, t: &Transmit) -> (u32, bool) {
        let (way, segment) = (self.way(flow), t.segment);
        let size = segment.frame_len() + u32::from(t.segs - 1) * (segment.frame_len() - segment.len);
        if way.bare {
            self.departed.push(Departure { flow, burst: t.burst, bytes: size });
        }
        let p = Packet {
            id: number(Some(t.burst)),
            flow: flow as u32,
            hosts: way.place,
            size,
            segs: t.segs,
            ecn: segment.ecn,
            edt: Some(Edt::at(t.departure)),
            corrupt: false,
            body: Wire { load: Load::Segment(segment), mss: self.mss, next: way.data.next },
        };
        let pipe = way.data.pipe;
        let is_whole = !self.bare_places || t.segs <= 1 || self.offload;
        (pipe, self.legs[pipe as usize].pipe.enter(now, p, is_whole))
    }

    /// Gives a segment to the host of a flow's receiver; gives the pipe that it enters.
    #[inline]
    pub fn send_back(&mut self, now: Time, flow: usize, segment: Segment) -> u32 {
        let way = self.way(flow);
        let edt = way.receivers_queue.then(|| Edt::at(now));
        let p = self.single(flow as u32, way.place, segment.frame_len(), Load::Segment(segment));
        self.enter(now, way.back, Packet { ecn: segment.ecn, edt, ..p })
    }

    /// Gives a packet of a probe, whose number among flows this is, to its host, or the answer to the far one; gives the pipe that it enters.
    pub fn send_single(&mut self, now: Time, number: usize, size: u32, packet: ProbePacket) -> u32 {
        let way = self.way(number);
        let begin = if packet.is_answer { way.back } else { way.data };
        self.enter(now, begin, self.single(number as u32, way.place, size, Load::Probe(packet)))
    }

    /// A packet that no sender is told of when it leaves its host.
    #[inline]
    fn single(&self, flow: u32, hosts: u32, size: u32, load: Load) -> Packet<Wire> {
        let body = Wire { load, mss: self.mss, next: 0 };
        Packet { id: number(None), flow, hosts, size, segs: 1, ecn: Ecn::NotEct, edt: None, corrupt: false, body }
    }

    /// Puts a packet into the pipe at the beginning of a way.
    #[inline]
    fn enter(&mut self, now: Time, Begin { pipe, next }: Begin, mut p: Packet<Wire>) -> u32 {
        p.body.next = next;
        self.legs[pipe as usize].pipe.push(now, p);
        pipe
    }

    /// Sends a question of neighbour discovery, up or down the chain; gives the pipe that it enters.
    pub fn ask_neighbours(&mut self, now: Time, up: bool) -> u32 {
        self.discovery(now, self.ways[way_number(0, up) as usize].data, up)
    }

    /// Sends the answer to a question that has travelled up or down.
    pub fn answer_neighbours(&mut self, now: Time, up: bool) -> u32 {
        self.discovery(now, self.ways[way_number(0, up) as usize].back, up)
    }

    fn discovery(&mut self, now: Time, begin: Begin, up: bool) -> u32 {
        self.enter(now, begin, self.single(DISCOVERY_FLOWS[usize::from(up)], 0, DISCOVERY_BYTES, Load::Discovery { up }))
    }

    /// Moves what has left a host's own queue into the pipe behind it.
    #[inline]
    pub fn leave_host(&mut self, pipe: u32, to: u32, now: Time) {
        while let Some(mut p) = self.legs[pipe as usize].pipe.pop(now) {
            p.body.next += 1;
            self.legs[to as usize].pipe.enter(now, p, self.offload);
        }
    }

    /// What has left a host's own queue since the last call, or was dropped there, but ACKs and what else no sender waits for.
    #[inline]
    pub fn released(&mut self, pipe: u32) -> impl Iterator<Item = Departure> + '_ {
        let departure = |(flow, bytes, number)| Some(Departure { flow: flow as usize, burst: burst(number)?, bytes });
        self.legs[pipe as usize].pipe.drain_released().filter_map(departure)
    }

    /// What the devices of hosts without a queue have taken since the last call; nothing where there is a queue.
    #[inline]
    pub fn departed(&mut self) -> Vec<Departure> {
        std::mem::take(&mut self.departed)
    }

    /// The next thing that has come out of a pipe: moved into the next one on its way, or, at its end, intact and with the marks that data got.
    /// Marks on ACKs are not seen: TCP does not read them.
    pub fn arrived(&mut self, pipe: u32, now: Time) -> Option<Arrival> {
        loop {
            let p = self.pop(pipe, now)?;
            match self.hop(&p) {
                Hop::Pipe(next) => {
                    self.move_on(now, p, next);
                    return Some(Arrival::Moved(next));
                }
                _ if p.corrupt => {}
                end => return Some(arrival(&p, end)),
            }
        }
    }

    /// The next packet that has come out of a pipe.
    #[inline(always)] // a packet is large: it is not to be passed on and on
    pub(super) fn pop(&mut self, pipe: u32, now: Time) -> Option<Packet<Wire>> {
        self.legs[pipe as usize].pipe.pop(now)
    }

    /// Where a packet goes that has come out of a pipe.
    #[inline]
    pub(super) fn hop(&self, p: &Packet<Wire>) -> Hop {
        self.hops[p.body.next as usize]
    }

    /// Moves a packet into the next pipe on its way.
    #[inline]
    pub(super) fn move_on(&mut self, now: Time, mut p: Packet<Wire>, next: u32) {
        p.body.next += 1;
        self.legs[next as usize].pipe.push(now, p);
    }

    /// How much has left a host of which its sender was not told.
    #[cfg(test)]
    pub fn news(&self) -> usize {
        self.departed.len() + self.legs.iter().map(|leg| leg.pipe.released()).sum::<usize>()
    }

    /// Packets on their way.
    #[cfg(test)]
    pub fn held(&self) -> u64 {
        self.legs.iter().map(|leg| leg.pipe.held()).sum()
    }

    /// The account of every queue, pipe by pipe.
    pub fn accounts(&self) -> impl Iterator<Item = QueueAccount> + '_ {
        self.legs.iter().flat_map(|leg| {
            let account = move |stats| QueueAccount { direction: leg.direction, link: leg.link, pipe: leg.link.map(|_| leg.number), stats };
            leg.pipe.stats().into_iter().map(account)
        })
    }

    /// Packets that have come out of each pipe and wait to be taken.
    pub fn untaken(&self) -> impl Iterator<Item = u64> + '_ {
        self.legs.iter().map(|leg| leg.pipe.untaken())
    }

    /// For each pipe, by its number in samples, the accounts of its queues.
    pub fn stats(&self) -> impl Iterator<Item = (u32, Vec<StageStats>)> + '_ {
        self.legs.iter().map(|leg| (leg.number, leg.pipe.stats()))
    }
}

/// What a packet is at the end of its way.
pub(super) fn arrival(p: &Packet<Wire>, end: Hop) -> Arrival {
    match (&p.body.load, end) {
        (Load::Segment(segment), Hop::Receiver) => Arrival::Data(p.flow as usize, Segment { ecn: p.ecn, ..*segment }),
        (Load::Segment(segment), _) => Arrival::Back(p.flow as usize, *segment),
        (&Load::Probe(packet), _) => Arrival::Probe(packet),
        (&Load::Discovery { up }, Hop::Receiver) => Arrival::Question { up },
        (&Load::Discovery { up }, _) => Arrival::Answer { up },
    }
}

/// The place among the ways of the one for data that travel up the chain, or down, between the hosts of a place.
fn way_number(place: usize, up: bool) -> u32 {
    2 * place as u32 + u32::from(up)
}

/// The number of a packet: that of its super-packet, which has 32 bits, or one that has more if no sender is told of it.
#[inline]
fn number(burst: Option<u32>) -> u64 {
    burst.map_or(u64::MAX, u64::from)
}

/// The super-packet whose number a packet has.
#[inline]
fn burst(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

/// The hosts that send down and up: where they have a queue of their own, the first pipe on their way is theirs.
fn hosts(all: &Pipes, legs: &[Leg]) -> [HostKind; 2] {
    [&all.routes[0].down, &all.routes[0].up].map(|way| {
        let (plan, leg) = (&all.pipes[way[0] as usize], &legs[way[0] as usize]);
        match plan.spec.stages.first().filter(|_| plan.leaves_to.is_some()) {
            Some(stage) => HostKind { bare: false, holds_sender: leg.pipe.holds_sender(), paces: stage.qdisc.paces() },
            None => HostKind { bare: true, holds_sender: true, paces: false },
        }
    })
}

/// Whether the hosts that receive what goes down and up have a queue of their own.
fn receivers_queues(plan: &Plan) -> [bool; 2] {
    [&plan.reverse, &plan.forward].map(|path| plan.places.is_empty() && path.stages.first().is_some_and(|s| s.at != Host::Router))
}

/// The pipes out of which a place's ACKs come.
fn used_last(route: &Route, has_data_up: bool) -> impl Iterator<Item = u32> + '_ {
    let of_data_up = route.down.last().filter(|_| has_data_up);
    route.up.last().into_iter().chain(of_data_up).copied()
}

/// What a packet carries, and what comes next on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub load: Load,
    /// A place in the network's list of hops.
    pub next: u32,
    /// Payload of each MTU-sized packet inside a segment.
    pub mss: u16,
}

/// What is carried.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// A segment, or several in one.
    Segment(Segment),
    /// What a probe sends.
    Probe(ProbePacket),
    /// Neighbour discovery: a question that travels up the chain or down, or its answer, at the end of the way back.
    Discovery { up: bool },
}

impl Body for Wire {
    #[inline]
    fn segment(&self) -> Option<&Segment> {
        match &self.load {
            Load::Segment(segment) => Some(segment),
            Load::Probe(_) | Load::Discovery { .. } => None,
        }
    }
    #[inline]
    fn payload(&self) -> u32 {
        self.segment().map_or(0, |s| s.len)
    }
    #[inline]
    fn split(&self, index: u32, _of: u32) -> Wire {
        let load = self.segment().map_or(self.load, |s| Load::Segment(s.part(index, u32::from(self.mss))));
        Wire { load, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::{Ecn, Flags, Packet};
    use tcpscape_path::segments;

    #[test]
    fn a_probes_packet_is_no_segment_and_comes_out_as_it_went_in() {
        let packet = ProbePacket { probe: 3, number: 7, is_answer: true };
        let wire = Wire { load: Load::Probe(packet), next: 0, mss: 1_448 };
        assert!(wire.segment().is_none() && wire.payload() == 0);
        assert!(matches!(wire.split(0, 1).load, Load::Probe(p) if p == packet));
    }

    /// 4000 bytes in three packets are two full segments and the rest, each with 66 bytes of headers: a path cuts by the MSS.
    #[test]
    fn a_path_cuts_a_super_packet_into_full_segments() {
        let segment = Segment { seq: 1, len: 4_000, flags: Flags::ACK.with(Flags::PSH), ..Segment::default() };
        let body = Wire { load: Load::Segment(segment), mss: 1_448, next: 0 };
        let (id, flow, hosts, size) = (0, 0, 0, 4_000 + 3 * 66);
        let p = Packet { id, flow, hosts, size, segs: 3, ecn: Ecn::NotEct, edt: None, corrupt: false, body };
        let part = |p: Packet<Wire>| p.body.segment().map(|s| (s.seq, p.size, s.flags.has(Flags::PSH)));
        let parts: Vec<_> = segments(&p).filter_map(part).collect();
        assert_eq!(parts, [(1, 1_514, false), (1_449, 1_514, false), (2_897, 1_170, true)]);
    }

    #[test]
    fn a_packet_is_no_larger_for_knowing_its_way() {
        assert_eq!(std::mem::size_of::<Wire>(), 72);
    }
}
