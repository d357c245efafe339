//! What to run, as data: the JSON that the Python side sends. `check.rs` decides whether it can run.

use crate::player::PlayerPlan;
use crate::scream::MediaPlan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tcpscape_base::{Duration, Misbehaviour, Time};
use tcpscape_path::PathSpec;

/// One trial without its seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Length of the trial; flows without a stop time run until then.
    pub duration_ns: u64,
    /// IP packet size, bytes.
    #[serde(default = "default_mtu")]
    pub mtu: u32,
    /// The kernel: a profile's name and what differs from it.
    #[serde(default)]
    pub kernel: serde_json::Value,
    /// Whether super-packets survive the sender's device (TSO, GSO and GRO on). TCP always builds them.
    #[serde(default)]
    pub offload: bool,
    /// Whether both ends negotiate ECN (`net.ipv4.tcp_ecn = 1`).
    #[serde(default)]
    pub ecn: bool,
    /// Whether TCP builds super-packets at all; false only for kernels before 4.17 with segmentation offload off.
    #[serde(default = "yes")]
    pub gso: bool,
    /// Data direction: of the only link, or of the first one of a chain.
    #[serde(default)]
    pub forward: PathSpec,
    /// ACK direction.
    #[serde(default)]
    pub reverse: PathSpec,
    /// Further links of a chain, behind the first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkPlan>,
    /// Pairs of hosts, and where they are joined to the chain; none is one pair at its two ends, with the stages at hosts that the path has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlacePlan>,
    /// The flows.
    pub flows: Vec<FlowPlan>,
    /// Connections that arrive at random.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<TransfersPlan>,
    /// Streams of single packets that measure delays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbePlan>,
    /// Interval of flow samples, 0 for none.
    #[serde(default)]
    pub sample_interval_ns: u64,
    /// Interval of queue samples, 0 for none.
    #[serde(default)]
    pub queue_sample_interval_ns: u64,
    /// Whether to record every packet at the sender.
    #[serde(default)]
    pub trace_packets: bool,
    /// Whether to record what happens to each sender: losses, retransmissions, timeouts, reductions, undos.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trace_events: bool,
    /// Interval of the record of what the congestion controls show of themselves, which has each change of a state besides; 0 for none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub control_interval_ns: u64,
    /// Whether the neighbours' addresses must be resolved first, as in a fresh namespace: the first handshake takes two RTTs.
    #[serde(default = "yes")]
    pub arp: bool,
    /// Timer slack of sleeping applications (`PR_SET_TIMERSLACK`).
    #[serde(default = "default_slack")]
    pub timer_slack_ns: u64,
    /// When the kernel's first tick falls after time 0, ns, taken modulo a tick. Drawn from the seed where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick_phase_ns: Option<u64>,
    /// Scheduling noise: each sleep of an application lasts up to this much longer, drawn evenly. Without any, the clocks of a
    /// paced writer and a slow reader lock into a phase that no real system keeps.
    #[serde(default = "default_noise")]
    pub wake_noise_ns: u64,
    /// CPU time of one write(), so that what an application writes at once does not all leave at one instant. The reference
    /// kernel's virtual time takes one clock reading of 256 ns; a real CPU 1 µs or more.
    #[serde(default = "default_write_cost")]
    pub write_cost_ns: u64,
    /// CPU time of one read() of one buffer: half for each buffer copied (of up to 17 segments), half for the call. There it is
    /// one clock reading of 256 ns for each.
    #[serde(default = "default_read_cost")]
    pub read_cost_ns: u64,
    /// The steps of the hosts' clock; none is a clock of nanoseconds whose timers are never late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockPlan>,
}

/// A clock that all hosts and routers of a trial share, as they do those of one kernel in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockPlan {
    /// What it shows are whole numbers of these.
    pub step_ns: u64,
    /// A timer is set to this at least. One that comes while the clock does not show its time yet is set again.
    pub timer_ns: u64,
    /// What a process takes that was woken in write() until it writes again.
    #[serde(default)]
    pub wake_ns: u64,
    /// What has passed of a step when the trial begins.
    #[serde(default)]
    pub phase_ns: u64,
}

