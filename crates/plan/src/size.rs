//! What a trial of a plan would take at most, before anything is built: packets carried, packets held, rows recorded, changes of the path.
//!
//! The bounds are of what the path, the windows and the sending host's CPU admit; losses, queues and congestion control make a trial smaller.

use crate::plan::{refuse, App, FlowPlan, Plan, PlanError};
use crate::topology::Topology;
use std::collections::BTreeMap;
use tcpscape_base::{Kernel, Time};
use tcpscape_path::{Description, PathSpec};

/// Memory of a row of flow samples, of queue samples, of a recorded packet, and of a packet held (in a queue, and in its sender's memory), bytes; of
/// rows with the copy that the caller gets: 10 million rows of flows were measured to take 1.78 GB.
const FLOW_ROW: u64 = 180;
const QUEUE_ROW: u64 = 95;
const PACKET_ROW: u64 = 200;
const HELD_PACKET: u64 = 300;
/// Most memory of the samples that a plan asks for, and of the packets that it may hold or record at most, bytes.
const SAMPLES_MAX: u64 = 512 << 20;
const PACKETS_MAX: u64 = 4 << 30;
/// Most changes of a path in one trial.
const STEPS_MAX: u64 = 10_000_000;
/// Segments of a connection's first flight (RFC 6928); they double at most each round trip.
const FIRST_FLIGHT: f64 = 10.0;
/// A receive buffer is at least so large (`SOCK_MIN_RCVBUF`), bytes.
const LEAST_BUFFER: u64 = 2_304;

/// Refuses a plan whose trials would take too much; the queues of its paths are valid.
pub(crate) fn check(plan: &Plan, kernel: &Kernel) -> Result<(), PlanError> {
    check_changes(plan)?;
    check_samples(plan)?;
    let held = packets_held(plan, kernel).saturating_mul(HELD_PACKET);
    if held > PACKETS_MAX {
        return refuse(
            "path",
            format!(
                "and windows may hold packets of {}; {}",
                memory(held, PACKETS_MAX),
                "lower the queues' limits, the buffers or the flows"
            ),
        );
    }
    // Each packet of data has at most one ACK.
    let recorded = if plan.trace_packets { plan.most_packets(kernel).saturating_mul(2 * PACKET_ROW) } else { 0 };
    if recorded > PACKETS_MAX {
        return refuse("packets", format!("to record may take {}; take a shorter trial or a lower rate", memory(recorded, PACKETS_MAX)));
    }
    Ok(())
}

/// Changes that come too late, or too many of them.
fn check_changes(plan: &Plan) -> Result<(), PlanError> {
    let end = Time(plan.duration_ns);
    for way in Topology::of(plan).ways() {
        for change in &way.path.schedule {
            let field = || format!("{}: {}", way.field(), change.label());
            if change.begins() >= end {
                return refuse(
                    field(),
                    format!("comes after the end of the trial at {} s; change earlier or take a longer duration", end.secs_f64()),
                );
            }
            let steps = change.steps(end);
            if steps > STEPS_MAX {
                return refuse(field(), format!("makes {steps} changes; at most {STEPS_MAX}: take longer steps or periods"));
            }
        }
    }
    Ok(())
}

/// Samples that would not fit into memory.
fn check_samples(plan: &Plan) -> Result<(), PlanError> {
    let queues = Topology::of(plan).ways().map(|way| way.path.describe().count() as u64).sum::<u64>();
    let flows = plan.flows.len() as u64;
    for (field, interval, rows, row) in [
        ("sample_interval", plan.sample_interval_ns, flows, FLOW_ROW),
        ("queue_sample_interval", plan.queue_sample_interval_ns, queues, QUEUE_ROW),
    ] {
        // Rows of one time, or those of one flow where nothing is sampled: the times alone cost events.
        let each = rows.max(1) * row;
        let bytes = (plan.duration_ns.checked_div(interval).unwrap_or(0)).saturating_mul(each);
        if bytes > SAMPLES_MAX {
            let least_us = (u128::from(plan.duration_ns) * u128::from(each)).div_ceil(u128::from(SAMPLES_MAX) * 1_000);
            let fix = format!("take an interval of at least {least_us} us, or a shorter trial");
            return refuse(field, format!("gives samples of {}; {fix}", memory(bytes, SAMPLES_MAX)));
        }
    }
    Ok(())
}

/// Memory in words, with what is allowed.
fn memory(bytes: u64, most: u64) -> String {
    format!("{:.1} GiB of memory, more than {:.1}", bytes as f64 / f64::from(1 << 30), most as f64 / f64::from(1 << 30))
}

