//! A path as data: its stages and its schedule, as JSON carries them and [`crate::Pipe`] is built from them.
//!
//! JSON: times are integer nanoseconds, rates bit/s, sizes bytes, probabilities integers scaled to 2³²−1 as netem has
//! them. A queue says its `kind`; what is left out has tc's default:
//! `{"stages": [{"qdisc": {"kind": "tbf", "rate": 10000000, "burst": 6056, "limit": 62500}, "at": "router"}]}`.

use crate::discipline::Description;
use crate::queue::QdiscSpec;
use crate::schedule::ScheduledChange;
use crate::values::{Host, SpecError};
use serde::{Deserialize, Serialize};

/// A limit of a delay from which on it is taken for none: as many packets of 1,500 B are 10 Gbit/s for 120 ms. A path that holds more loses nothing here.
const UNMET: u64 = 100_000;

/// One direction of a path: its stages in the order in which packets meet them, and what changes when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// The stages, first to last.
    #[serde(default)]
    pub stages: Vec<StageSpec>,
    /// Changes while the path runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<ScheduledChange>,
}

/// One hop: a queue discipline at the egress of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageSpec {
    /// The queue discipline with its children.
    pub qdisc: QdiscSpec,
    /// Whose egress it is; informative.
    #[serde(default)]
    pub at: Host,
}

impl From<QdiscSpec> for StageSpec {
    fn from(qdisc: QdiscSpec) -> StageSpec {
        StageSpec { qdisc, at: Host::Sender }
    }
}

impl PathSpec {
    /// A path of these queues, all at the sender, without a schedule.
    pub fn of(qdiscs: impl IntoIterator<Item = QdiscSpec>) -> PathSpec {
        PathSpec { stages: qdiscs.into_iter().map(StageSpec::from).collect(), schedule: Vec::new() }
    }

    /// What its queues do, each stage's own and then its children.
    pub fn describe(&self) -> impl Iterator<Item = Description> + '_ {
        self.stages.iter().flat_map(|s| s.qdisc.describe())
    }

    /// The constant part of its delay, ns: what its stages delay on purpose.
    pub fn delay_ns(&self) -> u64 {
        self.describe().map(|level| level.delay_ns).sum()
    }

    /// The delay of packets that wait nowhere, ns; `None` where a queue makes it uncertain ([`Description::fixed_delay_ns`]).
    pub fn fixed_delay_ns(&self) -> Option<u64> {
        self.describe().map(|level| level.fixed_delay_ns()).sum()
    }

    /// How long each packet is under way before anything happens to it that depends on packets that come after it, ns: a constant delay at the
    /// entrance that no limit and no change of the schedule meets. So whatever leaves until so long after now is known now.
    pub fn foresight_ns(&self) -> u64 {
        let stays = self.schedule.iter().all(|change| change.stage > 0);
        let Some(first) = self.stages.first().filter(|_| stays) else { return 0 };
        let mut levels = first.qdisc.describe().into_iter();
        match (levels.next(), levels.next()) {
            (Some(delay), None) if delay.is_delay() && delay.limit_packets.map_or(true, |most| most >= UNMET) => {
                delay.fixed_delay_ns().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// The stages at the egress of the host where this direction begins, and the rest, each with its changes.
    pub fn split_host(&self, host: Host) -> (PathSpec, PathSpec) {
        let own = self.stages.iter().take_while(|s| s.at == host).count();
        let ((host, network), [of_host, of_network]) = (self.stages.split_at(own), ScheduledChange::split(&self.schedule, own));
        let part = |stages: &[StageSpec], schedule| PathSpec { stages: stages.to_vec(), schedule };
        (part(host, of_host), part(network, of_network))
    }

    /// Says what is wrong with it.
    pub fn validate(&self) -> Result<(), SpecError> {
        for s in &self.stages {
            s.qdisc.validate()?;
        }
        let queues: Vec<&QdiscSpec> = self.stages.iter().map(|s| &s.qdisc).collect();
        for c in &self.schedule {
            c.validate(&queues)?;
        }
        Ok(())
    }

    /// Reads and checks JSON.
    pub fn from_json(text: &str) -> Result<PathSpec, SpecError> {
        let spec: PathSpec = serde_json::from_str(text).map_err(|e| SpecError::new("path", &e.to_string()))?;
        spec.validate()?;
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_fixed_where_nothing_varies_it() {
        let of = |words: &[&str]| PathSpec::of(words.iter().map(|w| crate::parse_tc(w).unwrap()));
        let fixed = |words: &str| of(&["netem delay 3ms", words]).fixed_delay_ns();
        for (words, ms) in
            [("netem delay 5ms loss 1%", 8), ("jitter delay 5ms", 8), ("tbf rate 9mbit burst 3028 limit 9000", 3), ("cake", 3)]
        {
            assert_eq!(fixed(words), Some(ms * 1_000_000), "{words}");
        }
        for words in ["netem delay 5ms 1ms", "netem delay 5ms reorder 25%", "netem slot 1ms", "netem rate 9mbit", "jitter delay 5ms 1ms"] {
            assert_eq!(fixed(words), None, "{words}");
        }
        assert_eq!(of(&["netem delay 5ms 1ms", "jitter delay 5ms 1ms"]).delay_ns(), 10_000_000);
    }

    /// Stage 2 of the path is stage 1 of the network when the first one stands on the sender's host.
    #[test]
    fn the_senders_host_takes_its_stages_and_their_changes() {
        let mut forward =
            PathSpec::of(["fq", "netem delay 5ms", "tbf rate 10mbit burst 6056 limit 30000"].map(|w| crate::parse_tc(w).unwrap()));
        forward.stages.iter_mut().skip(1).for_each(|s| s.at = Host::Router);
        let change = r#"{"stage": 2, "change": {"kind": "set", "at": 5, "set": {"rate": 9000}}}"#;
        forward.schedule = vec![serde_json::from_str(change).unwrap()];
        let (host, network) = forward.split_host(Host::Sender);
        assert_eq!((host.stages.len(), host.schedule.len()), (1, 0));
        assert_eq!((network.stages.len(), network.schedule[0].stage), (2, 1));
    }
}
