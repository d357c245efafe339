//! The watcher: sleeps from event to event of a trial, samples sockets and queues, changes the path, ends the flows.

use crate::flows::Running;
use crate::network::{Network, TestbedError};
use crate::sys;
use crate::tcp_info::TcpInfo;
use std::os::fd::AsFd;
use std::time::Duration;
use tcpscape_base::Column;
use tcpscape_plan::samples::{FlowSample, FlowSamples, ProbeSample, ProbeSamples, QueueSamples};
use tcpscape_plan::Plan;

/// How long after its stop a flow's reader may wait for the RST, ns; as in the model.
const GRACE: u64 = 10_000_000_000;
/// How often the end is looked for, ns.
const END_POLL: u64 = 20_000_000;
/// How often a sender is told again to stop, ns.
const STOP_POLL: u64 = 1_000_000;

/// What was seen of one flow at every sampling time.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Smoothed RTTs, µs.
    pub srtt_us: Vec<u32>,
    /// Samples, and the sum of their congestion windows.
    pub samples: u64,
    /// See `samples`.
    pub cwnd_sum: u64,
    /// Largest congestion window, segments.
    pub cwnd_max: u32,
    /// Largest receive window, bytes.
    pub rwnd_max: u32,
    /// Bytes the receiver had read at half of the trial.
    pub first_half: u64,
    /// Bytes acknowledged until the end of each whole second, between two samples by proportion.
    pub acked: Vec<f64>,
    /// The last sample: its time, ns, and bytes acknowledged until then.
    last: Acked,
}

/// So many bytes were acknowledged until a time, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Acked {
    t: u64,
    bytes: u64,
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

impl Watched {
    /// The tables that a plan asks for, by their names.
    pub fn tables(&self, plan: &Plan) -> Vec<(&'static str, Vec<Column>)> {
        let mut tables = Vec::new();
        if plan.sample_interval_ns > 0 {
            tables.push(("samples", self.samples.columns()));
        }
        if plan.queue_sample_interval_ns > 0 {
            tables.push(("queue_samples", self.queues.narrowed()));
        }
        if plan.sample_interval_ns > 0 && !plan.probes.is_empty() {
            tables.push(("probe_samples", self.probes.columns()));
        }
        tables
    }
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
    let mut seen = Watched { samples: FlowSamples::of_kernel(), flows: vec![Seen::default(); flows.len()], ..Watched::default() };
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
            network.sample_queues(plan, t, &mut seen.queues)?;
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
            seen.samples.push(flow_sample(t, i, &x));
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
        let Acked { t: then, bytes: before } = std::mem::replace(&mut self.last, Acked { t, bytes });
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
        self.cwnd_sum += u64::from(x.snd_cwnd());
        self.samples += 1;
        self.cwnd_max = self.cwnd_max.max(x.snd_cwnd());
        self.rwnd_max = self.rwnd_max.max(x.snd_wnd());
    }
}

/// A row of the samples of flows.
fn flow_sample(t_ns: u64, flow: usize, x: &TcpInfo) -> FlowSample {
    FlowSample {
        t_ns,
        flow: flow as u32,
        cwnd: x.snd_cwnd(),
        ssthresh: x.snd_ssthresh(),
        srtt_us: x.rtt(),
        rttvar_us: x.rttvar(),
        min_rtt_us: x.min_rtt(),
        rto_us: u64::from(x.rto()),
        in_flight: x.in_flight(),
        unacked: x.unacked(),
        pacing_rate: x.pacing_rate(),
        delivery_rate: x.delivery_rate(),
        ca_state: x.ca_state(),
        retransmits: u64::from(x.total_retrans()),
        spurious_retransmits: u64::from(x.dsack_dups()),
        reordering: x.reordering(),
        rwnd: x.snd_wnd(),
        bytes_acked: x.bytes_acked(),
        delivered: x.delivered(),
        delivered_ce: x.delivered_ce(),
        busy_us: Some(x.busy_time()),
        rwnd_limited_us: Some(x.rwnd_limited()),
        sndbuf_limited_us: Some(x.sndbuf_limited()),
        notsent: Some(x.notsent_bytes()),
        app_limited: Some(u8::from(x.app_limited() == Some(true))),
        ..FlowSample::default()
    }
}

/// Each packet of each probe in order of time, from when each was sent and its delay.
pub fn probe_samples(probes: &[Vec<(u64, u64)>]) -> ProbeSamples {
    let rows = probes.iter().zip(0..).flat_map(|(packets, probe)| packets.iter().map(move |&(t, delay)| (t, probe, delay)));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    let mut samples = ProbeSamples::default();
    rows.into_iter().for_each(|(t_ns, probe, delay_ns)| samples.push(ProbeSample { t_ns, probe, delay_ns }));
    samples
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
