//! The watcher: sleeps from event to event of a trial, samples sockets and queues, changes the path, ends the flows.

use crate::flows::Running;
use crate::network::{layout::ways, Network, TestbedError};
use crate::sys;
use crate::tcp_info::TcpInfo;
use std::os::fd::AsFd;
use std::time::Duration;
use tcpscape_sim::Plan;

/// How long after its stop a flow's reader may wait for the RST, ns; as in the model.
const GRACE: u64 = 10_000_000_000;
/// How often the end is looked for, ns.
const END_POLL: u64 = 20_000_000;
/// How often a sender is told again to stop, ns.
const STOP_POLL: u64 = 1_000_000;

macro_rules! samples {
    ($($name:ident: $ty:ty = $value:expr;)*) => {
        /// Samples of flows, one row for each flow and time; names and units of the model's `FlowSamples`. What the kernel
        /// does not tell (`reo_wnd_steps`, `lost` so far) is left out.
        #[derive(Debug, Default)]
        pub struct FlowSamples {
            /// Time, ns.
            pub t_ns: Vec<u64>,
            /// Flow number.
            pub flow: Vec<u32>,
            $(#[doc = stringify!($name)] pub $name: Vec<$ty>,)*
        }
        impl FlowSamples {
            fn push(&mut self, t: u64, flow: usize, x: &TcpInfo) {
                self.t_ns.push(t);
                self.flow.push(flow as u32);
                $(self.$name.push(($value)(x));)*
            }
            /// The columns: name, type, bytes.
            pub fn columns(&self) -> Vec<(&'static str, &'static str, Vec<u8>)> {
                vec![
                    ("t_ns", "u64", self.t_ns.iter().flat_map(|v| v.to_le_bytes()).collect()),
                    ("flow", "u32", self.flow.iter().flat_map(|v| v.to_le_bytes()).collect()),
                    $((stringify!($name), stringify!($ty), self.$name.iter().flat_map(|v| v.to_le_bytes()).collect())),*
                ]
            }
        }
    };
}

samples! {
    cwnd: u32 = TcpInfo::snd_cwnd;
    ssthresh: u32 = TcpInfo::snd_ssthresh;
    srtt_us: u32 = TcpInfo::rtt;
    rttvar_us: u32 = TcpInfo::rttvar;
    min_rtt_us: u32 = TcpInfo::min_rtt;
    rto_us: u64 = |x: &TcpInfo| u64::from(x.rto());
    in_flight: u32 = TcpInfo::in_flight;
    unacked: u32 = TcpInfo::unacked;
    pacing_rate: u64 = TcpInfo::pacing_rate;
    delivery_rate: u64 = TcpInfo::delivery_rate;
    ca_state: u8 = TcpInfo::ca_state;
    retransmits: u64 = |x: &TcpInfo| u64::from(x.total_retrans());
    spurious_retransmits: u64 = |x: &TcpInfo| u64::from(x.dsack_dups());
    reordering: u32 = TcpInfo::reordering;
    rwnd: u32 = TcpInfo::snd_wnd;
    bytes_acked: u64 = TcpInfo::bytes_acked;
    delivered: u32 = TcpInfo::delivered;
    delivered_ce: u32 = TcpInfo::delivered_ce;
    busy_us: u64 = TcpInfo::busy_time;
    rwnd_limited_us: u64 = TcpInfo::rwnd_limited;
    sndbuf_limited_us: u64 = TcpInfo::sndbuf_limited;
    notsent: u32 = TcpInfo::notsent_bytes;
    app_limited: u8 = |x: &TcpInfo| u8::from(x.app_limited() == Some(true));
}

/// What was seen of one flow at every sampling time.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Smoothed RTTs, µs.
    pub srtt_us: Vec<u32>,
    /// Sum and number of congestion windows.
    pub cwnd: (u64, u64),
    /// Largest congestion window, segments.
    pub cwnd_max: u32,
    /// Largest receive window, bytes.
    pub rwnd_max: u32,
    /// Bytes the receiver had read at half of the trial.
    pub first_half: u64,
    /// Bytes acknowledged until the end of each whole second, between two samples by proportion.
    pub acked: Vec<f64>,
    /// The last sample: its time, ns, and bytes acknowledged until then.
    last: (u64, u64),
}

/// A second, ns.
const SECOND: u64 = 1_000_000_000;

/// Everything that was seen.
#[derive(Debug, Default)]
pub struct Watched {
    /// Samples asked for.
    pub samples: FlowSamples,
    /// Queue samples asked for.
    pub queues: QueueSamples,
    /// The packets of probes.
    pub probes: ProbeSamples,
    /// Per flow.
    pub flows: Vec<Seen>,
    /// What weakens the result.
    pub caveats: Vec<String>,
}

/// Something that happens again and again.
struct Every {
    next: u64,
    interval: u64,
}

