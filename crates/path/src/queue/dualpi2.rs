//! dualpi2, the coupled dual queue of L4S: a short queue for scalable senders, a longer one for the others, and one controller.
//!
//! What it is: packets with ECT(1) or CE go to the L queue, all others to the C queue. Every `tupdate` a PI controller moves p' by
//! α·(delay − target) + β·(delay − delay before). C drops (or marks ECT(0)) with p'², L marks with k·p', and always when a packet has
//! waited longer than the step threshold. L goes first, except for the share that `classic_protection` keeps for C.
//! Source: RFC 9332, appendix A (PI2, step instead of the ramp); De Schepper et al. 2016 (PI2); tc-dualpi2(8) of iproute2 6.17.
//! How it differs: p' and its steps are exact fractions of 2³² where Linux rounds α and β. Random numbers are the simulator's. A packet's memory is
//! its payload and 1280 B. Linux has it since 6.17, so it was compared with the RFC's numbers, not with a kernel.
//! What it does not model: the ramp of RFC 9332, filters.

mod machine;
#[cfg(test)]
mod tests;

use crate::discipline::{AnyQdisc, Body, Description, Discipline, Marking, Queued};
use crate::values::SpecError;
use crate::words::{print, TcError, Words};
pub use machine::DualPi2;
use serde::{Deserialize, Serialize};
use tcpscape_base::Duration;

/// A dualpi2's parameters; what is left out has the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DualPi2Spec {
    /// Packets in both queues, 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Memory for packets, B; twice `limit` full frames when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memlimit: Option<u32>,
    /// How much more often L is marked than p' says (k), 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coupling_factor: Option<u32>,
    /// Delay that L's packets may have unmarked, 1 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_thresh: Option<Duration>,
    /// The same as packets in L instead of a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_packets: Option<u32>,
    /// Packets of L at a packet's arrival from which the step counts for it, 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_qlen_step: Option<u32>,
    /// `overflow`: L is never dropped from, p' stops where L is marked always, and the queue runs full.
    #[serde(default)]
    pub overflow: bool,
    /// `drop_enqueue`: the decision is made as a packet comes, not as it leaves.
    #[serde(default)]
    pub drop_enqueue: bool,
    /// `any_ect`: ECT(0) goes to L too.
    #[serde(default)]
    pub any_ect: bool,
    /// Percentage of the turns that is C's while both have packets, 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classic_protection: Option<u32>,
    /// Delay that the controller aims at, 15 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Duration>,
    /// From one step of the controller to the next, 16 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tupdate: Option<Duration>,
    /// α in 1/256 Hz, 41 (0.16 Hz).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<u32>,
    /// β in 1/256 Hz, 819 (3.2 Hz).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<u32>,
    /// Leaves offloaded packets whole.
    #[serde(default)]
    pub no_split_gso: bool,
}

/// Steps of α and β: 256 are 1 Hz.
const HZ: f64 = 256.0;
/// tc's bound of α and β, Hz.
const GAIN_MAX: f64 = 8_388_607.0;
/// A maximal round-trip time over a typical one, where only the first is given (tc-dualpi2(8)).
const MAX_TO_TYPICAL: u64 = 6;

