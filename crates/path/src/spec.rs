//! A path as data: its stages and its schedule, as JSON carries them and [`crate::Pipe`] is built from them.
//!
//! JSON: times are integer nanoseconds, rates bit/s, sizes bytes, probabilities integers scaled to 2³²−1 as netem has
//! them. A queue says its `kind`; what is left out has tc's default:
//! `{"stages": [{"qdisc": {"kind": "tbf", "rate": 10000000, "burst": 6056, "limit": 62500}, "at": "router"}]}`.

use crate::queue::QdiscSpec;
use crate::schedule::ScheduledChange;
use crate::values::{Host, SpecError};
use serde::{Deserialize, Serialize};

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

    /// The stages at the egress of the host where this direction begins, and the rest, each with its changes.
    pub fn split_host(&self, host: Host) -> (PathSpec, PathSpec) {
        let own = self.stages.iter().take_while(|s| s.at == host).count();
        let (host, network) = self.stages.split_at(own);
        let mut host = PathSpec { stages: host.to_vec(), ..PathSpec::default() };
        let mut network = PathSpec { stages: network.to_vec(), ..PathSpec::default() };
        for change in &self.schedule {
            let (part, stage) = if change.stage < own { (&mut host, change.stage) } else { (&mut network, change.stage - own) };
            part.schedule.push(ScheduledChange { stage, ..change.clone() });
        }
        (host, network)
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