impl Every {
    fn new(interval: u64) -> Every {
        Every { next: if interval > 0 { 0 } else { u64::MAX }, interval }
    }
    fn due(&mut self, t: u64) -> bool {
        let due = t >= self.next;
        while due && self.next <= t {
            self.next += self.interval;
        }
        due
    }
}

/// Watches a trial from `zero` until all flows have ended. `summary_ns`: sampling interval of the summaries.
pub fn watch(plan: &Plan, network: &mut dyn Network, flows: &[Running], zero: u64, summary_ns: u64) -> Result<Watched, TestbedError> {
    sys::timer_slack(1);
    let mut seen = Watched { flows: vec![Seen::default(); flows.len()], ..Watched::default() };
    let (mut summary, mut samples) = (Every::new(summary_ns), Every::new(plan.sample_interval_ns));
    let mut queues = Every::new(plan.queue_sample_interval_ns);
    let (half, mut halved) = (plan.duration_ns / 2, false);
    let last = if plan.probes.is_empty() && plan.transfers.is_empty() { 0 } else { plan.duration_ns };
    loop {
        let t = sys::now().saturating_sub(zero);
        network.change(t)?;
        let mut stop = if t < last { last } else { u64::MAX };
        for f in flows.iter().filter(|f| !f.flow.writer_ended()) {
            let at = f.flow.plan.span(plan.duration_ns).1 .0;
            stop = stop.min(if at > t { at } else { t + STOP_POLL });
            if at <= t {
                f.stop();
            }
        }
        if stop == u64::MAX {
            break;
        }
        if t >= half && !halved {
            halved = true;
            for (f, s) in flows.iter().zip(&mut seen.flows) {
                s.first_half = read_so_far(f);
            }
        }
        sample(&mut seen, flows, t, summary.due(t), samples.due(t));
        if queues.due(t) {
            sample_queues(&mut seen.queues, plan, network, t)?;
        }
        let at = network.next_change().unwrap_or(u64::MAX);
        let half = if halved { u64::MAX } else { half };
        sys::nap_until(zero + [stop, at, half, summary.next, samples.next, queues.next].into_iter().min().unwrap_or(stop));
    }
    wait_for_readers(flows, &mut seen);
    if !halved {
        for (f, s) in flows.iter().zip(&mut seen.flows) {
            s.first_half = f.flow.bytes().1;
        }
    }
    Ok(seen)
}

/// Bytes the receiving application has read.
fn read_so_far(running: &Running) -> u64 {
    let Some(socket) = running.flow.receiver() else { return 0 };
    TcpInfo::of(socket.as_fd()).map_or(0, |x| x.bytes_received().saturating_sub(sys::unread(socket.as_fd())))
}

fn sample(seen: &mut Watched, flows: &[Running], t: u64, summary: bool, asked: bool) {
    if !summary && !asked {
        return;
    }
    for (i, f) in flows.iter().enumerate().filter(|(_, f)| f.flow.sending()) {
        let Ok(x) = TcpInfo::of(f.flow.sender.as_fd()) else { continue };
        // A connection that has ended meanwhile has its counters reset.
        if !f.flow.sending() {
            continue;
        }
        if asked {
            seen.samples.push(t, i, &x);
        }
        if summary {
            seen.flows[i].take(&x);
            seen.flows[i].acknowledged(t, x.bytes_acked());
        }
    }
}

impl Seen {
    /// So many bytes were acknowledged until `t`.
    fn acknowledged(&mut self, t: u64, bytes: u64) {
        let (then, before) = std::mem::replace(&mut self.last, (t, bytes));
        while t > then && (self.acked.len() as u64 + 1) * SECOND <= t {
            let end = (self.acked.len() as u64 + 1) * SECOND;
            let share = end.saturating_sub(then) as f64 / (t - then) as f64;
            self.acked.push(before as f64 + share * bytes.saturating_sub(before) as f64);
        }
    }

    /// Adds a sample to the summary.
    pub fn take(&mut self, x: &TcpInfo) {
        if x.rtt() > 0 {
            self.srtt_us.push(x.rtt());
        }
        self.cwnd = (self.cwnd.0 + u64::from(x.snd_cwnd()), self.cwnd.1 + 1);
        self.cwnd_max = self.cwnd_max.max(x.snd_cwnd());
        self.rwnd_max = self.rwnd_max.max(x.snd_wnd());
    }
}

/// One row for each queue, with the model's names. How long packets waited the kernel does not tell.
#[derive(Debug, Default)]
pub struct QueueSamples {
    /// Time, ns.
    pub t_ns: Vec<u64>,
    /// 0 the sender's host, 1 the network forward, 2 reverse, as the model numbers them; further ones of a plan with places.
    pub pipe: Vec<u8>,
    /// Stage within the pipe.
    pub stage: Vec<u32>,
    /// 0 for the stage's own queue, 1 for its child, and so on.
    pub depth: Vec<u8>,
    /// Packets held, bytes held, drops and marks so far.
    pub counts: [Vec<u64>; 4],
}