impl Plan {
    /// Most packets of data that a trial carries: what the path's rate, the applications and the windows admit in its time; about, since jitter may make
    /// round trips shorter than they count here.
    pub fn most_packets(&self, kernel: &Kernel) -> u64 {
        let seconds = self.duration_ns as f64 / 1e9;
        let carried: f64 = narrowest(self, kernel).values().map(|link| link.rate.min(link.windows + link.transfers / seconds)).sum();
        let bytes = carried.min(application(self)) * seconds;
        (bytes / f64::from(self.mtu)).ceil() as u64
    }
}

/// Most packets of data on their way and in queues at a time.
fn packets_held(plan: &Plan, kernel: &Kernel) -> u64 {
    let topology = Topology::of(plan);
    let transfers = plan.transfers.iter().map(|t| t.expected_bytes(plan.duration_ns)).sum::<f64>() / f64::from(plan.mtu);
    let shortest_s = groups(plan).into_keys().map(|(place, up)| rtt_s(&topology, place, up)).fold(f64::INFINITY, f64::min);
    let rounds = plan.duration_ns as f64 / 1e9 / shortest_s;
    let grown = plan.flows.len() as f64 * FIRST_FLIGHT * rounds.min(64.0).exp2() + transfers;
    let windows = plan.flows.iter().map(|f| window(f, kernel)).sum::<f64>() / f64::from(plan.mtu) + transfers;
    // A queue holds what its limit admits, and what comes while a packet waits its delay.
    let steady: f64 = narrowest(plan, kernel).values().map(|link| if link.changes { f64::INFINITY } else { link.rate }).sum();
    let speed = application(plan).min(steady);
    let waits = |q: &Description| {
        let delayed = (q.delay_ns + 4 * q.jitter_ns) as f64 / 1e9 * application(plan) / f64::from(plan.mtu);
        let backlog = if q.rate_bps.is_some() || !speed.is_finite() { f64::INFINITY } else { delayed };
        let limit = [q.limit_packets, q.limit_bytes.map(|b| b / 54)].into_iter().flatten().min().map_or(f64::INFINITY, |l| l as f64);
        limit.min(backlog)
    };
    let stages: f64 = topology.ways().flat_map(|way| way.path.describe()).map(|q| waits(&q)).sum();
    windows.min(grown).min(stages) as u64
}

/// The lowest rate on the way of the data, bytes a second; none is infinite. A path that changes has the highest rate of its changes at least.
fn line(path: &PathSpec) -> f64 {
    let rates = path.describe().filter_map(|q| q.rate_bps);
    let changed = path.schedule.iter().filter_map(|change| Some(change.change.highest_rate()?.0)).max().unwrap_or(0);
    rates.min().map_or(f64::INFINITY, |rate| rate.max(changed) as f64 / 8.0)
}

/// What the applications write at most, bytes a second: they share a CPU, and paced ones have a rate.
fn application(plan: &Plan) -> f64 {
    let cpu_s = plan.write_cost_ns as f64 / 1e9;
    let of = |app: &App| match app {
        App::Paced { rate, .. } => *rate,
        App::OnOff { rate, .. } if *rate > 0.0 => *rate,
        App::Bulk { chunk } | App::Finite { chunk, .. } | App::Respond { chunk, .. } | App::OnOff { chunk, .. } => *chunk as f64 / cpu_s,
    };
    let apps = || plan.connections().map(|f| &f.app);
    let fastest = apps().map(of).filter(|r| r.is_finite()).fold(0.0, f64::max);
    let sum: f64 = apps().map(of).sum();
    let all_paced = apps().all(|app| matches!(app, App::Paced { .. }) || matches!(app, App::OnOff { rate, .. } if *rate > 0.0));
    match (all_paced, cpu_s > 0.0) {
        (true, _) => sum,
        (false, true) => fastest.min(sum),
        (false, false) => f64::INFINITY,
    }
}

/// What travels between the hosts of a place, one way.
#[derive(Default)]
struct Group<'a> {
    flows: Vec<&'a FlowPlan>,
    /// What transfers have to send, bytes.
    transfers: f64,
}

