//! The result of one flow, with the model's names and units.

use crate::flows::Flow;
use crate::watch::Seen;
use serde::Serialize;
use std::collections::BTreeMap;
use tcpscape_base::Time;
use tcpscape_sim::output::ResponseSummary;
use tcpscape_sim::PlayerSummary;

/// Smoothed RTTs, ms.
#[derive(Debug, Default, Serialize)]
pub struct Rtt {
    /// Smallest.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Mean.
    pub mean: Option<f64>,
}

/// The congestion window, packets.
#[derive(Debug, Default, Serialize)]
pub struct Cwnd {
    /// Mean over time.
    pub mean: Option<f64>,
    /// Largest sampled.
    pub max: Option<u32>,
}

/// One flow.
#[derive(Debug, Default, Serialize)]
pub struct FlowReport {
    /// Congestion control.
    pub cca: String,
    /// When connect() returned, s.
    pub start_s: f64,
    /// When it stopped, s.
    pub stop_s: f64,
    /// Sending time, s.
    pub seconds: f64,
    /// Whether the handshake succeeded.
    pub established: bool,
    /// Bytes the receiver's application read.
    pub bytes_received: u64,
    /// Of these, by the middle of the trial.
    pub bytes_received_first_half: u64,
    /// Bytes the sender's application wrote.
    pub bytes_sent: u64,
    /// Mbit/s.
    pub goodput_mbps: f64,
    /// Segments retransmitted.
    pub retransmits: u32,
    /// DSACKs received: retransmissions that were needless.
    pub spurious_retransmits: u32,
    /// The same.
    pub dsacks: u32,
    /// Timeouts, where the kernel tells.
    pub rtos: Option<u64>,
    /// Fast recoveries; single flows only.
    pub fast_recoveries: Option<u64>,
    /// Window reductions undone; single flows only.
    pub undos: Option<u64>,
    /// Reordering events.
    pub reord_seen: u32,
    /// Reordering metric, segments.
    pub reordering: u32,
    /// Smoothed RTT, sampled.
    pub rtt_ms: Rtt,
    /// At the end.
    pub srtt_ms: Option<f64>,
    /// Windowed minimum.
    pub min_rtt_ms: Option<f64>,
    /// Congestion window.
    pub cwnd: Cwnd,
    /// Shares of the sending time under each limit.
    pub limited_by: BTreeMap<&'static str, f64>,
    /// Segments with data sent.
    pub data_segs_out: u32,
    /// Whether both ends agreed to use ECN.
    pub ecn: bool,
    /// Segments whose delivery was reported with a congestion mark.
    pub delivered_ce: u32,
    /// Segments received.
    pub segs_in: u32,
    /// Largest receive window sampled, bytes.
    pub max_rwnd: u32,
    /// What the viewer of its player has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<PlayerSummary>,
    /// How long its requests took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responses: Option<ResponseSummary>,
}

impl FlowReport {
    /// What is known of a flow that has ended; `zero` is the trial's begin on the monotonic clock, ns, `duration` its length.
    pub fn of(flow: &Flow, seen: &mut Seen, zero: u64, duration: u64) -> FlowReport {
        let (player, responses) = (flow.viewed(Time(duration)), flow.responses());
        let ((begin, end), (sent, received)) = (flow.span(), flow.bytes());
        let Some(x) = flow.last_info().filter(|_| begin > 0) else {
            return FlowReport { cca: flow.plan.cca.clone(), player, responses, ..FlowReport::default() };
        };
        if seen.srtt_us.is_empty() {
            seen.take(&x); // shorter than the sampling interval
        }
        let seconds = end.saturating_sub(begin) as f64 / 1e9;
        FlowReport {
            cca: flow.plan.cca.clone(),
            start_s: begin.saturating_sub(zero) as f64 / 1e9,
            stop_s: end.saturating_sub(zero) as f64 / 1e9,
            seconds,
            established: true,
            bytes_received: received,
            bytes_received_first_half: seen.first_half,
            bytes_sent: sent,
            goodput_mbps: if seconds > 0.0 { received as f64 * 8e-6 / seconds } else { 0.0 },
            retransmits: x.total_retrans(),
            spurious_retransmits: x.dsack_dups(),
            dsacks: x.dsack_dups(),
            rtos: x.knows_rtos().then(|| u64::from(x.total_rto())),
            fast_recoveries: None,
            undos: None,
            reord_seen: x.reord_seen(),
            reordering: x.reordering(),
            rtt_ms: rtt(&mut seen.srtt_us),
            srtt_ms: Some(f64::from(x.rtt()) / 1e3),
            min_rtt_ms: (x.min_rtt() < u32::MAX).then(|| f64::from(x.min_rtt()) / 1e3),
            cwnd: Cwnd { mean: (seen.cwnd.1 > 0).then(|| seen.cwnd.0 as f64 / seen.cwnd.1 as f64), max: Some(seen.cwnd_max) },
            limited_by: limits(x.busy_time(), x.rwnd_limited(), x.sndbuf_limited(), seconds * 1e6),
            data_segs_out: x.data_segs_out(),
            ecn: x.ecn(),
            delivered_ce: x.delivered_ce(),
            segs_in: x.segs_in(),
            max_rwnd: seen.rwnd_max,
            player,
            responses,
        }
    }
}

/// Shares of `total` µs, as the kernel keeps account. Linux: tcp_get_info_chrono_stats()
fn limits(busy: u64, rwnd: u64, sndbuf: u64, total: f64) -> BTreeMap<&'static str, f64> {
    let share = |us: u64| if total > 0.0 { (us as f64 / total).min(1.0) } else { 0.0 };
    let (all, rwnd, sndbuf) = (share(busy), share(rwnd), share(sndbuf));
    BTreeMap::from([("app", 1.0 - all), ("rwnd", rwnd), ("sndbuf", sndbuf), ("cwnd", (all - rwnd - sndbuf).max(0.0))])
}

fn rtt(us: &mut [u32]) -> Rtt {
    us.sort_unstable();
    if us.is_empty() {
        return Rtt::default();
    }
    let at = |q: f64| Some(f64::from(us[((us.len() - 1) as f64 * q).round() as usize]) / 1e3);
    let mean = us.iter().map(|&v| u64::from(v)).sum::<u64>() as f64 / us.len() as f64 / 1e3;
    Rtt { min: at(0.0), p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1.0), mean: Some(mean) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_share_the_sending_time() {
        let l = limits(8_000_000, 3_000_000, 1_000_000, 1e7);
        assert_eq!((l["rwnd"], l["sndbuf"], l["cwnd"]), (0.3, 0.1, 0.4));
        assert!((l["app"] - 0.2).abs() < 1e-12);
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let r = rtt(&mut (1..=100).map(|ms| ms * 1000).rev().collect::<Vec<u32>>());
        assert_eq!((r.min, r.p50, r.p95, r.max, r.mean), (Some(1.0), Some(51.0), Some(95.0), Some(100.0), Some(50.5)));
    }
}
