//! Whether the probes and the transfers of a plan can run, and what they would take at most.

use crate::plan::{refuse, App, Plan, PlanError, ProbeKind, ProbePlan, TransfersPlan};
use crate::scream::MediaPlan;

/// Most probes in one trial.
const MAX_PROBES: usize = 100;
/// Most packets of all probes in one trial.
const MAX_PACKETS: u64 = 10_000_000;
/// Most transfers that a trial expects, and the largest one, bytes.
pub(crate) const MAX_TRANSFERS: f64 = 100_000.0;
const MAX_BYTES: u64 = 1 << 40;
/// Headers of IPv4 and of UDP, or of an ICMP echo, bytes.
const HEADERS: u32 = 28;
/// Shapes of the sizes' distribution.
const SHAPES: std::ops::RangeInclusive<f64> = 0.01..=100.0;

/// Refuses what cannot run, by its field; the flow that transfers are like was checked.
pub(crate) fn check(plan: &Plan) -> Result<(), PlanError> {
    if plan.probes.len() > MAX_PROBES {
        return refuse("probes", format!("{} probes cannot run; give at most {MAX_PROBES}", plan.probes.len()));
    }
    plan.probes.iter().try_for_each(|probe| check_probe(plan, probe))?;
    let packets: u64 = plan.probes.iter().map(|probe| probe.packets(plan.duration_ns)).sum();
    if packets > MAX_PACKETS {
        return refuse(
            "probes.interval",
            format!("gives {packets} packets, more than {MAX_PACKETS}; take a longer one, or a shorter trial"),
        );
    }
    plan.transfers.iter().try_for_each(check_transfers)?;
    let expected: f64 = plan.transfers.iter().map(|t| t.expected(plan.duration_ns)).sum();
    if expected > MAX_TRANSFERS {
        return refuse(
            "transfers.rate",
            format!("gives {expected:.0} connections, more than {MAX_TRANSFERS}; take a lower one, or a shorter trial"),
        );
    }
    Ok(())
}

fn check_probe(plan: &Plan, probe: &ProbePlan) -> Result<(), PlanError> {
    if probe.interval_ns == 0 {
        return refuse("probes.interval", "must be more than 0; for example 20ms");
    }
    if probe.size > plan.mtu - HEADERS {
        return refuse("probes.size", format!("must be at most {} bytes, which fit a packet with their headers", plan.mtu - HEADERS));
    }
    if probe.media.is_some() != (probe.kind == ProbeKind::Scream) {
        return refuse("probes.media", "is what a probe of kind scream has, and no other");
    }
    if let Some(MediaPlan { least_bps, most_bps }) = probe.media {
        if !(1_000..=1_000_000_000).contains(&least_bps) || !(least_bps..=1_000_000_000).contains(&most_bps) {
            return refuse("probes.media", "must be bitrates from 1 kbit/s to 1 Gbit/s, the least at most the largest");
        }
        if probe.size < 16 {
            return refuse("probes.size", "must be at least 16 bytes for a media flow; for example 1200");
        }
    }
    if probe.packets(plan.duration_ns) == 0 {
        return refuse(
            "probes.start",
            "must be before the probe's stop and the end of the trial; start it earlier or take a longer duration",
        );
    }
    Ok(())
}

fn check_transfers(transfers: &TransfersPlan) -> Result<(), PlanError> {
    if !matches!(transfers.flow.app, App::Bulk { .. }) || transfers.flow.player.is_some() {
        return refuse("transfers.app", "must be left out: what a transfer sends is drawn");
    }
    if !(transfers.per_second.is_finite() && transfers.per_second > 0.0) {
        return refuse("transfers.rate", "must be more than 0 connections a second; for example 20/s");
    }
    if transfers.least == 0 || transfers.least > transfers.most || transfers.most > MAX_BYTES {
        return refuse("transfers.size", "must be between 1 byte and 1 TiB, the smallest at most the largest; for example 30kB");
    }
    if !SHAPES.contains(&transfers.shape) {
        return refuse("transfers.shape", format!("must be between {} and {}; for example 1.2", SHAPES.start(), SHAPES.end()));
    }
    Ok(())
}