/// The flows and transfers of each place and way.
fn groups(plan: &Plan) -> BTreeMap<(usize, bool), Group<'_>> {
    let mut groups: BTreeMap<_, Group<'_>> = BTreeMap::new();
    plan.flows.iter().for_each(|f| groups.entry((f.place, f.up)).or_default().flows.push(f));
    for t in &plan.transfers {
        groups.entry((t.flow.place, t.flow.up)).or_default().transfers += t.expected_bytes(plan.duration_ns);
    }
    groups
}

/// A direction of a link that is the narrowest on the way of some flows' data.
struct Narrow {
    /// Its rate, bytes a second; infinite where no queue on the way has one.
    rate: f64,
    /// What the windows of these flows admit, bytes a second.
    windows: f64,
    /// What transfers have to send, bytes.
    transfers: f64,
    /// Whether something on the way of the data changes.
    changes: bool,
}

/// The narrowest links of all flows, by their numbers in the topology: together, flows with the same one carry no more than its rate.
fn narrowest(plan: &Plan, kernel: &Kernel) -> BTreeMap<usize, Narrow> {
    let topology = Topology::of(plan);
    let mut links: BTreeMap<usize, Narrow> = BTreeMap::new();
    for ((place, up), group) in groups(plan) {
        let [data, _] = topology.route(place, up);
        let lines = data.iter().map(|&i| (i, line(topology.way(i).path)));
        let (link, rate) = lines.fold((data[0], f64::INFINITY), |least, line| if line.1 < least.1 { line } else { least });
        let entry = links.entry(link).or_insert(Narrow { rate, windows: 0.0, transfers: 0.0, changes: false });
        entry.transfers += group.transfers;
        entry.windows += group.flows.iter().map(|f| window(f, kernel)).sum::<f64>() / rtt_s(&topology, place, up);
        entry.changes |= data.iter().any(|&i| !topology.way(i).path.schedule.is_empty());
    }
    links
}

/// The largest window of a flow, bytes.
fn window(flow: &FlowPlan, kernel: &Kernel) -> f64 {
    let bytes = match flow.rcvbuf {
        0 => u64::from(kernel.tcp_rmem_max.max(kernel.tcp_rmem_default)),
        n => (2 * u64::from(n.min(kernel.rmem_max))).max(LEAST_BUFFER),
    };
    bytes as f64
}