impl QueueSamples {
    fn push(&mut self, t: u64, (pipe, stage, depth): (u8, u32, u8), counts: [u64; 4]) {
        self.t_ns.push(t);
        self.pipe.push(pipe);
        self.stage.push(stage);
        self.depth.push(depth);
        self.counts.iter_mut().zip(counts).for_each(|(column, n)| column.push(n));
    }
    /// The columns: name, type, bytes.
    pub fn columns(&self) -> Vec<(&'static str, &'static str, Vec<u8>)> {
        let long = |v: &Vec<u64>| v.iter().flat_map(|n| n.to_le_bytes()).collect();
        let mut all = vec![
            ("t_ns", "u64", long(&self.t_ns)),
            ("pipe", "u8", self.pipe.clone()),
            ("stage", "u32", self.stage.iter().flat_map(|n| n.to_le_bytes()).collect()),
            ("depth", "u8", self.depth.clone()),
        ];
        all.extend(["packets", "bytes", "drops", "marks"].into_iter().zip(&self.counts).map(|(name, v)| (name, "u64", long(v))));
        all
    }
}

/// One row for each packet of a probe.
#[derive(Debug, Default)]
pub struct ProbeSamples {
    /// When it was sent, ns.
    pub t_ns: Vec<u64>,
    /// Number of the probe.
    pub probe: Vec<u32>,
    /// Its delay, ns; `u64::MAX` where it did not arrive.
    pub delay_ns: Vec<u64>,
}

impl ProbeSamples {
    /// In order of time, from each probe's packets: when each was sent, and its delay.
    pub fn of(probes: &[Vec<(u64, u64)>]) -> ProbeSamples {
        let rows = probes.iter().enumerate().flat_map(|(probe, packets)| packets.iter().map(move |&(t, delay)| (t, probe as u32, delay)));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable();
        let mut samples = ProbeSamples::default();
        for (t, probe, delay) in rows {
            samples.t_ns.push(t);
            samples.probe.push(probe);
            samples.delay_ns.push(delay);
        }
        samples
    }
    /// The columns: name, type, bytes.
    pub fn columns(&self) -> Vec<(&'static str, &'static str, Vec<u8>)> {
        let long = |v: &Vec<u64>| v.iter().flat_map(|n| n.to_le_bytes()).collect();
        let probe = self.probe.iter().flat_map(|n| n.to_le_bytes()).collect();
        vec![("t_ns", "u64", long(&self.t_ns)), ("probe", "u32", probe), ("delay_ns", "u64", long(&self.delay_ns))]
    }
}

/// The pipe of the right host's own queues, where it sends data and the plan has no places.
const RIGHT_HOST: usize = 3;

/// Samples every queue. Pipe 0 is the sender's own host, as of a plain plan; from 1 on the pipes are the [`ways`] of the plan, of which 254 are told.
fn sample_queues(into: &mut QueueSamples, plan: &Plan, network: &mut dyn Network, t: u64) -> Result<(), TestbedError> {
    let ways = ways(plan);
    let mut stages = vec![0u32; 1 + ways.len().max(RIGHT_HOST)];
    for q in network.queues()? {
        let way = ways.iter().position(|(link, direction, _)| (link, direction.name()) == (&q.link, q.r#where));
        let number = match (q.r#where, q.at) {
            ("forward", "sender") => 0,
            ("reverse", "receiver") if plan.has_data_up() => RIGHT_HOST,
            _ => way.map_or(0, |way| way + 1),
        };
        let Ok(pipe) = u8::try_from(number) else { continue };
        let stage = &mut stages[number];
        into.push(t, (pipe, *stage, 0), [q.backlog_packets, q.backlog_bytes, q.dropped, q.marked]);
        for (depth, c) in q.children.iter().enumerate() {
            into.push(t, (pipe, *stage, depth as u8 + 1), [c.backlog_packets, c.backlog_bytes, c.dropped, c.marked]);
        }
        *stage += 1;
    }
    Ok(())
}

/// Waits until every reader has met its connection's end; hangs up on those whose RST was lost.
fn wait_for_readers(flows: &[Running], seen: &mut Watched) {
    let until = sys::now() + GRACE;
    while flows.iter().any(|f| !f.flow.ended()) && sys::now() < until {
        std::thread::sleep(Duration::from_nanos(END_POLL));
    }
    let waiting = flows.iter().filter(|f| !f.flow.ended()).count();
    if waiting > 0 {
        let established = flows.iter().filter(|f| f.flow.span().0 > 0 && !f.flow.ended()).count();
        if established > 0 {
            seen.caveats
                .push(format!("{established} flows ended without their RST: it was lost on the path; the receiver was ended after 10 s"));
        }
        flows.iter().for_each(Running::hang_up);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_at_the_end_of_a_second_are_between_two_samples() {
        let mut seen = Seen::default();
        for (t, bytes) in [(0, 0), (900_000_000, 90), (1_100_000_000, 130), (3_100_000_000, 330)] {
            seen.acknowledged(t, bytes);
        }
        assert_eq!(seen.acked, [110.0, 220.0, 320.0]);
    }
}
