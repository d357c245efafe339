//! The laws that the results of every trial keep, whatever its plan: nothing is delivered that was not sent, no link carries more than its rate,
//! no round trip is shorter than the path. Tests and fuzz targets call [`TrialOutput::check_accounts`] after each run.

use crate::engine::{Pipes, EVENTS_MAX};
use crate::output::TrialOutput;
use std::collections::BTreeSet;
use tcpscape_base::Time;
use tcpscape_path::{check_accounts, Description, StageStats};
use tcpscape_plan::results::{FlowSummary, ProbeSummary, RttSummary, TransfersSummary};
use tcpscape_plan::{FlowPlan, Plan, ProbeKind, ProbePlan};

impl TrialOutput {
    /// Checks that packets and bytes are conserved in every queue and between them, that no link carried more than its rate, that no flow got
    /// what was not sent, and that no RTT is below the path's delay; `plan` is the one that ran. The error is one line with the law.
    pub fn check_accounts(&self, plan: &Plan) -> Result<(), String> {
        let network = Pipes::of(plan);
        let pipes = self.accounts_of(&network)?;
        for (pipe, account) in network.pipes.iter().zip(&pipes) {
            check_accounts(&account.queues)?;
            if pipe.spec.schedule.is_empty() {
                account.levels.iter().zip(&account.queues).try_for_each(|(level, queue)| self.keeps_the_rate(level, queue, plan.mtu))?;
            }
            if let Some(network) = pipe.leaves_to {
                self.enters_the_network(&account.queues, &pipes[network as usize].queues)?;
            }
        }
        network.passes_on(plan, &pipes, &self.untaken)?;
        for (f, flow) in self.flows.iter().zip(&plan.flows) {
            let (from, until) = flow.span(plan.duration_ns);
            is_plausible(f, from, until)?;
        }
        self.probes.iter().zip(&plan.probes).try_for_each(|(p, probe)| is_plausible_probe(p, probe, plan.duration_ns))?;
        self.transfers.iter().try_for_each(are_plausible)?;
        if plan.trace_events && self.sender_events.t_ns.len() < EVENTS_MAX {
            self.flows.iter().enumerate().try_for_each(|(i, f)| self.records_every_event(i, f))?;
        }
        for (k, account) in (0..).zip(&pipes) {
            let received = self.received_through(plan, |f| network.way(f.place, f.up).0.contains(&k));
            delivers_what_was_carried(received, &account.queues)?;
        }
        for (flow, f) in plan.flows.iter().zip(&self.flows) {
            let least_ms = network.least_ms(flow.place, flow.up, &pipes).unwrap_or(0.0);
            law(f.rtt_ms.min.is_nan() || f.rtt_ms.min >= least_ms - RTT_GRAIN_MS, || {
                format!("{}: an RTT of {} ms on a path of {least_ms} ms", f.cca, f.rtt_ms.min)
            })?;
        }
        for (probe, p) in
            plan.probes.iter().zip(&self.probes).filter(|(probe, _)| matches!(probe.kind, ProbeKind::UdpEcho | ProbeKind::IcmpEcho))
        {
            let least_ms = network.least_ms(probe.place, probe.up, &pipes).unwrap_or(0.0);
            law(p.delay_ms.min.is_nan() || p.delay_ms.min >= least_ms - 0.001, || {
                format!("an echo after {} ms on a path of {least_ms} ms", p.delay_ms.min)
            })?;
        }
        Ok(())
    }

    /// Bytes that the receivers got of flows and transfers that are like this.
    fn received_through(&self, plan: &Plan, passes: impl Fn(&FlowPlan) -> bool) -> u64 {
        let flows = plan.flows.iter().zip(self.flows.iter().map(|f| f.bytes_received));
        let transfers = plan.transfers.iter().map(|t| &t.flow).zip(self.transfers.iter().map(|t| t.bytes_received));
        flows.chain(transfers).filter(|(plan, _)| passes(plan)).map(|(_, bytes)| bytes).sum()
    }

