//! How a trial begins: every part is built from the plan and the seed, and asks for its first events.
//!
//! A random stream is f(seed, name): the tick's phase, each flow's congestion control and each flow's sleeps have their own.

use super::{Clock, Cpu, Engine, HostKind, Neighbours, Network, Node, Observer, Part, Probes, Progress, Stack, Transfers};
use crate::checked::{CheckedPlan, FlowControl};
use crate::events::Events;
use crate::flow::{Costs, Flow, Task};
use tcpscape_base::{Duration, Kernel, Misbehaviour, Stream, Time};
use tcpscape_plan::transfers::Transfer;
use tcpscape_plan::{App, FlowPlan, Plan, TransfersPlan};
use tcpscape_tcp::{Jiffies, Receiver, ReceiverConfig, Sender, SenderConfig, Tuning};

/// IPv4 and TCP headers with timestamps, bytes: what an MTU has less than its payload.
const HEADERS: u32 = 52;
/// Bytes of the timestamp option, which the advertised MSS does not count (RFC 6691 §2).
const TIMESTAMPS: u32 = 12;

/// What the hosts of a trial have in common.
pub(super) struct Hosts<'a> {
    plan: &'a Plan,
    kernel: Kernel,
    jiffies: Jiffies,
    mss: u32,
    /// Those that send down and up.
    hosts: [HostKind; 2],
    seed: u64,
}

impl<'a> Hosts<'a> {
    fn new(checked: &'a CheckedPlan<'_>, network: &Network, mss: u32, seed: u64) -> Hosts<'a> {
        let (plan, kernel) = (checked.plan(), checked.kernel());
        let phase = plan.tick_phase_ns.unwrap_or_else(|| u64::from(Stream::new(seed, "clock").below(1_000_000_000 / kernel.hz)));
        Hosts {
            plan,
            kernel,
            jiffies: Jiffies::new(kernel.hz, Duration(phase)),
            mss,
            hosts: [false, true].map(|up| network.host(up)),
            seed,
        }
    }

    /// Whether they take packets in while a process runs that the packets before have woken.
    pub fn take_in_beside_processes(&self) -> bool {
        self.kernel.rules().takes_in_beside_processes
    }

    /// Flow `i` of the plan.
    fn flow(&self, i: usize, plan: &'a FlowPlan, control: &FlowControl<'_>) -> Flow<'a> {
        let (start, stop) = plan.span(self.plan.duration_ns);
        self.connection(&format!("flow/{i}"), plan, &Task { app: plan.app.clone(), start, stop }, control)
    }

    /// Connection number `which` of all that were drawn; it may last until the end of the trial.
    pub fn transfer(&self, plan: &'a TransfersPlan, control: &FlowControl<'_>, which: usize, drawn: Transfer) -> Flow<'a> {
        let App::Bulk { chunk } = plan.flow.app else { unreachable!("a checked plan's transfers have no other application") };
        let app = App::Finite { chunk, bytes: drawn.bytes };
        let task = Task { app, start: Time(drawn.start_ns), stop: Time(self.plan.duration_ns) };
        self.connection(&format!("transfer/{which}"), &plan.flow, &task, control)
    }

    /// A connection with its two machines, whose random streams begin with `name`: what its application does, and when it begins and ends.
    fn connection(&self, name: &str, plan: &'a FlowPlan, task: &Task, control: &FlowControl<'_>) -> Flow<'a> {
        let flow_seed = Stream::new(self.seed, name).next_u64();
        let congestion = control.congestion(plan, flow_seed);
        let receiver = Receiver::new(&ReceiverConfig {
            kernel: self.kernel,
            jiffies: self.jiffies,
            mss: self.mss,
            advmss: self.mss + TIMESTAMPS,
            rcvbuf: plan.rcvbuf,
            sack: plan.misbehaves != Some(Misbehaviour::Optimistic),
            feedback: control.feedback(&*congestion),
            misbehaves: plan.misbehaves,
        });
        let host = self.hosts[usize::from(plan.up)];
        let sender = Sender::new(SenderConfig {
            kernel: self.kernel,
            jiffies: self.jiffies,
            mss: self.mss,
            sndbuf: plan.sndbuf,
            gso: self.plan.gso,
            nodelay: plan.nodelay,
            ecn: self.plan.ecn,
            tsq: host.holds_sender,
            watch_host: true,
            bare_host: host.bare,
            fq: host.paces,
            tuning: Tuning::default(),
            congestion,
        });
        let sleeps = Stream::new(self.seed, &format!("{name}/sleep"));
        Flow::new(plan, task, sender, receiver, sleeps)
    }
}

impl<'a> Engine<'a> {
    pub(super) fn new(checked: &'a CheckedPlan<'a>, seed: u64) -> Engine<'a> {
        let plan = checked.plan();
        let mss = plan.mtu - HEADERS;
        let network = Network::new(checked, mss, seed);
        let hosts = Hosts::new(checked, &network, mss, seed);
        let flows: Vec<Flow<'a>> = checked.flows().enumerate().map(|(i, (flow, control))| hosts.flow(i, flow, control)).collect();
        let observer = Observer::new(plan, seed);
        let mut events = Events::new(Node::count(flows.len(), network.pipes()));
        for (i, f) in flows.iter().enumerate() {
            events.want(Node::Flow(i as u32, Part::Connection), f.start);
        }
        observer.samplers().for_each(|sampler| events.want(sampler, Time::ZERO));
        let (probes, transfers) = (Probes::new(plan), Transfers::new(checked, seed));
        let begins = [(Node::Probes, probes.next()), (Node::Transfers, transfers.next())];
        let begins: Vec<(Node, Time)> = begins.into_iter().filter_map(|(node, first)| Some((node, first?))).collect();
        begins.iter().for_each(|&(node, first)| events.want(node, first));
        Engine {
            now: Time::ZERO,
            end: Time(plan.duration_ns),
            events,
            clock: plan.clock.map(Clock::new),
            network,
            stack: Stack::new(Duration(u64::from(hosts.kernel.host_time_ns))),
            neighbours: [Neighbours::new(plan.arp && plan.places.is_empty()); 2],
            alive: flows.len() + begins.len(),
            writers: Cpu::new(flows.len(), !transfers.is_empty()),
            readers: if hosts.kernel.host_time_ns == 0 { Cpu::new(flows.len(), !transfers.is_empty()) } else { Cpu::for_each(flows.len()) },
            plan_flows: flows.len(),
            flows,
            probes,
            transfers,
            costs: Costs {
                slack: Duration(plan.timer_slack_ns),
                write: Duration(plan.write_cost_ns),
                read: Duration(plan.read_cost_ns),
                noise: Duration(plan.wake_noise_ns),
            },
            half: Time(plan.duration_ns / 2),
            next_reader: None,
            observer,
            progress: Progress::default(),
            hosts,
        }
    }
}
