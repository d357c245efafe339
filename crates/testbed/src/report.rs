//! The result of a trial, with the model's names and units.

use crate::flows::Flow;
use crate::proof::Proof;
use crate::watch::Seen;
use serde::Serialize;
use std::collections::BTreeMap;
use tcpscape_base::Time;
use tcpscape_plan::results::{CwndSummary, FlowSummary, LimitedBy, ProbeSummary, QueueReport, RttSummary, TransfersSummary};

/// One trial.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Length of the trial, ns.
    pub duration_ns: u64,
    /// Per flow.
    pub flows: Vec<FlowSummary>,
    /// Per probe.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeSummary>,
    /// Per entry of the plan's transfers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<TransfersSummary>,
    /// Per queue.
    pub queues: Vec<QueueReport>,
    /// What weakens the result.
    pub caveats: Vec<String>,
    /// The kernel's counters of the sending and of the receiving hosts, each kind together, those that are not 0.
    pub counters: BTreeMap<String, u64>,
    /// What the path was asked for and what it did.
    pub proof: Option<Proof>,
    /// Where the tables are.
    pub tables: BTreeMap<&'static str, Table>,
}

/// A table in a file of its own: its columns one after the other, little endian.
#[derive(Debug, Serialize)]
pub struct Table {
    /// File name.
    pub file: String,
    /// Rows.
    pub rows: usize,
    /// Names and types.
    pub columns: Vec<(&'static str, &'static str)>,
}

/// Adds the counters of one host from the text of /proc/net/netstat or /proc/net/snmp, those that are not 0, as
/// `sender.TcpExt.TCPTimeouts`.
pub fn counters(host: &str, text: &str, into: &mut BTreeMap<String, u64>) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (Some((group, names)), Some((_, values))) = (pair[0].split_once(": "), pair[1].split_once(": ")) else { continue };
        if !group.starts_with("Tcp") {
            continue;
        }
        for (name, value) in names.split(' ').zip(values.split(' ')) {
            if let Some(n) = value.parse::<u64>().ok().filter(|&n| n > 0) {
                *into.entry(format!("{host}.{group}.{name}")).or_default() += n;
            }
        }
    }
}

/// What is known of a flow that has ended; `zero` is the trial's begin on the monotonic clock, ns, `duration` its length.
pub fn flow_summary(flow: &Flow, seen: &mut Seen, zero: u64, duration: u64) -> FlowSummary {
    let (player, responses) = (flow.viewed(Time(duration)), flow.responses());
    let ((begin, end), (sent, received)) = (flow.span(), flow.bytes());
    let Some(x) = flow.last_info().filter(|_| begin > 0) else {
        return FlowSummary { cca: flow.plan.cca.clone(), player, responses, ..FlowSummary::default() };
    };
    if seen.srtt_us.is_empty() {
        seen.take(&x); // shorter than the sampling interval
    }
    let seconds = end.saturating_sub(begin) as f64 / 1e9;
    let dsacks = u64::from(x.dsack_dups());
    FlowSummary {
        cca: flow.plan.cca.clone(),
        start_s: begin.saturating_sub(zero) as f64 / 1e9,
        stop_s: end.saturating_sub(zero) as f64 / 1e9,
        seconds,
        established: true,
        bytes_received: received,
        bytes_received_first_half: seen.first_half,
        bytes_sent: sent,
        goodput_mbps: if seconds > 0.0 { received as f64 * 8e-6 / seconds } else { 0.0 },
        retransmits: x.total_retrans().into(),
        spurious_retransmits: dsacks,
        dsacks,
        rtos: x.knows_rtos().then(|| u64::from(x.total_rto())),
        reord_seen: x.reord_seen().into(),
        reordering: x.reordering(),
        rtt_ms: rtt(&mut seen.srtt_us),
        srtt_ms: Some(f64::from(x.rtt()) / 1e3),
        min_rtt_ms: (x.min_rtt() < u32::MAX).then(|| f64::from(x.min_rtt()) / 1e3),
        cwnd: CwndSummary { mean: (seen.samples > 0).then(|| seen.cwnd_sum as f64 / seen.samples as f64), max: Some(seen.cwnd_max) },
        limited_by: Some(limits(x.busy_time(), x.rwnd_limited(), x.sndbuf_limited(), seconds * 1e6)),
        ecn: x.ecn(),
        delivered_ce: x.delivered_ce().into(),
        data_segs_out: x.data_segs_out().into(),
        segs_in: x.segs_in().into(),
        max_rwnd: seen.rwnd_max,
        player,
        responses,
        ..FlowSummary::default()
    }
}

/// Shares of `total` µs, as the kernel keeps account. Linux: tcp_get_info_chrono_stats()
fn limits(busy: u64, rwnd: u64, sndbuf: u64, total: f64) -> LimitedBy {
    let share = |us: u64| if total > 0.0 { (us as f64 / total).min(1.0) } else { 0.0 };
    let (all, rwnd, sndbuf) = (share(busy), share(rwnd), share(sndbuf));
    LimitedBy { app: 1.0 - all, rwnd, sndbuf, cwnd: (all - rwnd - sndbuf).max(0.0), pacing: None, tsq: None }
}

/// Smoothed RTTs, ms, by nearest ranks.
fn rtt(us: &mut [u32]) -> RttSummary {
    us.sort_unstable();
    if us.is_empty() {
        return RttSummary::default();
    }
    let at = |q: f64| f64::from(us[((us.len() - 1) as f64 * q).round() as usize]) / 1e3;
    let mean = us.iter().map(|&v| u64::from(v)).sum::<u64>() as f64 / us.len() as f64 / 1e3;
    RttSummary { min: at(0.0), p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1.0), mean }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_by_host_and_group_and_zeros_left_out() {
        let text = "TcpExt: SyncookiesSent TCPTimeouts TCPSackRecovery\nTcpExt: 0 3 2\nIpExt: InOctets\nIpExt: 7\n";
        let mut found = BTreeMap::new();
        counters("sender", text, &mut found);
        assert_eq!(found, BTreeMap::from([("sender.TcpExt.TCPTimeouts".into(), 3), ("sender.TcpExt.TCPSackRecovery".into(), 2)]));
    }

    #[test]
    fn limits_share_the_sending_time() {
        let l = limits(8_000_000, 3_000_000, 1_000_000, 1e7);
        assert_eq!((l.rwnd, l.sndbuf, l.cwnd), (0.3, 0.1, 0.4));
        assert!((l.app - 0.2).abs() < 1e-12);
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let r = rtt(&mut (1..=100).map(|ms| ms * 1000).rev().collect::<Vec<u32>>());
        assert_eq!((r.min, r.p50, r.p95, r.max, r.mean), (1.0, 51.0, 95.0, 100.0, 50.5));
    }
}
