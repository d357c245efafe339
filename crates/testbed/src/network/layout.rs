//! Which host's egress a stage is.
//!
//! Hosts stand in a chain: the sender is 0, then the routers, the receiver is last. A direction's first stage belongs to
//! the host where that direction begins unless it says `router`; every further stage is the egress of the next router.
//! There are as many routers as the longer direction needs.

use super::gate::{self, Layer};
use super::TestbedError;
use crate::qdisc;
use tcpscape_path::{Direction, Host, PathSpec, QdiscSpec};
use tcpscape_sim::Plan;

/// A stage and its place.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Its direction.
    pub direction: Direction,
    /// Its number in that direction, from 0.
    pub index: usize,
    /// Whose egress it is: 0 is the sender.
    pub host: usize,
    /// Its queues, outermost first.
    pub layers: Vec<Layer>,
    /// Its name in tc's words.
    pub kind: &'static str,
}

impl Stage {
    /// What a message calls it: `forward stage 0 (netem)`.
    pub fn title(&self) -> String {
        format!("{} stage {} ({})", self.direction.name(), self.index, self.kind)
    }
}

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Routers between sender and receiver.
    pub routers: usize,
    /// The forward stages, then the reverse ones.
    pub stages: Vec<Stage>,
}

/// Most routers: the third byte of an address counts the links.
const MOST_ROUTERS: usize = 200;

impl Layout {
    /// Places a plan's stages; names what no kernel has.
    pub fn of(plan: &Plan) -> Result<Layout, TestbedError> {
        let routers = routers(&plan.forward).max(routers(&plan.reverse));
        if routers > MOST_ROUTERS {
            return Err(TestbedError::Unsupported(format!("path: {routers} routers are too many; at most {MOST_ROUTERS}")));
        }
        let mut stages = Vec::new();
        for direction in Direction::BOTH {
            let path = if direction == Direction::Forward { &plan.forward } else { &plan.reverse };
            let ends = usize::from(!begins_at_router(path));
            for (index, spec) in path.stages.iter().enumerate() {
                refuse_ours(&spec.qdisc)?;
                let hops = index + 1 - ends;
                let host = if direction == Direction::Forward { hops } else { routers + 1 - hops };
                let gated = gate::needed(&path.schedule, index);
                stages.push(Stage {
                    direction,
                    index,
                    host,
                    layers: gate::layers(&spec.qdisc, gated, &path.schedule, index),
                    kind: spec.qdisc.name(),
                });
            }
        }
        Ok(Layout { routers, stages })
    }

    /// A host's name: sender, router or receiver.
    pub fn role(&self, host: usize) -> &'static str {
        match host {
            0 => "sender",
            h if h > self.routers => "receiver",
            _ => "router",
        }
    }
    /// A host's name for a reader: `router 2` where there are several.
    pub fn host_name(&self, host: usize) -> String {
        match self.role(host) {
            "router" if self.routers > 1 => format!("router {host}"),
            role => role.to_owned(),
        }
    }
    /// The devices that a host has.
    pub fn devices(&self, host: usize) -> Vec<Direction> {
        let (forward, reverse) = (host <= self.routers, host > 0);
        [forward.then_some(Direction::Forward), reverse.then_some(Direction::Reverse)].into_iter().flatten().collect()
    }
}

fn begins_at_router(path: &PathSpec) -> bool {
    path.stages.first().is_some_and(|s| s.at == Host::Router)
}

/// The routers that a direction needs.
fn routers(path: &PathSpec) -> usize {
    path.stages.len().saturating_sub(usize::from(!begins_at_router(path)))
}

/// `jitter` exists in the model only, `dualpi2` in kernels since 6.17; for some there are no messages here.
fn refuse_ours(spec: &QdiscSpec) -> Result<(), TestbedError> {
    match spec {
        QdiscSpec::Jitter(_) => Err(TestbedError::Unsupported(
            "jitter: the kernel has no such queue; write netem delay 25ms 8ms (with rate for order) or use --engine model or live".into(),
        )),
        QdiscSpec::Dualpi2(_) => Err(TestbedError::Unsupported(
            "dualpi2: Linux has it since 6.17, and it cannot be set up here; use --engine model or live, or fq_codel with ecn".into(),
        )),
        other if !qdisc::knows(other) => {
            Err(TestbedError::Unsupported(format!("{}: this queue cannot be set up here; use --engine model or live", other.name())))
        }
        other => other.child().map_or(Ok(()), refuse_ours),
    }
}