/// The time of a round trip between the hosts of a place without queues and jitter, s; at least a microsecond, and not known where the path changes.
fn rtt_s(topology: &Topology<'_>, place: usize, up: bool) -> f64 {
    let passed: Vec<&PathSpec> = topology.route(place, up).concat().into_iter().map(|number| topology.way(number).path).collect();
    let ns: u64 = passed.iter().map(|p| p.delay_ns()).sum();
    if passed.iter().all(|p| p.schedule.is_empty()) {
        (ns as f64 / 1e9).max(1e-6)
    } else {
        1e-6
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_path::{parse_tc, StageSpec};

    fn plan(fields: &str, forward: &[&str]) -> Plan {
        let mut plan = Plan::from_json(&format!(r#"{{"duration_ns": 10000000000, "flows": [{{"cca": "cubic"}}] {fields}}}"#)).unwrap();
        plan.forward = PathSpec::of(forward.iter().map(|w| parse_tc(w).unwrap()));
        plan
    }

    fn refused(plan: &Plan, kernel: &Kernel) -> String {
        check(plan, kernel).err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_line_the_cpu_or_the_window_bounds_what_is_carried() {
        let k = Kernel::V6_1;
        // 10 s at 12 Mbit/s are 10,000 packets of 1500 bytes; at 8192 bytes in 256 ns, 32 GB/s, 213 million.
        assert_eq!(plan("", &["tbf rate 12mbit burst 6056 limit 30000"]).most_packets(&k), 10_000);
        assert_eq!(plan("", &[]).most_packets(&k), 213_333_334);
        // A rate that falls carries no more than before, one that doubles no more than twice as much.
        for (rate, most) in [(6_000_000, 10_000), (24_000_000, 20_000)] {
            let mut changing = plan("", &["tbf rate 12mbit burst 6056 limit 30000"]);
            let change = format!(r#"{{"stage": 0, "change": {{"kind": "set", "at": 5000000000, "set": {{"rate": {rate}}}}}}}"#);
            changing.forward.schedule = vec![serde_json::from_str(&change).unwrap()];
            assert_eq!(changing.most_packets(&k), most);
        }
        // A window of 6 MiB each 100 ms is 63 MB/s.
        assert_eq!(plan("", &["netem delay 100ms"]).most_packets(&k), 419_431);
    }

    /// Transfers of 1 MB, 1,000 a second, for 10 s at 1.2 Gbit/s: the link carries a million packets. Two writers of 1.5 MB/s while they are on: 20,000.
    #[test]
    fn what_transfers_and_writers_with_pauses_bring_counts() {
        let k = Kernel::V6_1;
        let entry = r#"{"flow": {"cca": "cubic"}, "per_second": 1000, "least": 1000000, "most": 1000000, "shape": 1.2}"#;
        let mut transfers = plan(&format!(r#", "transfers": [{entry}]"#), &["tbf rate 1200mbit burst 6056 limit 30000"]);
        transfers.flows.clear();
        assert_eq!(transfers.most_packets(&k), 1_000_000);
        let mut turns = plan("", &[]);
        turns.flows[0].app = App::OnOff { chunk: 1_500, on_ns: 1, off_ns: 1, rate: 1.5e6 };
        turns.flows = vec![turns.flows[0].clone(); 2];
        assert_eq!(turns.most_packets(&k), 20_000);
    }

    #[test]
    fn what_would_not_fit_into_memory_is_refused_with_the_least_that_would() {
        let k = Kernel::V6_1;
        // A million rows of 180 bytes fit; ten million do not: 1.8 GB in 512 MiB are 3,353 ns.
        assert_eq!(refused(&plan(r#", "sample_interval_ns": 10000"#, &[]), &k), "");
        let text = refused(&plan(r#", "sample_interval_ns": 1000"#, &[]), &k);
        assert_eq!(
            text,
            "sample_interval: gives samples of 1.7 GiB of memory, more than 0.5; take an interval of at least 4 us, or a shorter trial"
        );
        let recorded = refused(&plan(r#", "trace_packets": true"#, &[]), &k);
        assert!(recorded.starts_with("packets: to record may take 79.5 GiB of memory"), "{recorded}");
        assert_eq!(refused(&plan(r#", "trace_packets": true"#, &["netem delay 100ms"]), &k), "");
        let large = Kernel { tcp_rmem_max: i32::MAX as u32, ..k };
        // 20 windows of 2 GiB are 28.6 million packets, if the queue and the time are large enough.
        let mut many = plan("", &["netem delay 4s limit 1000000000"]);
        many.duration_ns *= 20;
        many.flows = vec![many.flows[0].clone(); 20];
        let text = refused(&many, &large);
        assert!(text.starts_with("path: and windows may hold packets of 8.0 GiB"), "{text}");
        assert_eq!(refused(&many, &k), "");
    }

    #[test]
    fn a_change_that_never_comes_or_comes_too_often_is_refused() {
        let scheduled = |change: &str| {
            let mut p = plan("", &["netem delay 10ms"]);
            p.forward.schedule = vec![serde_json::from_str(&format!(r#"{{"stage": 0, "change": {change}}}"#)).unwrap()];
            refused(&p, &Kernel::V6_1)
        };
        for (change, problem) in [
            (
                r#"{"kind": "set", "at": 10000000000, "set": {"delay": 5}}"#,
                "forward: change at 10s: comes after the end of the trial at 10 s",
            ),
            (
                r#"{"kind": "ramp", "from": 0, "until": 1000000000, "every": 1, "start": {"delay": 1}, "end": {"delay": 2}}"#,
                "forward: ramp from 0ns: makes 1000000002 changes",
            ),
            (
                r#"{"kind": "periodic", "first": 0, "period": 2, "hold": 1, "set": {"delay": 8}}"#,
                "forward: periodic change from 0ns: makes 10000000002 changes",
            ),
            (r#"{"kind": "rate_trace", "points": [[1, 8000]], "repeat": 2}"#, "forward: rate trace from 1ns: makes 5000000000 changes"),
        ] {
            assert!(scheduled(change).starts_with(problem), "{}", scheduled(change));
        }
        assert_eq!(scheduled(r#"{"kind": "set", "at": 9999999999, "set": {"delay": 5}}"#), "");
    }

    #[test]
    fn ordinary_paths_are_far_from_every_bound() {
        let mut p = plan(
            r#", "sample_interval_ns": 1000000, "queue_sample_interval_ns": 1000000, "trace_packets": true"#,
            &["netem delay 50ms limit 10000000", "tbf rate 1gbit burst 15000 limit 6000000"],
        );
        p.forward.stages.push(StageSpec::from(parse_tc("fq_codel").unwrap()));
        p.flows = vec![p.flows[0].clone(); 20];
        assert_eq!(refused(&p, &Kernel::V6_12), "");
    }
}