/// One flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowPlan {
    /// Congestion control by Linux's name.
    pub cca: String,
    /// Its parameters that differ from their defaults, by name; booleans are 0 and 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cca_params: BTreeMap<String, i64>,
    /// Congestion control of the listening socket: whether it is willing to use ECN with a sender that marks its SYN, and whether it
    /// acknowledges as DCTCP wants. Left out, it is the sender's if that needs ECN, otherwise the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listener: Option<String>,
    /// When the application calls connect().
    #[serde(default)]
    pub start_ns: u64,
    /// When it stops; 0 for the end of the trial.
    #[serde(default)]
    pub stop_ns: u64,
    /// What the sender's application does.
    #[serde(default)]
    pub app: App,
    /// What the receiver's does.
    #[serde(default)]
    pub read: Read,
    /// A video player as the receiver's application: it asks for segments, which the sender's writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub player: Option<PlayerPlan>,
    /// `SO_RCVBUF`, bytes, 0 for autotuning.
    #[serde(default)]
    pub rcvbuf: u32,
    /// `SO_SNDBUF`, bytes, 0 for autotuning.
    #[serde(default)]
    pub sndbuf: u32,
    /// `TCP_NODELAY`.
    #[serde(default = "yes")]
    pub nodelay: bool,
    /// How the receiver's TCP misbehaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misbehaves: Option<Misbehaviour>,
    /// Its hosts: a number of [`Plan::places`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub place: usize,
    /// Whether its data travel against the chain, from the place's right host to its left one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub up: bool,
}

/// Both directions of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// From left to right: the direction of the chain.
    #[serde(default)]
    pub forward: PathSpec,
    /// From right to left.
    #[serde(default)]
    pub reverse: PathSpec,
}

/// Two hosts: the left one is joined to router `enter` of the chain, the right one to router `leave`. Router 0 is at the left end of link 0, router
/// i + 1 at its right end. All stages of a plan with places are at routers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacePlan {
    /// The left host's router.
    pub enter: usize,
    /// The right host's router, behind `enter`.
    pub leave: usize,
    /// The link between the left host and its router: `forward` is towards the chain.
    #[serde(default)]
    pub near: LinkPlan,
    /// The link between the right host and its router: `forward` is towards the host.
    #[serde(default)]
    pub far: LinkPlan,
}

/// Connections that begin as a Poisson process, each with a number of bytes from a bounded Pareto distribution.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransfersPlan {
    /// What each connection is like; its start and its application are drawn, and `start_ns` to `stop_ns` is when connections arrive.
    pub flow: FlowPlan,
    /// Connections a second.
    pub per_second: f64,
    /// Smallest transfer, bytes.
    pub least: u64,
    /// Largest transfer, bytes.
    pub most: u64,
    /// Shape of the Pareto distribution (its α).
    pub shape: f64,
}

/// A stream of packets of the same size at even intervals.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbePlan {
    /// What travels, and whether it is answered.
    pub kind: ProbeKind,
    /// Payload bytes behind the header of UDP or ICMP.
    pub size: u32,
    /// Time between two packets.
    pub interval_ns: u64,
    /// When the first packet is sent.
    #[serde(default)]
    pub start_ns: u64,
    /// When it ends; 0 for the end of the trial.
    #[serde(default)]
    pub stop_ns: u64,
    /// Its hosts: a number of [`Plan::places`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub place: usize,
    /// Whether its packets travel against the chain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub up: bool,
    /// What a media flow encodes: `interval_ns` is then that of its frames, and `size` the most of a packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<MediaPlan>,
}

/// What a probe is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// UDP datagrams, whose one-way delay is measured where they arrive.
    Udp,
    /// UDP datagrams that the far host sends back; the round trip is measured.
    UdpEcho,
    /// ICMP echo requests (RFC 792), which the far host's kernel answers.
    IcmpEcho,
    /// UDP datagrams of a media flow whose rate SCReAM adapts (RFC 8298); the delay is from a frame's encoding to where its packet arrives.
    Scream,
}

/// The sending application.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum App {
    /// Writes chunks as fast as the socket takes them.
    Bulk {
        /// Bytes a write.
        #[serde(default = "default_chunk")]
        chunk: u64,
    },
    /// Writes a chunk, then sleeps chunk/rate, whatever the write took: no catch-up.
    Paced {
        /// Bytes a write.
        #[serde(default = "default_chunk")]
        chunk: u64,
        /// Bytes a second.
        #[serde(rename = "rate_Bps")]
        rate: f64,
    },
    /// Writes `bytes` in all, as fast as the socket takes them.
    Finite {
        /// Bytes a write.
        #[serde(default = "default_chunk")]
        chunk: u64,
        /// Bytes in all.
        bytes: u64,
    },
    /// Answers requests of the receiver: the client asks as soon as the connection is open, reads `response` bytes, and asks again `think_ns` after the
    /// last byte; or, with `every_ns`, at each multiple of it since the flow's start, late where the answer before has not come.
    Respond {
        /// Bytes a write.
        #[serde(default = "default_chunk")]
        chunk: u64,
        /// Bytes of an answer.
        response: u64,
        /// Pause between an answer and the next request.
        #[serde(default)]
        think_ns: u64,
        /// Time between requests; 0 waits `think_ns` instead.
        #[serde(default)]
        every_ns: u64,
    },
    /// Writes for `on_ns`, then pauses for `off_ns`, again and again since connect() returned: as fast as the socket takes them, or at a rate. What a
    /// write has begun it ends in the pause.
    OnOff {
        /// Bytes a write.
        #[serde(default = "default_chunk")]
        chunk: u64,
        /// How long it writes.
        on_ns: u64,
        /// How long it pauses.
        off_ns: u64,
        /// Bytes a second while it writes; 0 is as fast as the socket takes them.
        #[serde(rename = "rate_Bps", default)]
        rate: f64,
    },
}

