//! The proof of the path: what a trial's path was asked to do and what it did, by the kernel's own counters.
//!
//! What it is: delay, loss and rate of each stage and of the whole path, next to what the scenario says, and a caveat where
//! they differ by more than chance allows or where packets vanished that nobody wanted lost. What it does not see: the
//! distribution of jitter, the loss of super-packets at the sender's own egress, and anything while the path changes (the proof is left out for paths with a schedule).

use serde::Serialize;
use std::collections::BTreeMap;
use tcpscape_path::{Description, Host, StageSpec};
use tcpscape_plan::results::{FlowSummary, KernelQueue, QueueReport};
use tcpscape_plan::{judge, FlowPlan, Plan, StageName, Topology};

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
    /// The stage.
    #[serde(flatten)]
    pub stage: StageName,
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
    flows: &[FlowSummary],
    counters: &BTreeMap<String, u64>,
    caveats: &mut Vec<String>,
) -> Option<Proof> {
    let topology = Topology::of(plan);
    if topology.ways().any(|way| !way.path.schedule.is_empty()) {
        return None;
    }
    let mut proof = Proof { rtt_ms: if topology.is_plain() { rtt(plan, flows, caveats) } else { None }, ..Proof::default() };
    for (i, (flow_plan, flow)) in plan.flows.iter().zip(flows).enumerate().filter(|_| !topology.is_plain()) {
        too_short(&topology, i, flow_plan, flow, caveats);
    }
    for q in queues.iter().filter_map(QueueReport::kernel) {
        if let Some(stage) = topology.way(topology.number_of(&q.stage)).path.stages.get(q.stage.stage) {
            let levels = stage.qdisc.describe();
            let elsewhere = if topology.is_plain() { 0.0 } else { late(&topology, stage, &levels[0]) };
            proof.stages.push(stage_proof(&levels, q, plan.duration_ns, elsewhere, caveats));
        }
    }
    let count = |name: &str| counters.get(&format!("receiver.{name}")).copied().unwrap_or(0) as f64;
    proof.out_of_order = count("TcpExt.TCPOFOQueue") / count("Tcp.InSegs").max(1.0);
    Some(proof)
}

/// Bytes that may still come to a stage of a network after the end: what all other stages hold, and what their delays hold at its rate.
fn late(topology: &Topology<'_>, stage: &StageSpec, asked: &Description) -> f64 {
    let per_ns = judge::asked_rate(asked).unwrap_or(0.0) / 8e3;
    let others = topology.ways().flat_map(|way| &way.path.stages).filter(|other| !std::ptr::eq(*other, stage));
    others.flat_map(|other| other.qdisc.describe()).map(|q| q.stored_bytes.unwrap_or(0) as f64 + q.delay_ns as f64 * per_ns).sum()
}

/// A stage of a trial of this length; so many bytes may pass after its end from `elsewhere`.
fn stage_proof(levels: &[Description], q: &KernelQueue, duration_ns: u64, elsewhere: f64, caveats: &mut Vec<String>) -> StageProof {
    let asked = &levels[0];
    let came = q.sent_packets + q.dropped + q.backlog_packets;
    let wanted = judge::asked_loss(asked);
    // At the sender's egress whole super-packets are judged, and the kernel counts what passed in segments; nothing else may drop.
    let is_alone = levels.len() == 1 && asked.rate_bps.is_none();
    let lost = match wanted.filter(|_| is_alone) {
        None => None,
        Some(0.0) => judge::full(levels, q.dropped, came, None),
        Some(p) => judge::loss(p, q.dropped, came).filter(|_| q.at != Host::Sender),
    };
    let rate = q.sent_bytes as f64 * 8e3 / duration_ns as f64;
    let problems = lost.into_iter().chain(judge::rate(asked, rate, elsewhere, duration_ns));
    caveats.extend(problems.map(|problem| format!("{}: {problem}", q.stage)));
    StageProof {
        stage: q.stage,
        loss: Pair { asked: wanted, achieved: if came > 0 { q.dropped as f64 / came as f64 } else { 0.0 } },
        rate_mbps: Pair { asked: judge::asked_rate(asked), achieved: rate },
    }
}

