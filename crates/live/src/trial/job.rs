//! What Python asks for. The faults that a test plants are part of it: a check that never finds any proves nothing.

use super::check::machine::ClockStep;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tcpscape_path::{Loss, PathSpec, QdiscSpec};
use tcpscape_plan::Plan;

/// Who impairs the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The emulator, in user space.
    Emulator,
    /// The kernel's own queues.
    Netem,
}

/// A trial to be run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The trial's seed.
    pub seed: u64,
    /// The scenario.
    pub plan: Plan,
    /// Who impairs the path.
    pub backend: Backend,
    /// Whether to leave out the user namespace.
    #[serde(default)]
    pub root: bool,
    /// Settings of both hosts, `net.ipv4.tcp_rmem` and its value.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// Whether socket buffers may exceed the machine's limits.
    #[serde(default)]
    pub force_buffers: bool,
    /// Sampling interval of the summaries, ns.
    pub sample_ns: u64,
    /// Where the packets go, if they are to be kept.
    #[serde(default)]
    pub pcap: Option<PathBuf>,
    /// Faults that the self-checks must find.
    #[serde(default)]
    pub planted: Planted,
}

/// What of an impairment is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// Random loss.
    Loss,
    /// Delay, with its jitter.
    Delay,
    /// Jitter alone.
    Jitter,
    /// The rate of a bucket: ten times as much passes.
    Rate,
}

/// Where super-packets are let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuperPackets {
    /// At the sender's device.
    Sender,
    /// At the middle's device towards the receiver.
    Middle,
    /// At the receiver's device, which joins what came one by one.
    Receiver,
    /// In the emulator, which joins again what it cut.
    Link,
}

/// Faults of the path or of the machine that nobody asked for, for tests of the checks.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planted {
    /// The wall clock is set.
    #[serde(default)]
    pub clock_step: Option<ClockStep>,
    /// Every delaying stage holds no more packets than this.
    #[serde(default)]
    pub limit: Option<u32>,
    /// A part of the impairments is left out.
    #[serde(default)]
    pub missing: Option<Missing>,
    /// Super-packets pass although the scenario asks for none.
    #[serde(default)]
    pub super_packets: Option<SuperPackets>,
}

impl Planted {
    /// The plan as it is built: the one asked for, with these faults in both directions.
    pub fn plan(&self, asked: &Plan) -> Plan {
        let mut built = asked.clone();
        for path in [&mut built.forward, &mut built.reverse] {
            self.spoil(path);
        }
        built
    }

    fn spoil(&self, path: &mut PathSpec) {
        for stage in &mut path.stages {
            match &mut stage.qdisc {
                QdiscSpec::Netem(n) => {
                    n.limit = self.limit.unwrap_or(n.limit);
                    match self.missing {
                        Some(Missing::Loss) => n.loss = Loss::default(),
                        Some(Missing::Delay) => (n.delay, n.jitter, n.distribution) = Default::default(),
                        Some(Missing::Jitter) => (n.jitter, n.distribution) = Default::default(),
                        Some(Missing::Rate) | None => {}
                    }
                }
                QdiscSpec::Tbf(t) if self.missing == Some(Missing::Rate) => t.rate = tcpscape_base::Rate(t.rate.0 * 10),
                QdiscSpec::Htb(h) if self.missing == Some(Missing::Rate) => h.rate = tcpscape_base::Rate(h.rate.0 * 10),
                _ => {}
            }
        }
    }
}
