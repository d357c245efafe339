//! The loop: takes the next event, hands packets from machine to machine, and lets applications run when the instant's packets
//! have all been processed, as a woken process does.

mod connect;
mod observe;

use crate::controls::Controls;
use crate::events::{Events, Phase};
use crate::flow::{Costs, Flow};
use crate::output::{FlowSamples, PacketEvents, QueueSamples, TrialOutput};
use crate::plan::Plan;
use tcpscape_base::{Duration, Flags, Packet, Segment, Stream, Time, ETH_HEADER};
use tcpscape_path::{segments, Body, Host, PathSpec, Pipe, ScheduledChange};
use tcpscape_tcp::{Jiffies, Kernel, Receiver, ReceiverConfig, Sender, SenderConfig, Transmit};

/// What packets carry here: a segment, and the payload of each MTU-sized packet inside.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wire {
    seg: Segment,
    mss: u16,
}

impl Body for Wire {
    fn segment(&self) -> Option<&Segment> {
        Some(&self.seg)
    }
    fn payload(&self) -> u32 {
        self.seg.len
    }
    fn split(&self, index: u32, _of: u32) -> Wire {
        let start = (index * u32::from(self.mss)).min(self.seg.len);
        let mut w = *self;
        w.seg.seq += u64::from(start);
        w.seg.len = u32::from(self.mss).min(self.seg.len - start);
        if start + w.seg.len < self.seg.len {
            w.seg.flags.0 &= !Flags::PSH.0; // PSH stays with the last
        }
        if index > 0 {
            w.seg.flags.0 &= !Flags::CWR.0; // CWR with the first
        }
        w
    }
}

/// Flow number of ARP packets.
const ARP: u32 = u32::MAX;
/// `retrans_timer` of neighbour discovery: an ARP request is repeated after 1 s.
const ARP_RETRY: Duration = Duration::secs(1);
/// After so many events without time passing, the trial ends: such a path has neither delay nor rate.
const STUCK: u64 = 20_000_000;
/// How long after the last flow's end packets may still arrive.
const LINGER: Duration = Duration::secs(10);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Neighbours {
    Resolved,
    Unknown,
    Asked(Time),
}

// Components of the event queue: three pipes, ARP, samples, the CPU, then five per flow.
const HOST: u32 = 0;
const NET: u32 = 1;
const REVERSE: u32 = 2;
const ARP_TIMER: u32 = 3;
const SAMPLE: u32 = 4;
const QUEUE_SAMPLE: u32 = 5;
const CPU: u32 = 6;
const FIRST_FLOW: u32 = 7;
const PER_FLOW: u32 = 5;
const START_STOP: u32 = 0;
const SENDER: u32 = 1;
const RECEIVER: u32 = 2;
const WRITER: u32 = 3;
const READER: u32 = 4;

struct Engine<'a> {
    plan: &'a Plan,
    now: Time,
    end: Time,
    half: Time,
    costs: Costs,
    events: Events,
    host: Pipe<Wire>,
    net: Pipe<Wire>,
    reverse: Pipe<Wire>,
    /// Whether the first queue on the way back is the receiver's own.
    own_reverse: bool,
    /// Whether the host's first queue holds the sender's memory (TCP small queues).
    tsq: bool,
    mss: u32,
    flows: Vec<Flow>,
    neighbours: Neighbours,
    freed: Vec<(u32, u32, u64)>,
    /// Whether the sender's host has no queue; then what has left it since the last batch of ACKs.
    bare_host: bool,
    departed: Vec<(u32, u32, u32)>,
    alive: usize,
    /// The application that has the sending host's CPU, and those that wait for it.
    running: Option<usize>,
    ready: Vec<usize>,
    out: TrialOutput,
}

/// Runs one trial.
pub fn run(plan: &Plan, seed: u64) -> TrialOutput {
    run_with(plan, seed, &Controls::new())
}

/// Runs one trial whose congestion controls may be from outside; the plan was read with the same `controls`.
pub fn run_with(plan: &Plan, seed: u64, controls: &Controls<'_>) -> TrialOutput {
    let kernel = plan.kernel().expect("the plan was checked when it was read");
    Engine::new(plan, kernel, seed, controls).run()
}

/// Runs a trial for each seed, on up to `threads` threads; results come in the order of the seeds.
pub fn run_many(plan: &Plan, seeds: &[u64], threads: usize) -> Vec<TrialOutput> {
    run_many_with(plan, seeds, threads, &Controls::new())
}

