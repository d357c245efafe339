//! Probes: hosts that send packets of one size at even intervals, and the accounts of what arrives.
//!
//! What it is: UDP datagrams (RFC 768), or ICMP echo requests and their replies (RFC 792), on the same network as the flows. A packet leaves its host at
//! the exact time, its delay ends when it reaches the other host's device, and an echo is answered there at once. The packets of a probe are a flow of
//! their own for queues that tell flows apart. A media flow (SCReAM) says itself when its packets leave; its receiver's reports travel as answers do.
//! Does not model: fragments, errors of ICMP, the hosts' CPU, packets that a host refuses for want of buffer.

use super::node::Node;
use super::Engine;
use tcpscape_base::{Duration, Time, ETH_HEADER};
use tcpscape_plan::probe::ProbeMeter;
use tcpscape_plan::results::ProbeSummary;
use tcpscape_plan::samples::{ProbeSample, ProbeSamples};
use tcpscape_plan::scream::{self, Report};
use tcpscape_plan::{Plan, ProbeKind, ProbePlan};

/// Header of IPv4 without options (RFC 791), bytes; UDP's and that of an ICMP echo have the same length.
const IP_HEADER: u32 = 20;
const PROBE_HEADER: u32 = 8;

/// A delay that never came to be: the packet was lost.
const LOST: u64 = u64::MAX;

/// A packet of a probe, on its way there or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePacket {
    /// Its probe.
    pub probe: usize,
    /// Its place among those that were sent, from 0.
    pub number: u64,
    /// Whether it is the answer to one that had come.
    pub is_answer: bool,
}

/// The two ends of a media flow.
struct Media {
    sender: scream::Sender,
    receiver: scream::Receiver,
    /// What was reported, by the number of the packet that carries it.
    reports: Vec<Report>,
    bytes: u64,
}

/// One probe.
struct Probe<'a> {
    plan: &'a ProbePlan,
    /// When packets are sent, the end excluded.
    stop: Time,
    meter: ProbeMeter,
    /// Packets sent, with those that wait for their neighbour's address.
    sent: u64,
    media: Option<Media>,
    /// Delay of each packet, ns; nothing where no samples are wanted.
    delays: Option<Vec<u64>>,
}

impl Probe<'_> {
    /// When packet `number` is sent; of a media flow, when its frame was encoded.
    fn time_of(&self, number: u64) -> Time {
        if let Some(media) = &self.media {
            return media.sender.encoded(number);
        }
        Time(self.plan.start_ns.saturating_add(number.saturating_mul(self.plan.interval_ns)))
    }

    /// When the next packet is sent, if one is.
    fn next(&self) -> Option<Time> {
        if let Some(media) = &self.media {
            return media.sender.next();
        }
        Some(self.time_of(self.sent)).filter(|t| *t < self.stop)
    }

    fn is_echo(&self) -> bool {
        matches!(self.plan.kind, ProbeKind::UdpEcho | ProbeKind::IcmpEcho)
    }

    /// Payload of a packet, bytes.
    fn size_of(&self, packet: ProbePacket) -> u32 {
        match &self.media {
            Some(_) if packet.is_answer => scream::REPORT_SIZE,
            Some(media) => media.sender.size_of(packet.number),
            None => self.plan.size,
        }
    }

    /// The number of the next packet that leaves by `now`.
    fn poll(&mut self, now: Time) -> Option<u64> {
        if let Some(media) = &mut self.media {
            let packet = media.sender.poll(now)?;
            self.meter.sent_at(now.0);
            return Some(self.number(packet.number));
        }
        self.next().filter(|t| *t <= now)?;
        self.meter.sent();
        Some(self.number(self.sent))
    }

    fn number(&mut self, number: u64) -> u64 {
        if let Some(delays) = &mut self.delays {
            delays.push(LOST);
        }
        self.sent = number + 1;
        number
    }

    /// A packet of a media flow, or a report, has come; gives the number of a report that is due.
    fn on_media(&mut self, now: Time, packet: ProbePacket) -> Option<u64> {
        let media = self.media.as_mut()?;
        if packet.is_answer {
            media.sender.on_report(now, &media.reports[packet.number as usize]);
            return None;
        }
        let size = media.sender.size_of(packet.number);
        media.bytes += u64::from(size);
        media.reports.push(media.receiver.on_packet(now, packet.number, size)?);
        Some(media.reports.len() as u64 - 1)
    }

    fn count_received(&mut self, number: u64, delay: Duration) {
        if !self.meter.received(number, delay) {
            return;
        }
        if let Some(delays) = &mut self.delays {
            delays[number as usize] = delay.0;
        }
    }
}

/// The probes of a trial.
pub(super) struct Probes<'a> {
    all: Vec<Probe<'a>>,
    /// Packets that wait for the neighbour's address.
    waiting: Vec<ProbePacket>,
}