    /// The accounts of each pipe, with what its queues were meant to do.
    fn accounts_of(&self, network: &Pipes) -> Result<Vec<PipeAccount>, String> {
        let mut rest = &self.queues[..];
        let mut accounts = Vec::new();
        for pipe in &network.pipes {
            let levels: Vec<Description> = pipe.spec.describe().collect();
            let (queues, others) = rest.split_at_checked(levels.len()).ok_or("fewer accounts than queues")?;
            law(queues.iter().all(|q| q.link == pipe.link), || format!("the accounts of {:?} are those of another link", pipe.link))?;
            rest = others;
            accounts.push(PipeAccount { levels, queues: queues.iter().map(|q| q.stats.clone()).collect() });
        }
        Ok(accounts)
    }

    /// What left a queue took its time at the rate, but for the burst and a packet that is owed.
    fn keeps_the_rate(&self, level: &Description, q: &StageStats, mtu: u32) -> Result<(), String> {
        let (Some(rate), Some(burst)) = (level.rate_bps, level.burst_bytes) else { return Ok(()) };
        let burst = burst + if level.owes_a_packet { Description::largest_packet(mtu) } else { 0 };
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
            ("retransmits", &e.retransmits, Some(f.retransmits)),
            ("spurious_retransmits", &e.spurious_retransmits, Some(f.spurious_retransmits)),
            ("rtos", &e.rtos, f.rtos),
            ("spurious_rtos", &e.spurious_rtos, f.spurious_rtos),
            ("fast_recoveries", &e.fast_recoveries, f.fast_recoveries),
            ("undos", &e.undos, f.undos),
            ("tlps", &e.tlps, f.tlps),
            ("ecn_reductions", &e.ecn_reductions, f.ecn_reductions),
            ("reord_seen", &e.reord_seen, Some(f.reord_seen)),
        ] {
            law(Some(sum(column)) == counted, || format!("{}: {counted:?} {name}, {} recorded", f.cca, sum(column)))?;
        }
        Ok(())
    }
}

/// A pipe's queues: what they were meant to do, and what they did.
struct PipeAccount {
    levels: Vec<Description>,
    queues: Vec<StageStats>,
}

impl PipeAccount {
    fn packets_in(&self) -> u64 {
        self.queues.first().map_or(0, |q| q.packets_in)
    }
    fn packets_out(&self) -> u64 {
        self.queues.iter().rfind(|q| q.depth == 0).map_or(0, |q| q.packets_out)
    }
}

/// The receivers got no more than the narrowest queue on the way of their data let through.
fn delivers_what_was_carried(received: u64, queues: &[StageStats]) -> Result<(), String> {
    let passed = queues.iter().filter(|q| q.depth == 0).map(|q| q.bytes_out).min();
    law(passed.map_or(true, |most| received <= most), || format!("{received} bytes received, {passed:?} carried"))
}

impl Pipes {
    /// What leaves a link enters the next one on its way, at once, unless the trial ended between them (`untaken`, by pipe).
    fn passes_on(&self, plan: &Plan, accounts: &[PipeAccount], untaken: &[u64]) -> Result<(), String> {
        let mut next: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); self.pipes.len()];
        let mut ends: BTreeSet<u32> = BTreeSet::new();
        let mut begins: BTreeSet<u32> = BTreeSet::new();
        let users = plan.connections().map(|f| (f.place, f.up));
        for (place, up) in users.chain(plan.probes.iter().map(|p| (p.place, p.up))).collect::<BTreeSet<_>>() {
            let (data, back) = self.way(place, up);
            for way in [data, back] {
                begins.extend(way.first());
                ends.extend(way.last());
                way.windows(2).for_each(|pair| _ = next[pair[0] as usize].insert(pair[1]));
            }
        }
        for (q, account) in (0..).zip(accounts) {
            let before: Vec<usize> = (0..next.len()).filter(|&p| next[p].contains(&q) && self.pipes[p].leaves_to.is_none()).collect();
            let alone = |p: &&usize| next[**p].len() == 1 && !ends.contains(&(**p as u32));
            let left: u64 = before.iter().filter(alone).map(|&p| accounts[p].packets_out() - untaken[p]).sum();
            let entered = account.packets_in();
            law(before.is_empty() || entered >= left, || format!("{left} packets came to pipe {q}, {entered} entered it"))?;
            let exact = !before.is_empty() && !begins.contains(&q) && before.iter().all(|p| alone(&p));
            law(!exact || entered == left, || format!("{left} packets came to pipe {q}, {entered} entered it"))?;
        }
        Ok(())
    }

    /// The shortest round trip between the hosts of a place, ms, with its queues' accounts; none where the path changes. Where the host's queue paces, TCP
    /// measures from the time at which a packet was to leave: what came before that is no part of the RTT, and a packet that passes that queue by has
    /// left before its time.
    fn least_ms(&self, place: usize, up: bool, accounts: &[PipeAccount]) -> Option<f64> {
        let (data, back) = self.way(place, up);
        let pipe = |k: u32| &self.pipes[k as usize];
        let paces = |k: u32| pipe(k).leaves_to.is_some() && pipe(k).spec.stages.iter().any(|stage| stage.qdisc.paces());
        let paced = data.first().is_some_and(|&k| paces(k));
        if paced && accounts[data[0] as usize].levels.iter().any(|level| level.reorder > 0.0) {
            return None;
        }
        let fixed = data.iter().chain(back).all(|&k| pipe(k).spec.schedule.is_empty());
        let passed = data[usize::from(paced)..].iter().chain(back).flat_map(|&k| &accounts[k as usize].levels);
        fixed.then(|| passed.map(least_delay_ns).sum::<u64>() as f64 / 1e6)
    }
}

