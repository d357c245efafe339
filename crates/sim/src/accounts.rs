//! The laws that the results of every trial keep, whatever its plan: nothing is delivered that was not sent, no link carries more than its rate,
//! no round trip is shorter than the path. Tests and fuzz targets call [`TrialOutput::check_accounts`] after each run.

use crate::engine::EVENTS_MAX;
use crate::output::{FlowSummary, ProbeSummary, RttSummary, TransfersSummary, TrialOutput};
use crate::plan::{Plan, ProbeKind, ProbePlan};
use tcpscape_path::{check_accounts, Description, Host, PathSpec, StageStats};

impl TrialOutput {
    /// Checks that packets and bytes are conserved in every queue and between them, that no link carried more than its rate, that no flow got
    /// what was not sent, and that no RTT is below the path's delay; `plan` is the one that ran. The error is one line with the law.
    pub fn check_accounts(&self, plan: &Plan) -> Result<(), String> {
        let (host, network) = plan.forward.stages.split_at(own_stages(&plan.forward));
        let mut rest = &self.queues[..];
        let mut pipes = Vec::new();
        for stages in [host, network, &plan.reverse.stages] {
            let levels: Vec<Description> = stages.iter().flat_map(|s| s.qdisc.describe()).collect();
            let (queues, others) = rest.split_at_checked(levels.len()).ok_or("fewer accounts than queues")?;
            rest = others;
            pipes.push((levels, queues.iter().map(|q| q.1.clone()).collect::<Vec<_>>()));
        }
        for ((levels, queues), path) in pipes.iter().zip([&plan.forward, &plan.forward, &plan.reverse]) {
            check_accounts(queues)?;
            if path.schedule.is_empty() {
                levels.iter().zip(queues).try_for_each(|(level, queue)| self.keeps_the_rate(level, queue))?;
            }
        }
        self.enters_the_network(&pipes[0].1, &pipes[1].1)?;
        self.flows.iter().try_for_each(is_plausible)?;
        self.probes.iter().zip(&plan.probes).try_for_each(|(p, probe)| is_plausible_probe(p, probe, plan.duration_ns))?;
        self.transfers.iter().try_for_each(are_plausible)?;
        if plan.trace_events && self.sender_events.t_ns.len() < EVENTS_MAX {
            self.flows.iter().enumerate().try_for_each(|(i, f)| self.records_every_event(i, f))?;
        }
        self.delivers_what_was_carried(&pipes[1].1)?;
        // Where the host's queue paces, TCP measures from the time at which a packet was to leave: what came before that is no part of the RTT, and
        // a packet that passes that queue by has left before its time.
        let paced = host.iter().any(|stage| stage.qdisc.paces());
        let early = paced && pipes[0].0.iter().any(|level| level.reorder > 0.0);
        let fixed = plan.forward.schedule.is_empty() && plan.reverse.schedule.is_empty() && !early;
        let least_ms = pipes[usize::from(paced)..].iter().flat_map(|p| &p.0).map(least_delay_ns).sum::<u64>() as f64 / 1e6;
        let echo = |p: &&ProbeSummary, plan: &ProbePlan| plan.kind != ProbeKind::Udp && p.delay_ms.min < least_ms - 0.001;
        if let Some((p, _)) = self.probes.iter().zip(&plan.probes).find(|(p, plan)| fixed && echo(p, plan)) {
            return Err(format!("an echo after {} ms on a path of {least_ms} ms", p.delay_ms.min));
        }
        match self.flows.iter().find(|f| fixed && f.rtt_ms.min < least_ms - RTT_GRAIN_MS) {
            Some(f) => Err(format!("{}: an RTT of {} ms on a path of {least_ms} ms", f.cca, f.rtt_ms.min)),
            None => Ok(()),
        }
    }

    /// What left a queue took its time at the rate, but for the burst.
    fn keeps_the_rate(&self, level: &Description, q: &StageStats) -> Result<(), String> {
        let (Some(rate), Some(burst)) = (level.rate_bps, level.burst_bytes) else { return Ok(()) };
        let at_rate_s = q.bytes_out.saturating_sub(burst) as f64 * 8.0 / rate as f64;
        // Each packet's time is rounded down to a nanosecond.
        let rounded_s = q.packets_out as f64 * 2e-9 + at_rate_s * 1e-9;
        law(at_rate_s - rounded_s <= self.ended_s, || {
            format!("{}: {} bytes left at {rate} bit/s within {} s; {q:?}", q.name, q.bytes_out, self.ended_s)
        })
    }

    /// What leaves the sender's host enters the network, cut or not, unless the trial ended between them.
    fn enters_the_network(&self, host: &[StageStats], network: &[StageStats]) -> Result<(), String> {
        let left = host.iter().rfind(|q| q.depth == 0).map(|q| q.bytes_out);
        let (Some(left), Some(first)) = (left, network.first()) else { return Ok(()) };
        law(first.bytes_in <= left, || format!("{} bytes left the sender's host, {} entered the network", left, first.bytes_in))
    }

