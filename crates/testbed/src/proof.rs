//! The proof of the path: what a trial's path was asked to do and what it did, by the kernel's own counters.
//!
//! What it is: delay, loss and rate of each stage and of the whole path, next to what the scenario says, and a caveat where
//! they differ by more than chance allows or where packets vanished that nobody wanted lost. What it does not see: the
//! distribution of jitter, the loss of super-packets at the sender's own egress, and anything while the path changes (the proof is left out for paths with a schedule).

use crate::network::layout::{ways, Way};
use crate::network::QueueReport;
use crate::report::flow::FlowReport;
use serde::Serialize;
use std::collections::BTreeMap;
use tcpscape_path::{Loss, PathSpec, QdiscSpec};
use tcpscape_sim::Plan;

/// Standard deviations that a share may be off before it is reported.
const CHANCE: f64 = 5.0;
/// Relative excess of a rate that is put down to rounding.
const RATE_SLACK: f64 = 0.002;
/// RTT above the path's own that hosts and links may add, and below it that timestamps of 1 ms may miss, ms.
const RTT_SLACK_MS: f64 = 1.0;

/// Asked and achieved.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// What the scenario says; null where it says nothing that one number could tell.
    pub asked: Option<f64>,
    /// What was measured.
    pub achieved: f64,
}

/// One stage.
#[derive(Clone, Debug, Serialize)]
pub struct StageProof {
    /// The link that it is part of; left out in a plain plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// `forward` or `reverse`.
    pub r#where: &'static str,
    /// Number of the stage in its direction.
    pub stage: usize,
    /// tc's name of its queue.
    pub kind: &'static str,
    /// Share of the packets that were dropped.
    pub loss: Pair,
    /// Mean rate over the trial, Mbit/s.
    pub rate_mbps: Pair,
}

/// The whole path.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Proof {
    /// Propagation RTT and the smallest one measured by a flow that began on an idle path, ms.
    pub rtt_ms: Option<Pair>,
    /// Stages.
    pub stages: Vec<StageProof>,
    /// Share of the receiver's segments that came out of order (behind a loss, or reordered).
    pub out_of_order: f64,
}