impl Default for App {
    fn default() -> App {
        App::Bulk { chunk: default_chunk() }
    }
}

/// The receiving application: sleeps `delay_ns`, then reads up to `size` bytes, blocking until there are any.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// Most bytes a read.
    #[serde(default = "default_read")]
    pub size: u64,
    /// Sleep before each read.
    #[serde(default)]
    pub delay_ns: u64,
}

impl Default for Read {
    fn default() -> Read {
        Read { size: default_read(), delay_ns: 0 }
    }
}

fn default_mtu() -> u32 {
    1500
}
fn default_chunk() -> u64 {
    8192
}
fn default_read() -> u64 {
    65_536
}
fn default_slack() -> u64 {
    50_000
}
fn default_noise() -> u64 {
    2_000
}
fn default_write_cost() -> u64 {
    256
}
fn default_read_cost() -> u64 {
    512
}
fn yes() -> bool {
    true
}
fn is_none(interval_ns: &u64) -> bool {
    *interval_ns == 0
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What is wrong with a plan: the field and the mend.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The JSON does not have the plan's form.
    #[error("plan: {0}")]
    Json(#[from] serde_json::Error),
    /// A value cannot be simulated.
    #[error("{field}: {problem}")]
    Value {
        /// The field.
        field: String,
        /// What is wrong and what would be right.
        problem: String,
    },
}

/// The refusal of a plan's field: what is wrong, and what would be right.
pub fn refuse<T>(field: impl Into<String>, problem: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError::Value { field: field.into(), problem: problem.into() })
}

impl Plan {
    /// Reads a plan's JSON. Whether it can be simulated, [`Plan::check`] says.
    pub fn from_json(text: &str) -> Result<Plan, PlanError> {
        Ok(serde_json::from_str(text)?)
    }
}

impl FlowPlan {
    /// When it starts and stops.
    pub fn span(&self, duration_ns: u64) -> (Time, Time) {
        let stop = if self.stop_ns == 0 { duration_ns } else { self.stop_ns.min(duration_ns) };
        (Time(self.start_ns), Time(stop))
    }

    /// The pause between two chunks of a paced application.
    pub fn gap(&self) -> Duration {
        self.app.gap()
    }
}

impl App {
    /// The pause between two chunks of one that has a rate.
    pub fn gap(&self) -> Duration {
        match *self {
            App::Paced { chunk, rate } | App::OnOff { chunk, rate, .. } if rate > 0.0 => {
                Duration((chunk as f64 / rate * 1e9).min(1e18) as u64)
            }
            _ => Duration::ZERO,
        }
    }

    /// When it writes and when it pauses; None writes always.
    pub fn turns(&self) -> Option<Turns> {
        match *self {
            App::OnOff { on_ns, off_ns, .. } if off_ns > 0 => {
                Some(Turns { on: Duration(on_ns), period: Duration(on_ns.saturating_add(off_ns)) })
            }
            _ => None,
        }
    }
}

/// Periods that begin with writing and end with a pause, the first one when connect() returned.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    on: Duration,
    period: Duration,
}

impl Turns {
    /// How long the pause lasts still, `since` the first period began; None while there is writing to do.
    pub fn pause(self, since: Duration) -> Option<Duration> {
        let into = Duration(since.0 % self.period.0);
        (into >= self.on).then(|| self.period - into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Periods of 300 of which 100 are written in.
    #[test]
    fn a_pause_lasts_to_the_next_period() {
        let app = |off_ns| App::OnOff { chunk: 1, on_ns: 100, off_ns, rate: 0.0 };
        let turns = app(200).turns().unwrap();
        let pauses = [0, 99, 100, 299, 300, 650, 700, 899].map(|since| turns.pause(Duration(since)).map(|pause| pause.0));
        assert_eq!(pauses, [None, None, Some(200), Some(1), None, None, Some(200), Some(1)]);
        assert!(app(0).turns().is_none());
    }
}