    /// What was recorded of a sender adds up to what it counted.
    fn records_every_event(&self, i: usize, f: &FlowSummary) -> Result<(), String> {
        let e = &self.sender_events;
        let sum =
            |column: &[u32]| column.iter().zip(&e.flow).filter(|(_, flow)| **flow == i as u32).map(|(n, _)| u64::from(*n)).sum::<u64>();
        for (name, column, counted) in [
            ("retransmits", &e.retransmits, f.retransmits),
            ("spurious_retransmits", &e.spurious_retransmits, f.spurious_retransmits),
            ("rtos", &e.rtos, f.rtos),
            ("spurious_rtos", &e.spurious_rtos, f.spurious_rtos),
            ("fast_recoveries", &e.fast_recoveries, f.fast_recoveries),
            ("undos", &e.undos, f.undos),
            ("tlps", &e.tlps, f.tlps),
            ("ecn_reductions", &e.ecn_reductions, f.ecn_reductions),
            ("reord_seen", &e.reord_seen, f.reord_seen),
        ] {
            law(sum(column) == counted, || format!("{}: {counted} {name}, {} recorded", f.cca, sum(column)))?;
        }
        Ok(())
    }

    /// The receivers got no more than the narrowest queue let through.
    fn delivers_what_was_carried(&self, network: &[StageStats]) -> Result<(), String> {
        let received: u64 = self.flows.iter().map(|f| f.bytes_received).chain(self.transfers.iter().map(|t| t.bytes_received)).sum();
        let passed = network.iter().filter(|q| q.depth == 0).map(|q| q.bytes_out).min();
        law(passed.map_or(true, |most| received <= most), || format!("{received} bytes received, {passed:?} carried"))
    }
}

/// Stages of the sender's own host.
fn own_stages(forward: &PathSpec) -> usize {
    forward.stages.iter().take_while(|s| s.at == Host::Sender).count()
}

/// The counts of one flow fit each other.
fn is_plausible(f: &FlowSummary) -> Result<(), String> {
    law(f.bytes_received <= f.bytes_sent, || format!("{}: {} bytes sent, {} received", f.cca, f.bytes_sent, f.bytes_received))?;
    let half = f.bytes_received_first_half;
    law(half <= f.bytes_received, || format!("{}: {} bytes received, {half} by half of the time", f.cca, f.bytes_received))?;
    let goodput = if f.seconds > 0.0 { f.bytes_received as f64 * 8e-6 / f.seconds } else { 0.0 };
    law(f.goodput_mbps == goodput, || format!("{}: goodput is {goodput} Mbit/s, said is {}", f.cca, f.goodput_mbps))?;
    law(f.retransmits <= f.data_segs_out, || format!("{}: {} of {} segments sent again", f.cca, f.retransmits, f.data_segs_out))?;
    in_order(&f.rtt_ms).map_err(|problem| format!("{}: {problem}", f.cca))?;
    if let Some(responses) = &f.responses {
        in_order(&responses.time_ms).map_err(|problem| format!("{}: {problem}", f.cca))?;
    }
    let l = &f.limited_by;
    let shares = [l.app, l.rwnd, l.cwnd, l.pacing, l.sndbuf, l.tsq];
    let fit = shares.iter().all(|s| (0.0..=1.0 + 1e-9).contains(s)) && shares.iter().sum::<f64>() <= 1.0 + 1e-9;
    law(fit, || format!("{}: shares of the time do not add up: {l:?}", f.cca))
}

/// A probe got no more than it sent, which is what its plan says, and its delays are in order.
fn is_plausible_probe(p: &ProbeSummary, plan: &ProbePlan, duration_ns: u64) -> Result<(), String> {
    law(p.received <= p.sent && p.reordered <= p.received, || format!("{:?}: {p:?}", plan.kind))?;
    law(p.sent <= plan.packets(duration_ns), || format!("{:?}: {} packets sent of {}", plan.kind, p.sent, plan.packets(duration_ns)))?;
    in_order(&p.delay_ms)
}

/// No more connections were completed than began, and their bytes came: those of a class are at most its largest size each.
fn are_plausible(t: &TransfersSummary) -> Result<(), String> {
    t.classes.iter().try_for_each(|c| {
        law(c.completed <= c.started, || format!("{} of {} transfers completed", c.completed, c.started))?;
        in_order(&c.completion_ms)
    })?;
    let most = t.classes.iter().map(|c| c.started.saturating_mul(c.most)).fold(0, u64::saturating_add);
    law(t.bytes_received <= most, || format!("{} bytes received of transfers that had {most} at most", t.bytes_received))
}

/// Percentiles rise.
fn in_order(times: &RttSummary) -> Result<(), String> {
    let order = [times.min, times.p50, times.p95, times.p99, times.max];
    law(times.min.is_nan() || order.windows(2).all(|w| w[0] <= w[1]), || format!("times are out of order: {times:?}"))
}

/// What a queue delays each packet at least, ns.
fn least_delay_ns(level: &Description) -> u64 {
    if level.jitter_ns > 0 || level.reorder > 0.0 {
        0
    } else {
        level.delay_ns
    }
}

/// How much less than it was an RTT may read: TCP measures whole microseconds, and by timestamps, where every segment was sent twice, whole
/// milliseconds (RFC 7323 §4.1).
const RTT_GRAIN_MS: f64 = 1.001;

fn law(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(problem())
    }
}