/// Compares a finished trial with its plan; caveats go to `caveats`.
pub fn prove(
    plan: &Plan,
    queues: &[QueueReport],
    flows: &[FlowReport],
    counters: &BTreeMap<String, u64>,
    caveats: &mut Vec<String>,
) -> Option<Proof> {
    let ways = ways(plan);
    if ways.iter().any(|(_, _, path)| !path.schedule.is_empty()) {
        return None;
    }
    let mut proof = Proof { rtt_ms: if plan.places.is_empty() { rtt(plan, flows, caveats) } else { None }, ..Proof::default() };
    for (i, flow) in flows.iter().enumerate() {
        too_short(plan, i, flow, caveats);
    }
    for q in queues {
        let path = ways.iter().find(|(link, direction, _)| (link, direction.name()) == (&q.link, q.r#where));
        if let Some(stage) = path.and_then(|(_, _, path)| path.stages.get(q.stage)) {
            let elsewhere = if plan.places.is_empty() { 0.0 } else { late(&ways, &stage.qdisc) };
            proof.stages.push(stage_proof(&stage.qdisc, q, (plan.duration_ns, elsewhere), caveats));
        }
    }
    let count = |name: &str| counters.get(&format!("receiver.{name}")).copied().unwrap_or(0) as f64;
    proof.out_of_order = count("TcpExt.TCPOFOQueue") / count("Tcp.InSegs").max(1.0);
    Some(proof)
}

/// Bytes that may still come to a queue of a network after the end: what all other queues hold, and what their delays hold at its rate.
fn late(ways: &[Way<'_>], spec: &QdiscSpec) -> f64 {
    let per_ns = asked_rate(spec).unwrap_or(0.0) / 8e3;
    let others = ways.iter().flat_map(|(_, _, path)| &path.stages).map(|stage| &stage.qdisc).filter(|other| !std::ptr::eq(*other, spec));
    let delayed = |q: &QdiscSpec| if let QdiscSpec::Netem(n) = q { n.delay.0 as f64 * per_ns } else { 0.0 };
    others.map(|other| stored(other) + other.levels().map(delayed).sum::<f64>()).sum()
}

/// `time`: the trial's length, ns, and the bytes that may pass after its end from elsewhere.
fn stage_proof(spec: &QdiscSpec, q: &QueueReport, time: (u64, f64), caveats: &mut Vec<String>) -> StageProof {
    let (duration_ns, elsewhere) = time;
    let (wanted, random) = asked_loss(spec);
    let came = (q.sent_packets + q.dropped + q.backlog_packets) as f64;
    let link = q.link.as_ref().map(|link| format!("{link} ")).unwrap_or_default();
    let place = format!("{link}{} stage {} ({})", q.r#where, q.stage, q.kind);
    // at the sender's egress whole super-packets are judged, and the kernel counts what passed in segments
    let single = q.at != "sender";
    if let Some(p) = wanted.filter(|&p| random && (single || p == 0.0)) {
        let (expected, spread) = (came * p, (came * p * (1.0 - p)).sqrt());
        let off = q.dropped as f64 - expected;
        if p == 0.0 && q.dropped > 0 {
            caveats.push(format!(
                "{place}: dropped {} of {came:.0} packets because its limit was full; nobody asked for loss there",
                q.dropped
            ));
        } else if off.abs() > CHANCE * spread + 1.0 {
            caveats.push(format!(
                "{place}: lost {:.3} % of {came:.0} packets where {:.3} % was asked",
                100.0 * q.dropped as f64 / came,
                100.0 * p
            ));
        }
    }
    let rate = q.sent_bytes as f64 * 8e3 / duration_ns as f64;
    let asked = asked_rate(spec);
    if let Some(r) = asked.filter(|r| rate > r * (1.0 + RATE_SLACK) + (stored(spec) + elsewhere) * 8e3 / duration_ns as f64) {
        caveats.push(format!("{place}: passed {rate:.3} Mbit/s where {r:.3} was asked"));
    }
    StageProof {
        link: q.link.clone(),
        r#where: q.r#where,
        stage: q.stage,
        kind: q.kind,
        loss: Pair { asked: wanted, achieved: if came > 0.0 { q.dropped as f64 / came } else { 0.0 } },
        rate_mbps: Pair { asked, achieved: rate },
    }
}

/// The loss that a queue is asked for, where one number tells it, and whether each packet is judged by itself and nothing else drops.
fn asked_loss(spec: &QdiscSpec) -> (Option<f64>, bool) {
    match spec {
        QdiscSpec::Netem(n) => match n.loss {
            Loss::Random { p, correlation } => {
                (Some(p.percent() / 100.0), correlation.percent() == 0.0 && n.child.is_none() && n.rate.is_none())
            }
            Loss::State { .. } | Loss::Gemodel { .. } => (None, false),
        },
        _ => (None, false),
    }
}

/// Rate of a queue, Mbit/s.
pub fn asked_rate(spec: &QdiscSpec) -> Option<f64> {
    let rate = match spec {
        QdiscSpec::Tbf(t) => Some(t.rate),
        QdiscSpec::Htb(h) => Some(h.ceil.unwrap_or(h.rate)),
        QdiscSpec::Cake(c) => c.bandwidth,
        _ => None,
    };
    rate.map(|r| r.bytes_per_sec() as f64 * 8e-6)
}

/// Bytes that may pass beyond the rate: a full bucket at the begin, a full queue that drains after the end.
pub fn stored(spec: &QdiscSpec) -> f64 {
    match spec {
        QdiscSpec::Tbf(t) => (t.burst + t.limit) as f64,
        QdiscSpec::Htb(h) => h.burst.max(h.cburst).unwrap_or(1 << 20) as f64 + 1000.0 * 1514.0,
        QdiscSpec::Cake(_) => 4e6, // its memory, which may drain after the end
        _ => 0.0,
    }
}

/// Reports a flow of a plan with places whose smallest RTT is below what its links take. That it is above tells nothing: the queues of the others may
/// never have been empty.
fn too_short(plan: &Plan, number: usize, flow: &FlowReport, caveats: &mut Vec<String>) {
    let Some(place) = plan.flows.get(number).and_then(|f| plan.places.get(f.place)) else { return };
    let links = [&place.near, &place.far].into_iter().chain(plan.links.iter().take(place.leave - 1).skip(place.enter.max(1) - 1));
    let own = (place.enter == 0).then_some([&plan.forward, &plan.reverse]).into_iter().flatten();
    let Some(asked) = links.flat_map(|link| [&link.forward, &link.reverse]).chain(own).map(delay).sum::<Option<u64>>() else { return };
    let asked = asked as f64 / 1e6;
    if let Some(achieved) = flow.min_rtt_ms.filter(|achieved| achieved + RTT_SLACK_MS < asked) {
        caveats.push(format!("flow {number}: its smallest RTT was {achieved:.3} ms where the delays of its links add up to {asked:.3} ms"));
    }
}

/// Propagation RTT against the smallest RTT of the first flow, where no jitter blurs both. Where transfers load the path too, no flow need see it idle.
pub fn rtt(plan: &Plan, flows: &[FlowReport], caveats: &mut Vec<String>) -> Option<Pair> {
    let asked = (delay(&plan.forward)? + delay(&plan.reverse)?) as f64 / 1e6;
    let achieved = flows.iter().filter_map(|f| f.min_rtt_ms).reduce(f64::min)?;
    let serial: f64 = [&plan.forward, &plan.reverse]
        .iter()
        .flat_map(|p| &p.stages)
        .filter_map(|s| asked_rate(&s.qdisc))
        .map(|r| 16.0 / r.max(0.001))
        .sum();
    let is_above = plan.transfers.is_empty() && achieved > asked + serial + RTT_SLACK_MS;
    if achieved + RTT_SLACK_MS < asked || is_above {
        caveats.push(format!("the path's smallest RTT was {achieved:.3} ms where its delays add up to {asked:.3} ms"));
    }
    Some(Pair { asked: Some(asked), achieved })
}

/// Sum of the delays of a direction, ns; None where jitter, overtaking or slots make it uncertain.
fn delay(path: &PathSpec) -> Option<u64> {
    let mut total = 0;
    for stage in &path.stages {
        let mut queue = Some(&stage.qdisc);
        while let Some(q) = queue {
            if let QdiscSpec::Netem(n) = q {
                if n.jitter.0 > 0 || n.reorder.percent() > 0.0 || n.slot.is_some() || n.rate.is_some() {
                    return None;
                }
                total += n.delay.0;
            }
            queue = q.child();
        }
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(stage: &str) -> Plan {
        let text = format!(
            r#"{{"duration_ns": 10000000000, "forward": {{"stages": [{{"qdisc": {stage}, "at": "router"}}]}}, "flows": [{{"cca": "reno"}}]}}"#
        );
        serde_json::from_str(&text).expect("a plan")
    }

    fn queue(kind: &'static str, sent: u64, dropped: u64) -> QueueReport {
        let sent_bytes = sent * 1514;
        let (at, children) = ("router", Vec::new());
        let (overlimits, requeues, backlog_packets, backlog_bytes) = (0, 0, 0, 0);
        QueueReport {
            link: None,
            r#where: "forward",
            stage: 0,
            kind,
            at,
            sent_packets: sent,
            sent_bytes,
            dropped,
            marked: 0,
            overlimits,
            requeues,
            backlog_packets,
            backlog_bytes,
            children,
        }
    }

    fn caveats(stage: &str, q: QueueReport, min_rtt_ms: f64) -> Vec<String> {
        let mut found = Vec::new();
        let flows = [FlowReport { min_rtt_ms: Some(min_rtt_ms), ..FlowReport::default() }];
        prove(&plan(stage), &[q], &flows, &BTreeMap::new(), &mut found).expect("a proof");
        found
    }

    /// 1 % in netem's scale.
    const LOSSY: &str = r#"{"kind": "netem", "delay": 20000000, "loss": {"model": "random", "p": 42949673}}"#;
    const PLAIN: &str = r#"{"kind": "netem", "delay": 20000000}"#;
    const TBF: &str = r#"{"kind": "tbf", "rate": 10000000, "burst": 6056, "limit": 60000}"#;

    #[test]
    fn what_chance_allows_passes() {
        assert_eq!(caveats(LOSSY, queue("netem", 9_900, 100), 20.0), [""; 0]);
        assert_eq!(caveats(LOSSY, queue("netem", 9_870, 130), 20.0), [""; 0]); // three standard deviations
        assert_eq!(caveats(PLAIN, queue("netem", 9_900, 0), 20.9), [""; 0]);
        assert_eq!(caveats(TBF, queue("tbf", 8_200, 40), 0.5), [""; 0]); // 9.93 Mbit/s
    }

    #[test]
    fn loss_delay_and_rate_that_nobody_asked_for_are_named() {
        let said = |stage, q, rtt| caveats(stage, q, rtt).pop().expect("a caveat");
        assert!(said(LOSSY, queue("netem", 9_800, 200), 20.0).contains("lost 2.000 % of 10000 packets where 1.000 % was asked"));
        assert!(said(PLAIN, queue("netem", 9_800, 3), 20.0).contains("dropped 3 of 9803 packets because its limit was full"));
        assert!(said(PLAIN, queue("netem", 9_800, 0), 23.0).contains("smallest RTT was 23.000 ms where its delays add up to 20.000 ms"));
        assert!(said(TBF, queue("tbf", 9_000, 0), 0.5).contains("where 10.000 was asked"));
    }

    /// Behind a queue of 10 Mbit/s that holds 60 kB, 0.06 MB more than 12.5 MB may pass in 10 s; 0.3 MB more are named.
    #[test]
    fn what_waits_in_another_link_may_pass_after_the_end() {
        let mut chain = plan(TBF);
        chain.links = vec![tcpscape_sim::LinkPlan { forward: plan(TBF).forward, ..Default::default() }];
        chain.places = vec![tcpscape_sim::PlacePlan { leave: 2, ..Default::default() }];
        let said = |sent| {
            let q = QueueReport { link: Some("chain/1".into()), ..queue("tbf", sent, 0) };
            let mut found = Vec::new();
            prove(&chain, &[q], &[], &BTreeMap::new(), &mut found);
            found
        };
        assert_eq!(said(8_340), [""; 0]);
        assert_eq!(said(8_450).len(), 1);
    }

    #[test]
    fn a_path_that_changes_is_not_judged() {
        let mut changing = plan(PLAIN);
        let step = r#"[{"stage": 0, "change": {"kind": "set", "at": 5000000000, "set": {"delay": 40000000}}}]"#;
        changing.forward.schedule = serde_json::from_str(step).expect("a schedule");
        assert!(prove(&changing, &[], &[], &BTreeMap::new(), &mut Vec::new()).is_none());
    }
}