/// Like [`run_many`], with congestion controls from outside.
pub fn run_many_with(plan: &Plan, seeds: &[u64], threads: usize, controls: &Controls<'_>) -> Vec<TrialOutput> {
    let threads = threads.clamp(1, seeds.len().max(1));
    if threads == 1 {
        return seeds.iter().map(|&s| run_with(plan, s, controls)).collect();
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut results: Vec<(usize, TrialOutput)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut done = Vec::new();
                    loop {
                        let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(&seed) = seeds.get(i) else { return done };
                        done.push((i, run_with(plan, seed, controls)));
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|w| w.join().expect("a trial panicked")).collect()
    });
    results.sort_by_key(|r| r.0);
    results.into_iter().map(|r| r.1).collect()
}

/// The sender's own host, and the rest, each with its changes: between them super-packets are cut unless offloads are on.
fn split_spec(spec: &PathSpec) -> (PathSpec, PathSpec) {
    let n = spec.stages.iter().take_while(|s| s.at == Host::Sender).count();
    let mut host = PathSpec { stages: spec.stages[..n].to_vec(), ..PathSpec::default() };
    let mut net = PathSpec { stages: spec.stages[n..].to_vec(), ..PathSpec::default() };
    for change in &spec.schedule {
        let (to, stage) = if change.stage < n { (&mut host, change.stage) } else { (&mut net, change.stage - n) };
        to.schedule.push(ScheduledChange { stage, ..change.clone() });
    }
    (host, net)
}