/// Reports a flow of a plan with places whose smallest RTT is below what its links take. That it is above tells nothing: the queues of the others may
/// never have been empty.
fn too_short(topology: &Topology<'_>, number: usize, plan: &FlowPlan, flow: &FlowSummary, caveats: &mut Vec<String>) {
    let passed = topology.route(plan.place, plan.up).concat();
    let Some(asked) = passed.into_iter().map(|number| topology.way(number).path.fixed_delay_ns()).sum::<Option<u64>>() else { return };
    let asked = asked as f64 / 1e6;
    if let Some(achieved) = flow.min_rtt_ms.filter(|achieved| achieved + RTT_SLACK_MS < asked) {
        caveats.push(format!("flow {number}: its smallest RTT was {achieved:.3} ms where the delays of its links add up to {asked:.3} ms"));
    }
}

/// Propagation RTT against the smallest RTT of the first flow, where no jitter blurs both. Where transfers load the path too, no flow need see it idle.
pub fn rtt(plan: &Plan, flows: &[FlowSummary], caveats: &mut Vec<String>) -> Option<Pair> {
    let paths = plan.paths();
    let asked = paths.iter().map(|path| path.fixed_delay_ns()).sum::<Option<u64>>()? as f64 / 1e6;
    let achieved = flows.iter().filter_map(|f| f.min_rtt_ms).reduce(f64::min)?;
    let rates = paths.iter().flat_map(|path| path.describe()).filter_map(|queue| judge::asked_rate(&queue));
    let serial: f64 = rates.map(|r| 16.0 / r.max(0.001)).sum();
    let is_above = plan.transfers.is_empty() && achieved > asked + serial + RTT_SLACK_MS;
    if achieved + RTT_SLACK_MS < asked || is_above {
        caveats.push(format!("the path's smallest RTT was {achieved:.3} ms where its delays add up to {asked:.3} ms"));
    }
    Some(Pair { asked: Some(asked), achieved })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_path::Direction;
    use tcpscape_plan::LinkId;

    fn plan(stage: &str) -> Plan {
        let text = format!(
            r#"{{"duration_ns": 10000000000, "forward": {{"stages": [{{"qdisc": {stage}, "at": "router"}}]}}, "flows": [{{"cca": "reno"}}]}}"#
        );
        serde_json::from_str(&text).expect("a plan")
    }

    fn queue(kind: &'static str, sent: u64, dropped: u64) -> KernelQueue {
        let sent_bytes = sent * 1514;
        let (at, children) = (Host::Router, Vec::new());
        let (overlimits, requeues, backlog_packets, backlog_bytes) = (0, 0, 0, 0);
        KernelQueue {
            stage: StageName { link: None, direction: Direction::Forward, stage: 0, kind },
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

    fn caveats(stage: &str, q: KernelQueue, min_rtt_ms: f64) -> Vec<String> {
        let mut found = Vec::new();
        let flows = [FlowSummary { min_rtt_ms: Some(min_rtt_ms), ..FlowSummary::default() }];
        prove(&plan(stage), &[QueueReport::Kernel(q)], &flows, &BTreeMap::new(), &mut found).expect("a proof");
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
        chain.links = vec![tcpscape_plan::LinkPlan { forward: plan(TBF).forward, ..Default::default() }];
        chain.places = vec![tcpscape_plan::PlacePlan { leave: 2, ..Default::default() }];
        let said = |sent| {
            let mut q = queue("tbf", sent, 0);
            q.stage.link = Some(LinkId::Chain(1));
            let mut found = Vec::new();
            prove(&chain, &[QueueReport::Kernel(q)], &[], &BTreeMap::new(), &mut found);
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
