//! What is seen of a trial: the hash over deliveries, samples of flows and queues, recorded packets and events, the results. Seeing changes nothing.

use super::network::Network;
use super::node::Node;
use super::{Engine, ProbePacket};
use crate::columns::{flow_sample, PacketEvent, SenderEvent};
use crate::flow::Flow;
use crate::output::TrialOutput;
use crate::record::{self, Recorder};
use tcpscape_base::{CaState, Duration, Segment, Time};
use tcpscape_plan::player::PlayerSummary;
use tcpscape_plan::results::{ProbeSummary, TransfersSummary};
use tcpscape_plan::samples::{FlowSamples, ProbeSamples, QueueSamples};
use tcpscape_plan::Plan;
use tcpscape_tcp::{EventCounts, Sender};

/// The trace hash before the first delivery: FNV-1a's offset basis.
const HASH_SEED: u64 = 0xcbf2_9ce4_8422_2325;
/// FNV-1a's prime.
const HASH_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Most events of senders that are recorded: 0.5 GB with the caller's copy.
pub(crate) const EVENTS_MAX: usize = 4_000_000;

/// Fills a trial's output.
pub(super) struct Observer {
    out: TrialOutput,
    /// Whether packets of the plan's flows are recorded at the sender, and how many these are.
    packets: bool,
    flows: usize,
    /// What was known of each sender when it was looked at last; none where events are not recorded.
    known: Vec<(CaState, EventCounts)>,
    recorder: Recorder,
    /// Intervals of samples, 0 for none.
    flow_interval: Duration,
    queue_interval: Duration,
}

impl Observer {
    pub fn new(plan: &Plan, seed: u64) -> Observer {
        let (samples, queue_samples) = (FlowSamples::of_model(), QueueSamples { sojourn_ns: Some(Vec::new()), ..QueueSamples::default() });
        Observer {
            out: TrialOutput { seed, duration_ns: plan.duration_ns, hash: HASH_SEED, samples, queue_samples, ..TrialOutput::default() },
            packets: plan.trace_packets,
            flows: plan.flows.len(),
            known: if plan.trace_events { vec![Default::default(); plan.flows.len()] } else { Vec::new() },
            recorder: Recorder::new(plan.control_interval_ns, plan.flows.len()),
            flow_interval: Duration(plan.sample_interval_ns),
            queue_interval: Duration(plan.queue_sample_interval_ns),
        }
    }

    /// The samplers that a plan asks for.
    pub fn samplers(&self) -> impl Iterator<Item = Node> {
        let wanted = [(Node::FlowSamples, self.flow_interval), (Node::QueueSamples, self.queue_interval)];
        wanted.into_iter().filter(|(_, interval)| *interval > Duration::ZERO).map(|(node, _)| node)
    }

    #[inline]
    pub fn event(&mut self) {
        self.out.events += 1;
    }

    /// Events and deliveries so far.
    #[inline]
    pub fn work(&self) -> u64 {
        self.out.events + self.out.arrivals
    }

    /// A segment of flow `i` was delivered, in either direction.
    #[inline]
    pub fn delivered(&mut self, now: Time, i: usize, s: &Segment) {
        self.out.arrivals += 1;
        for v in [now.0, s.seq ^ (s.ack << 1), (i as u64) << 32 | u64::from(s.len) << 8 | u64::from(s.flags.0)] {
            self.out.hash = (self.out.hash ^ v).wrapping_mul(HASH_PRIME).rotate_left(23);
        }
    }

    /// A packet of a probe, whose number among flows this is, was delivered.
    pub fn delivered_probe(&mut self, now: Time, i: usize, packet: ProbePacket) {
        let ack = u64::from(packet.is_answer);
        self.delivered(now, i, &Segment { seq: packet.number, ack, ..Segment::default() });
    }

    /// The results of what is no flow of the plan.
    pub fn traffic(&mut self, probes: Vec<ProbeSummary>, samples: ProbeSamples, transfers: Vec<TransfersSummary>) {
        (self.out.probes, self.out.probe_samples, self.out.transfers) = (probes, samples, transfers);
    }