impl<'a> Probes<'a> {
    pub fn new(plan: &'a Plan) -> Probes<'a> {
        let probe = |probe: &'a ProbePlan| {
            let stop = Time(if probe.stop_ns == 0 { plan.duration_ns } else { probe.stop_ns.min(plan.duration_ns) });
            let media = probe.media.map(|media| Media {
                sender: scream::Sender::new(media, probe.size, Duration(probe.interval_ns), Time(probe.start_ns), stop),
                receiver: scream::Receiver::default(),
                reports: Vec::new(),
                bytes: 0,
            });
            let meter = ProbeMeter::new(probe.start_ns, probe.interval_ns);
            Probe { plan: probe, stop, meter, sent: 0, media, delays: (plan.sample_interval_ns > 0).then(Vec::new) }
        };
        Probes { all: plan.probes.iter().map(probe).collect(), waiting: Vec::new() }
    }

    /// When the next packet of any probe is sent.
    pub fn next(&self) -> Option<Time> {
        self.all.iter().filter_map(Probe::next).min()
    }

    /// The packets that are sent by `now`, in the order of the probes.
    fn due(&mut self, now: Time) -> Vec<ProbePacket> {
        let mut due = Vec::new();
        for (i, probe) in self.all.iter_mut().enumerate() {
            while let Some(number) = probe.poll(now) {
                due.push(ProbePacket { probe: i, number, is_answer: false });
            }
        }
        due
    }

    /// The results of a trial that ends at `end`.
    pub fn summaries(&self, end: Time) -> Vec<ProbeSummary> {
        let summary =
            |probe: &Probe| ProbeSummary { media_bytes: probe.media.as_ref().map(|media| media.bytes), ..probe.meter.summary(end.0) };
        self.all.iter().map(summary).collect()
    }

    /// The delay of each packet, probe by probe; empty where no samples are wanted.
    pub fn samples(&self) -> ProbeSamples {
        let mut samples = ProbeSamples::default();
        for (i, probe) in self.all.iter().enumerate() {
            for (number, &delay_ns) in probe.delays.iter().flatten().enumerate() {
                samples.push(ProbeSample { t_ns: probe.time_of(number as u64).0, probe: i as u32, delay_ns });
            }
        }
        samples
    }
}

impl Engine<'_> {
    /// It is time to send packets of probes; at the end of the trial nothing of them is waited for any more.
    #[cold]
    pub(super) fn run_probes(&mut self) {
        if self.now >= self.end {
            self.alive -= 1;
            return;
        }
        for packet in self.probes.due(self.now) {
            if self.knows_neighbours(self.probes.all[packet.probe].plan.up) {
                self.send_probe(packet);
            } else {
                self.probes.waiting.push(packet);
            }
        }
        self.events.want(Node::Probes, self.probes.next().unwrap_or(self.end));
    }

    /// The host that sends down, or up, knows its neighbour's address: what waited for it leaves.
    #[cold]
    pub(super) fn send_waiting_probes(&mut self, up: bool) {
        let (ready, waiting) = std::mem::take(&mut self.probes.waiting).into_iter().partition(|p| self.probes.all[p.probe].plan.up == up);
        self.probes.waiting = waiting;
        let ready: Vec<ProbePacket> = ready;
        ready.into_iter().for_each(|packet| self.send_probe(packet));
    }

    /// Gives a packet to the host that sends it: the probe's own, or for an answer the far one.
    fn send_probe(&mut self, packet: ProbePacket) {
        let size = ETH_HEADER + IP_HEADER + PROBE_HEADER + self.probes.all[packet.probe].size_of(packet);
        let pipe = self.network.send_single(self.now, self.plan_flows + packet.probe, size, packet);
        self.wake(pipe);
    }

    /// A packet of a probe has come to the other end of its way.
    #[cold]
    pub(super) fn on_probe(&mut self, packet: ProbePacket) {
        self.observer.delivered_probe(self.now, self.plan_flows + packet.probe, packet);
        let probe = &mut self.probes.all[packet.probe];
        if probe.is_echo() && !packet.is_answer {
            return self.send_probe(ProbePacket { is_answer: true, ..packet });
        }
        let report = probe.on_media(self.now, packet);
        if self.now < self.end && !(packet.is_answer && probe.media.is_some()) {
            let delay = self.now.since(probe.time_of(packet.number));
            probe.count_received(packet.number, delay);
        }
        if let Some(number) = report {
            self.send_probe(ProbePacket { number, is_answer: true, ..packet });
        }
        if self.now < self.end && self.probes.all[packet.probe].media.is_some() {
            self.events.want(Node::Probes, self.probes.next().unwrap_or(self.end).max(self.now));
        }
    }
}