impl Discipline for DualPi2Spec {
    const NAME: &'static str = "dualpi2";
    const EXAMPLE: &'static str = "dualpi2 limit 100";
    const CHANGES: &'static [&'static str] = &["limit"];

    fn parse(w: &mut Words<'_>) -> Result<DualPi2Spec, TcError> {
        let mut s = DualPi2Spec::default();
        let (mut max, mut typical) = (None, None);
        while let Some(word) = w.word() {
            match word {
                "limit" => s.limit = Some(w.count(word)?),
                "memlimit" => s.memlimit = Some(u32::try_from(w.size(word)?).unwrap_or(u32::MAX)),
                "coupling_factor" => s.coupling_factor = Some(w.count(word)?),
                "min_qlen_step" => s.min_qlen_step = Some(w.count(word)?),
                "step_thresh" => step(w, &mut s)?,
                "classic_protection" => {
                    let v = w.value(word)?;
                    s.classic_protection = Some(w.as_count(v.strip_suffix('%').unwrap_or(v), word)?);
                }
                "target" => s.target = Some(w.time(word)?),
                "tupdate" => s.tupdate = Some(w.time(word)?),
                "max_rtt" => max = Some(w.time(word)?),
                "typical_rtt" => typical = Some(w.time(word)?),
                "alpha" => s.alpha = Some(gain(w, word)?),
                "beta" => s.beta = Some(gain(w, word)?),
                "drop_on_overload" | "overflow" => s.overflow = word == "overflow",
                "drop_enqueue" | "drop_dequeue" => s.drop_enqueue = word == "drop_enqueue",
                "l4s_ect" | "any_ect" => s.any_ect = word == "any_ect",
                "split_gso" | "no_split_gso" => s.no_split_gso = word == "no_split_gso",
                _ => {
                    let known =
                        "limit, coupling_factor, step_thresh, target, tupdate, alpha, beta, classic_protection, max_rtt, typical_rtt";
                    return Err(w.wrong(word, &format!("it is not understood: expected {known} or another of tc-dualpi2(8)'s words")));
                }
            }
        }
        if let Some(max) = max {
            let typical = typical.unwrap_or(Duration(max.0 / MAX_TO_TYPICAL));
            if typical > max {
                return Err(w.wrong("typical_rtt", "it is above max_rtt: give the smaller one here"));
            }
            s.tune(max, typical);
        } else if typical.is_some() {
            return Err(w.missing("max_rtt", "max_rtt 100ms (it is needed with typical_rtt)"));
        }
        Ok(s)
    }
    fn words(&self) -> String {
        let mut t = "dualpi2".to_owned();
        for (word, value) in [
            ("limit", self.limit),
            ("memlimit", self.memlimit),
            ("coupling_factor", self.coupling_factor),
            ("min_qlen_step", self.min_qlen_step),
            ("classic_protection", self.classic_protection),
        ] {
            if let Some(n) = value {
                t += &format!(" {word} {n}");
            }
        }
        for (word, value) in [("step_thresh", self.step_thresh), ("target", self.target), ("tupdate", self.tupdate)] {
            if let Some(d) = value {
                t += &format!(" {word} {}", print::time(d));
            }
        }
        if let Some(n) = self.step_packets {
            t += &format!(" step_thresh {n}pkts");
        }
        for (word, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            if let Some(n) = value {
                t += &format!(" {word} {}", f64::from(n) / HZ);
            }
        }
        for (on, word) in [
            (self.overflow, " overflow"),
            (self.drop_enqueue, " drop_enqueue"),
            (self.any_ect, " any_ect"),
            (self.no_split_gso, " no_split_gso"),
        ] {
            if on {
                t += word;
            }
        }
        t
    }
    fn validate(&self) -> Result<(), SpecError> {
        let bad = |field: &str, fix: &str| Err(SpecError::new(&format!("dualpi2 {field}"), fix));
        if self.limit == Some(0) || self.memlimit == Some(0) {
            return bad("limit and memlimit", "must be above 0");
        }
        if self.coupling_factor.is_some_and(|k| k == 0 || k > 255) {
            return bad("coupling_factor", "must be from 1 to 255");
        }
        if self.classic_protection.is_some_and(|p| p > 100) {
            return bad("classic_protection", "must be a percentage from 0 to 100");
        }
        if self.target == Some(Duration::ZERO) || self.tupdate.is_some_and(|d| d.0 < 1_000) {
            return bad("target and tupdate", "must be at least 1us");
        }
        if self.step_thresh.is_some() && self.step_packets.is_some() {
            return bad("step_thresh", "is a time or a number of packets: give one of them");
        }
        Ok(())
    }
    fn describe(&self) -> Description {
        let (limit, memory) = machine::limits(self);
        Description { limit_memory_bytes: Some(memory), ecn: Marking::Always, ..Description::of_packets(Self::NAME, limit) }
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        Box::new(Queued::new(DualPi2::new(self, seed, name)))
    }
}

impl DualPi2Spec {
    /// Target, period and gains from round-trip times. RFC 9332 appendix A.1
    fn tune(&mut self, max: Duration, typical: Duration) {
        let tupdate = typical.0.min(max.0 / 3);
        let (max_s, tupdate_s) = (max.0 as f64 / 1e9, tupdate as f64 / 1e9);
        self.target = Some(typical);
        self.tupdate = Some(Duration(tupdate));
        self.alpha = Some((0.1 * tupdate_s / (max_s * max_s) * HZ).round() as u32);
        self.beta = Some((0.3 / max_s * HZ).round() as u32);
    }
}

/// A time, or a number of packets with `p`, `pkt`, `pkts`, `packet` or `packets`.
fn step(w: &mut Words<'_>, s: &mut DualPi2Spec) -> Result<(), TcError> {
    let v = w.value("step_thresh")?;
    let packets = ["packets", "packet", "pkts", "pkt", "p"].iter().find_map(|unit| v.strip_suffix(unit));
    (s.step_thresh, s.step_packets) = match packets {
        Some(n) => (None, Some(w.as_count(n, "step_thresh")?)),
        None => (Some(w.as_time(v, "step_thresh")?), None),
    };
    Ok(())
}

/// A gain in Hz, kept in 1/256.
fn gain(w: &mut Words<'_>, key: &str) -> Result<u32, TcError> {
    let v = w.value(key)?;
    let hz = v.parse::<f64>().ok().filter(|n| (0.0..=GAIN_MAX).contains(n));
    hz.map(|n| (n * HZ).round() as u32)
        .ok_or_else(|| w.wrong(v, &format!("{key} is in Hz: give a number from 0 to 8388607, for example 0.16")))
}