impl<'a> Engine<'a> {
    fn new(plan: &'a Plan, kernel: Kernel, seed: u64, controls: &Controls<'_>) -> Engine<'a> {
        let (host, net) = split_spec(&plan.forward);
        let mut host: Pipe<Wire> = Pipe::new(&host, seed, "forward/host");
        host.track_departures();
        let bare_host = host.stages() == 0;
        let net = Pipe::new(&net, seed, "forward/network");
        let reverse = Pipe::new(&plan.reverse, seed, "reverse");
        let mut stream = Stream::new(seed, "clock");
        let tick = 1_000_000_000 / kernel.hz;
        let jiffies = Jiffies::new(kernel.hz, Duration(u64::from(stream.below(tick))));
        let fq = plan.forward.stages.first().is_some_and(|s| s.at == Host::Sender && s.qdisc.paces());
        let tsq = host.holds_sender() || bare_host;
        let mss = plan.mtu - 52;
        let flows: Vec<Flow> = plan
            .flows
            .iter()
            .enumerate()
            .map(|(i, f)| {
                let flow_seed = Stream::new(seed, &format!("flow/{i}")).next_u64();
                let congestion = controls.make(f, flow_seed).expect("the plan was checked when it was read");
                let feedback = f.listener_feedback(&*congestion);
                let sender = Sender::new(SenderConfig {
                    kernel,
                    jiffies,
                    mss,
                    sndbuf: f.sndbuf,
                    gso: plan.gso,
                    nodelay: f.nodelay,
                    ecn: plan.ecn,
                    tsq,
                    watch_host: true,
                    bare_host,
                    fq,
                    congestion,
                });
                let receiver = Receiver::new(&ReceiverConfig {
                    kernel,
                    jiffies,
                    mss,
                    advmss: mss + 12,
                    rcvbuf: f.rcvbuf,
                    sack: true,
                    gro: plan.offload,
                    feedback,
                });
                Flow::new(f, plan.duration_ns, sender, receiver, Stream::new(seed, &format!("flow/{i}/sleep")))
            })
            .collect();
        let mut events = Events::default();
        for phase in [Phase::Network, Phase::Network, Phase::Network, Phase::Network, Phase::Sample, Phase::Sample, Phase::Application] {
            events.add(phase);
        }
        for f in &flows {
            let c = events.add(Phase::Network);
            events.want(c, f.start);
            for phase in [Phase::Network, Phase::Network, Phase::Application, Phase::Application] {
                events.add(phase);
            }
        }
        if plan.sample_interval_ns > 0 {
            events.want(SAMPLE, Time::ZERO);
        }
        if plan.queue_sample_interval_ns > 0 {
            events.want(QUEUE_SAMPLE, Time::ZERO);
        }
        let alive = flows.len();
        let end = Time(plan.duration_ns);
        Engine {
            plan,
            now: Time::ZERO,
            end,
            half: Time(plan.duration_ns / 2),
            costs: Costs {
                slack: Duration(plan.timer_slack_ns),
                write: Duration(plan.write_cost_ns),
                read: Duration(plan.read_cost_ns),
                noise: Duration(plan.wake_noise_ns),
            },
            events,
            host,
            net,
            reverse,
            own_reverse: plan.reverse.stages.first().is_some_and(|s| s.at != Host::Router),
            tsq,
            mss,
            flows,
            neighbours: if plan.arp { Neighbours::Unknown } else { Neighbours::Resolved },
            freed: Vec::new(),
            bare_host,
            departed: Vec::new(),
            alive,
            running: None,
            ready: Vec::new(),
            out: TrialOutput {
                seed,
                samples: FlowSamples::default(),
                queue_samples: QueueSamples::default(),
                packets: PacketEvents::default(),
                hash: 0xcbf2_9ce4_8422_2325,
                ..TrialOutput::default()
            },
        }
    }

    fn run(mut self) -> TrialOutput {
        let limit = self.end + LINGER;
        let mut standing = 0u64;
        while let Some((t, c)) = self.events.pop(limit) {
            standing = if t == self.now { standing + 1 } else { 0 };
            self.now = t;
            self.out.events += 1;
            self.dispatch(c);
            if self.alive == 0 {
                break;
            }
            if standing > STUCK {
                self.out.caveats.push(format!("time stands still at {t}: the path has neither delay nor rate; give it one"));
                break;
            }
        }
        self.finish()
    }

    fn dispatch(&mut self, c: u32) {
        match c {
            HOST => self.pump_host(),
            NET => self.pump_net(),
            REVERSE => self.pump_reverse(),
            ARP_TIMER => self.on_arp_timer(),
            SAMPLE => self.sample_flows(),
            QUEUE_SAMPLE => self.sample_queues(),
            CPU => self.schedule(),
            _ => {
                let (i, what) = (((c - FIRST_FLOW) / PER_FLOW) as usize, (c - FIRST_FLOW) % PER_FLOW);
                match what {
                    START_STOP => self.start_or_stop(i),
                    SENDER => {
                        if self.flows[i].sender.next_event().is_some_and(|t| t <= self.now) {
                            self.flows[i].sender.on_timer(self.now);
                        }
                        self.flush_sender(i);
                        self.depart();
                    }
                    RECEIVER => {
                        if self.flows[i].receiver.next_event().is_some_and(|t| t <= self.now) {
                            self.flows[i].receiver.on_timer(self.now);
                        }
                        self.flush_receiver(i);
                    }
                    WRITER => self.write(i),
                    _ => {
                        self.flows[i].read(self.now, self.costs, self.half);
                        self.flush_receiver(i);
                    }
                }
            }
        }
    }

    fn component(i: usize, what: u32) -> u32 {
        FIRST_FLOW + i as u32 * PER_FLOW + what
    }

    // ---- packets ----

    /// Gives a segment to the sender's host; false if its queue has no room.
    fn transmit(&mut self, i: usize, Transmit { segment: seg, segs, burst, departure }: Transmit) -> bool {
        let mss = self.mss as u16;
        let size = seg.frame_len() + u32::from(segs - 1) * (seg.frame_len() - seg.len);
        let edt = departure.max(Time(1)); // 0 is none
        let p =
            Packet { id: u64::from(burst), flow: i as u32, size, segs, ecn: seg.ecn, edt, body: Wire { seg, mss }, ..Packet::default() };
        if self.plan.trace_packets {
            self.out.packets.push(self.now, i as u32, &seg, false);
        }
        if self.bare_host {
            self.departed.push((i as u32, burst, size));
        }
        let taken = self.host.push(self.now, p);
        self.wake(HOST);
        taken
    }

    /// A batch of ACKs, a timer or a write is done: what it sent has left a host without a queue.
    fn depart(&mut self) {
        while !self.departed.is_empty() {
            let departed = std::mem::take(&mut self.departed);
            for (flow, burst, bytes) in departed {
                let sender = &mut self.flows[flow as usize].sender;
                sender.on_departure(self.now, burst, bytes);
                if sender.has_output() {
                    self.flush_sender(flow as usize);
                }
            }
        }
    }

    fn wake(&mut self, pipe: u32) {
        let t = match pipe {
            // What was dropped on entering must be told to its sender, even if nothing else happens there.
            HOST if self.host.has_released() => Some(self.now),
            HOST => self.host.next_event(),
            NET => self.net.next_event(),
            _ => self.reverse.next_event(),
        };
        if let Some(t) = t {
            self.events.want(pipe, t.max(self.now));
        }
    }

    fn flush_sender(&mut self, i: usize) {
        while let Some(t) = self.flows[i].sender.poll_transmit() {
            if !self.flows[i].closed && !self.transmit(i, t) {
                self.flows[i].sender.on_refused(self.now, &t);
            }
        }
        let f = &mut self.flows[i];
        if f.closed {
            return;
        }
        if f.sender.take_wake() && f.writer_blocked() {
            self.events.want(Self::component(i, WRITER), self.now);
        }
        if let Some(t) = self.flows[i].sender.next_event() {
            self.events.want(Self::component(i, SENDER), t.max(self.now));
        }
        if self.flows[i].finished() && self.flows[i].begin.is_some() {
            self.flows[i].stop = self.now;
            self.stop_flow(i);
        }
    }

    /// A segment goes back from the receiver.
    fn reply(&mut self, i: usize, seg: Segment) {
        let body = Wire { seg, mss: self.mss as u16 };
        let edt = if self.own_reverse { self.now.max(Time(1)) } else { Time::ZERO };
        let size = seg.frame_len();
        self.reverse.push(self.now, Packet { flow: i as u32, size, segs: 1, ecn: seg.ecn, edt, body, ..Packet::default() });
        self.wake(REVERSE);
    }

    fn flush_receiver(&mut self, i: usize) {
        while let Some(seg) = self.flows[i].receiver.poll_transmit(self.now) {
            self.reply(i, seg);
        }
        if let Some(t) = self.flows[i].receiver.next_event() {
            self.events.want(Self::component(i, RECEIVER), t.max(self.now));
        }
        if let Some(t) = self.flows[i].read_due(self.now) {
            self.events.want(Self::component(i, READER), t.max(self.now));
        }
    }

    fn pump_host(&mut self) {
        while let Some(p) = self.host.pop(self.now) {
            if p.segs > 1 && !self.plan.offload {
                for part in segments(&p) {
                    self.net.push(self.now, part);
                }
            } else {
                self.net.push(self.now, p);
            }
        }
        if self.host.has_released() {
            self.release();
        }
        self.wake(HOST);
        self.pump_net();
    }

    /// Tells senders what has left their own queue.
    fn release(&mut self) {
        let mut freed = std::mem::take(&mut self.freed);
        freed.extend(self.host.drain_released());
        for (flow, bytes, burst) in freed.drain(..) {
            let Some(f) = self.flows.get_mut(flow as usize) else { continue };
            f.sender.on_departure(self.now, burst as u32, bytes);
            if self.tsq && (f.sender.next_event().is_some() || f.sender.has_output()) {
                self.events.want(Self::component(flow as usize, SENDER), self.now);
            }
        }
        self.freed = freed;
    }

    fn pump_net(&mut self) {
        while let Some(p) = self.net.pop(self.now) {
            self.deliver_forward(p);
        }
        self.wake(NET);
    }

    fn deliver_forward(&mut self, p: Packet<Wire>) {
        if p.corrupt {
            return;
        }
        if p.flow == ARP {
            let reply = Packet { flow: ARP, size: p.size, segs: 1, ..Packet::default() };
            self.reverse.push(self.now, reply);
            self.wake(REVERSE);
            return;
        }
        let (i, seg) = (p.flow as usize, Segment { ecn: p.ecn, ..p.body.seg });
        self.note_delivery(i, &seg);
        if self.flows[i].dead {
            return;
        }
        if seg.flags.has(Flags::RST) {
            self.on_rst(i, &seg);
            return;
        }
        let fresh = seg.flags.has(Flags::SYN);
        self.flows[i].on_segment(self.now, &seg);
        if fresh {
            self.flows[i].accept(self.now, self.costs);
        }
        self.flush_receiver(i);
    }

    fn pump_reverse(&mut self) {
        while let Some(p) = self.reverse.pop(self.now) {
            if p.corrupt {
                continue;
            }
            if p.flow == ARP {
                self.neighbours_known();
                continue;
            }
            let (i, seg) = (p.flow as usize, p.body.seg);
            self.note_delivery(i, &seg);
            if self.plan.trace_packets {
                self.out.packets.push(self.now, i as u32, &seg, true);
            }
            if self.flows[i].closed {
                if !self.flows[i].dead {
                    self.send_rst(i, seg.ack);
                }
                continue;
            }
            self.flows[i].sender.on_segment(self.now, &seg);
            self.flush_sender(i);
        }
        self.depart();
        self.wake(REVERSE);
    }

    /// A sender's application wants to run. Its host has one CPU for them all: a process keeps it until it blocks or sleeps.
    fn write(&mut self, i: usize) {
        if self.flows.len() == 1 || self.running == Some(i) {
            return self.run_writer(i);
        }
        if !std::mem::replace(&mut self.flows[i].ready, true) {
            self.ready.push(i);
        }
        self.events.want(CPU, self.now);
    }

    /// The process that was woken last runs first, as the least served one.
    fn schedule(&mut self) {
        if self.running.is_none() {
            if let Some(i) = self.ready.pop() {
                self.flows[i].ready = false;
                self.run_writer(i);
            }
        }
    }

    fn run_writer(&mut self, i: usize) {
        let next = self.flows[i].write(self.now, self.costs);
        if let Some(t) = next {
            self.events.want(Self::component(i, WRITER), t.max(self.now));
        }
        self.running = next.filter(|&t| t <= self.now + self.costs.write).map(|_| i);
        if self.running.is_none() && !self.ready.is_empty() {
            self.events.want(CPU, self.now);
        }
        self.flush_sender(i);
        self.depart();
    }
}
