//! Probes: hosts that send packets of one size at even intervals, and the accounts of what arrives.
//!
//! What it is: UDP datagrams (RFC 768), or ICMP echo requests and their replies (RFC 792), on the same network as the flows. A packet leaves its host at
//! the exact time, its delay ends when it reaches the other host's device, and an echo is answered there at once. The packets of a probe are a flow of
//! their own for queues that tell flows apart. Does not model: fragments, errors of ICMP, the hosts' CPU, packets that a host refuses for want of buffer.

use super::node::Node;
use super::Engine;
use tcpscape_base::{Duration, Time, ETH_HEADER};
use tcpscape_plan::probe::ProbeMeter;
use tcpscape_plan::results::ProbeSummary;
use tcpscape_plan::samples::{ProbeSample, ProbeSamples};
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

/// One probe.
struct Probe<'a> {
    plan: &'a ProbePlan,
    /// When packets are sent, the end excluded.
    stop: Time,
    meter: ProbeMeter,
    /// Packets sent, with those that wait for their neighbour's address.
    sent: u64,
    /// Delay of each packet, ns; nothing where no samples are wanted.
    delays: Option<Vec<u64>>,
}

impl Probe<'_> {
    /// When packet `number` is sent.
    fn time_of(&self, number: u64) -> Time {
        Time(self.plan.start_ns.saturating_add(number.saturating_mul(self.plan.interval_ns)))
    }

    /// When the next packet is sent, if one is.
    fn next(&self) -> Option<Time> {
        Some(self.time_of(self.sent)).filter(|t| *t < self.stop)
    }

    fn is_echo(&self) -> bool {
        self.plan.kind != ProbeKind::Udp
    }

    fn count_sent(&mut self) -> u64 {
        self.meter.sent();
        if let Some(delays) = &mut self.delays {
            delays.push(LOST);
        }
        self.sent += 1;
        self.sent - 1
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
        let probe = |probe: &'a ProbePlan| Probe {
            plan: probe,
            stop: Time(if probe.stop_ns == 0 { plan.duration_ns } else { probe.stop_ns.min(plan.duration_ns) }),
            meter: ProbeMeter::new(probe.start_ns, probe.interval_ns),
            sent: 0,
            delays: (plan.sample_interval_ns > 0).then(Vec::new),
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
            while probe.next().is_some_and(|t| t <= now) {
                due.push(ProbePacket { probe: i, number: probe.count_sent(), is_answer: false });
            }
        }
        due
    }

    /// The results of a trial that ends at `end`.
    pub fn summaries(&self, end: Time) -> Vec<ProbeSummary> {
        self.all.iter().map(|probe| probe.meter.summary(end.0)).collect()
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
        let plan = self.probes.all[packet.probe].plan;
        let size = ETH_HEADER + IP_HEADER + PROBE_HEADER + plan.size;
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
        if self.now < self.end {
            let delay = self.now.since(probe.time_of(packet.number));
            probe.count_received(packet.number, delay);
        }
    }
}