    /// Flow `i`'s sender gave a segment to its host, or got one.
    #[inline]
    pub fn at_sender(&mut self, now: Time, i: usize, s: &Segment, received: bool) {
        if self.packets && i < self.flows {
            self.out.packets.push(PacketEvent::of(now, i as u32, s, received));
        }
    }

    /// Flow `i`'s sender has done something.
    #[inline]
    pub fn sender_ran(&mut self, now: Time, i: usize, sender: &Sender) {
        if let Some(known) = self.known.get_mut(i) {
            let ((state, cwnd), counts) = (sender.state_and_window(), sender.event_counts());
            let (state_before, before) = std::mem::replace(known, (state, counts));
            if (state, counts) != (state_before, before) && self.out.sender_events.t_ns.len() < EVENTS_MAX {
                self.out.sender_events.push(SenderEvent::between(now, i as u32, state, cwnd, before, counts));
            }
        }
    }

    /// Flow `i`'s sender has processed an event and is about to send.
    #[inline]
    pub fn sender_sends(&mut self, now: Time, i: usize, sender: &Sender) {
        self.recorder.saw(now, i, |o| sender.observe(o), &mut self.out.control);
    }

    /// Packets delivered, both ways.
    #[inline]
    pub fn arrivals(&self) -> u64 {
        self.out.arrivals
    }

    /// The trial has ended early, for this reason.
    pub fn stalled(&mut self, problem: String) {
        self.out.stalled = Some(problem);
    }

    /// Something weakens the result.
    pub fn caveat(&mut self, text: String) {
        self.out.caveats.push(text);
    }

    /// Samples every open flow; returns when it wants to do so again.
    fn sample_flows(&mut self, now: Time, flows: &[Flow<'_>]) -> Time {
        for (i, f) in flows.iter().enumerate().filter(|(_, f)| f.carries_data()) {
            self.out.samples.push(flow_sample(now, i as u32, &f.sender.info()));
        }
        now + self.flow_interval
    }

    /// Samples every queue; returns when it wants to do so again.
    fn sample_queues(&mut self, now: Time, network: &Network) -> Time {
        for (pipe, queues) in network.stats() {
            self.out.queue_samples.push_pipe(now.0, pipe, &queues);
        }
        now + self.queue_interval
    }

    /// The trial is over at `now`; `end` is when its connections end at the latest.
    pub fn finish(mut self, now: Time, end: Time, flows: &mut [Flow<'_>], network: &Network) -> TrialOutput {
        self.out.ended_s = now.secs_f64();
        for (i, flow) in flows.iter().enumerate() {
            self.sender_ran(now, i, &flow.sender);
        }
        if self.out.sender_events.t_ns.len() == EVENTS_MAX {
            self.caveat(format!("events of senders: only the first {EVENTS_MAX} were recorded; take a shorter trial"));
        }
        if record::is_full(&self.out.control) {
            self.caveat("the record of the congestion controls: only its first million rows were kept; take a shorter trial".to_owned());
        }
        self.out.flows = flows.iter_mut().map(|f| f.summary(end)).collect();
        self.out.wscale = flows.iter().map(|f| f.receiver.wscale()).collect();
        self.out.queues = network.accounts().collect();
        self.out.untaken = network.untaken().collect();
        let silent = self.out.flows.iter().filter(|f| f.bytes_received == 0).count();
        if silent > 0 {
            self.caveat(format!("{silent} of {} flows carried no data", flows.len()));
        }
        let players = self.out.flows.iter().filter_map(|f| f.player);
        if let Some(text) = PlayerSummary::caveat(players) {
            self.caveat(text);
        }
        self.out
    }
}

impl Engine<'_> {
    pub(super) fn sample_flows(&mut self) {
        let next = self.observer.sample_flows(self.now, &self.flows[..self.plan_flows]);
        self.sample_again(Node::FlowSamples, next);
    }

    pub(super) fn sample_queues(&mut self) {
        let next = self.observer.sample_queues(self.now, &self.network);
        self.sample_again(Node::QueueSamples, next);
    }

    fn sample_again(&mut self, sampler: Node, next: Time) {
        if next < self.end {
            self.events.want(sampler, next);
        }
    }
}