/// The counts of one flow fit each other, and its times what its plan says.
fn is_plausible(f: &FlowSummary, from: Time, until: Time) -> Result<(), String> {
    law(f.bytes_received <= f.bytes_sent, || format!("{}: {} bytes sent, {} received", f.cca, f.bytes_sent, f.bytes_received))?;
    let half = f.bytes_received_first_half;
    law(half <= f.bytes_received, || format!("{}: {} bytes received, {half} by half of the time", f.cca, f.bytes_received))?;
    let ns = |s: f64| (s * 1e9).round();
    law(
        f.established == f.start_s.is_finite() && (!f.established || ns(f.start_s) >= from.0 as f64) && ns(f.stop_s) <= until.0 as f64,
        || format!("{}: it sent from {} to {} s, and was to do so from {from:?} to {until:?}", f.cca, f.start_s, f.stop_s),
    )?;
    // How much it is, the packets at the sender show (`tests/it/accounts.rs`).
    let has_time = f.established && ns(f.stop_s) > ns(f.start_s);
    law(f.goodput_mbps.is_finite() && (f.goodput_mbps > 0.0) == (has_time && f.bytes_received > 0), || {
        format!("{}: {} Mbit/s of {} bytes from {} to {} s", f.cca, f.goodput_mbps, f.bytes_received, f.start_s, f.stop_s)
    })?;
    law(f.retransmits <= f.data_segs_out, || format!("{}: {} of {} segments sent again", f.cca, f.retransmits, f.data_segs_out))?;
    in_order(&f.rtt_ms).map_err(|problem| format!("{}: {problem}", f.cca))?;
    if let Some(responses) = &f.responses {
        in_order(&responses.time_ms).map_err(|problem| format!("{}: {problem}", f.cca))?;
    }
    let l = f.limited_by.unwrap_or_default();
    let shares = [l.app, l.rwnd, l.cwnd, l.pacing.unwrap_or(0.0), l.sndbuf, l.tsq.unwrap_or(0.0)];
    let fit = shares.iter().all(|s| (0.0..=1.0 + 1e-9).contains(s)) && shares.iter().sum::<f64>() <= 1.0 + 1e-9;
    law(fit, || format!("{}: shares of the time do not add up: {l:?}", f.cca))
}

/// A probe got no more than it sent, which is what its plan says, and its delays are in order.
fn is_plausible_probe(p: &ProbeSummary, plan: &ProbePlan, duration_ns: u64) -> Result<(), String> {
    law(p.received <= p.sent && p.reordered <= p.received, || format!("{:?}: {p:?}", plan.kind))?;
    let is_judged = p.lost <= p.due && p.due <= p.sent && p.due - p.lost <= p.received;
    law(is_judged && p.lost <= p.sent - p.received, || format!("{:?}: {p:?}", plan.kind))?;
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