impl ProbePlan {
    /// Packets that it sends in a trial of this length.
    pub fn packets(&self, duration_ns: u64) -> u64 {
        let stop = if self.stop_ns == 0 { duration_ns } else { self.stop_ns.min(duration_ns) };
        let time_ns = stop.saturating_sub(self.start_ns);
        let frames = time_ns.div_ceil(self.interval_ns);
        // Of a media flow: whole packets at its largest bitrate, and one that is not full of each frame.
        let full = |media: MediaPlan| u128::from(media.most_bps) * u128::from(time_ns) / (8_000_000_000 * u128::from(self.size.max(1)));
        self.media.map_or(frames, |media| frames.saturating_add(u64::try_from(full(media)).unwrap_or(u64::MAX)))
    }
}

impl TransfersPlan {
    /// Connections that it expects in a trial of this length.
    fn expected(&self, duration_ns: u64) -> f64 {
        let (start, stop) = self.flow.span(duration_ns);
        self.per_second * stop.since(start).secs_f64()
    }

    /// Bytes that all of them have to send, expected: the mean of the bounded Pareto distribution for each.
    pub(crate) fn expected_bytes(&self, duration_ns: u64) -> f64 {
        // The mean's own integral has a gap at a shape of 1, where it is a logarithm.
        let shape = if (self.shape - 1.0).abs() < 1e-9 { 1.0 + 1e-9 } else { self.shape };
        let (least, most) = (self.least as f64, self.most as f64);
        let cut = 1.0 - (least / most).powf(shape);
        let mean = if cut > 0.0 { shape / (shape - 1.0) * (least - most * (least / most).powf(shape)) / cut } else { least };
        mean * self.expected(duration_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(fields: &str) -> Plan {
        Plan::from_json(&format!(r#"{{"duration_ns": 1000000000, "flows": [], {fields}}}"#)).unwrap()
    }

    #[test]
    fn what_cannot_be_sent_is_refused_by_its_field() {
        let probe = |fields: &str| plan(&format!(r#""probes": [{{"kind": "udp", {fields}}}]"#));
        let transfers = |fields: &str| plan(&format!(r#""transfers": [{{"flow": {{"cca": "cubic"}}, {fields}}}]"#));
        for (plan, problem) in [
            (probe(r#""size": 172, "interval_ns": 0"#), "probes.interval: must be more than 0"),
            (probe(r#""size": 1473, "interval_ns": 5"#), "probes.size: must be at most 1472 bytes"),
            (probe(r#""size": 172, "interval_ns": 5, "start_ns": 1000000000"#), "probes.start: must be before"),
            (probe(r#""size": 172, "interval_ns": 99"#), "probes.interval: gives 10101011 packets, more than 10000000"),
            (transfers(r#""per_second": 0, "least": 1, "most": 1, "shape": 1"#), "transfers.rate: must be more than 0"),
            (transfers(r#""per_second": 100001, "least": 1, "most": 1, "shape": 1"#), "transfers.rate: gives 100001 connections"),
            (transfers(r#""per_second": 1, "least": 2, "most": 1, "shape": 1"#), "transfers.size: must be between"),
            (transfers(r#""per_second": 1, "least": 1, "most": 1, "shape": 0"#), "transfers.shape: must be between"),
        ] {
            let refused = plan.check().err().map(|e| e.to_string()).unwrap_or_default();
            assert!(refused.starts_with(problem), "{refused}");
        }
    }

    #[test]
    fn a_probe_sends_at_its_start_and_not_at_its_end() {
        let mut p = plan(r#""probes": [{"kind": "udp", "size": 172, "interval_ns": 20000000}]"#).probes.remove(0);
        assert_eq!(p.packets(1_000_000_000), 50);
        assert_eq!(p.packets(1_000_000_001), 51);
        (p.start_ns, p.stop_ns) = (990_000_000, 1_020_000_000);
        assert_eq!((p.packets(1_000_000_000), p.packets(2_000_000_000)), (1, 2));
    }

    /// Shape 2 from 1,000 to 1,000,000: 1998 bytes (transfers.rs). Shape 1 from 1,000 to 100,000: 1000 · ln 100 / 0.99 = 4651.7. Of one size: that size.
    #[test]
    fn expected_bytes_are_those_of_the_distribution() {
        for (least, most, shape, mean) in [(1_000, 1_000_000, 2.0, 1_998.0), (1_000, 100_000, 1.0, 4_651.7), (5_000, 5_000, 1.2, 5_000.0)] {
            let entry = format!(r#"{{"flow": {{"cca": "cubic"}}, "per_second": 10, "least": {least}, "most": {most}, "shape": {shape}}}"#);
            let bytes = plan(&format!(r#""transfers": [{entry}]"#)).transfers[0].expected_bytes(2_000_000_000);
            assert!((bytes / 20.0 - mean).abs() < 0.1, "{bytes}");
        }
    }
}
