//! What to simulate, as data: the JSON that the Python side sends.

use crate::controls::Controls;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tcpscape_base::{Duration, Time};
use tcpscape_path::PathSpec;
use tcpscape_tcp::{cc, Feedback, Kernel};

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
    /// Data direction.
    #[serde(default)]
    pub forward: PathSpec,
    /// ACK direction.
    #[serde(default)]
    pub reverse: PathSpec,
    /// The flows.
    pub flows: Vec<FlowPlan>,
    /// Interval of flow samples, 0 for none.
    #[serde(default)]
    pub sample_interval_ns: u64,
    /// Interval of queue samples, 0 for none.
    #[serde(default)]
    pub queue_sample_interval_ns: u64,
    /// Whether to record every packet at the sender.
    #[serde(default)]
    pub trace_packets: bool,
    /// Whether the neighbours' addresses must be resolved first, as in a fresh namespace: the first handshake takes two RTTs.
    #[serde(default = "yes")]
    pub arp: bool,
    /// Timer slack of sleeping applications (`PR_SET_TIMERSLACK`).
    #[serde(default = "default_slack")]
    pub timer_slack_ns: u64,
    /// Scheduling noise: each sleep of an application lasts up to this much longer, drawn evenly. Without any, the clocks of a
    /// paced writer and a slow reader lock into a phase that no real system keeps.
    #[serde(default = "default_noise")]
    pub wake_noise_ns: u64,
    /// CPU time of one write(), so that what an application writes at once does not all leave at one instant. The reference
    /// kernel's virtual time takes 4 clock readings of 256 ns; a real CPU one to a few µs.
    #[serde(default = "default_write_cost")]
    pub write_cost_ns: u64,
    /// CPU time of one read() of one buffer: half for each buffer copied (of up to 17 segments), half for the call. There it is
    /// one clock reading of 256 ns for each.
    #[serde(default = "default_read_cost")]
    pub read_cost_ns: u64,
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
    /// `SO_RCVBUF`, bytes, 0 for autotuning.
    #[serde(default)]
    pub rcvbuf: u32,
    /// `SO_SNDBUF`, bytes, 0 for autotuning.
    #[serde(default)]
    pub sndbuf: u32,
    /// `TCP_NODELAY`.
    #[serde(default = "yes")]
    pub nodelay: bool,
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
    1_024
}
fn default_read_cost() -> u64 {
    512
}
fn yes() -> bool {
    true
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

fn refuse<T>(field: impl Into<String>, problem: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError::Value { field: field.into(), problem: problem.into() })
}

/// Longest trial, one day.
const MAX_DURATION: u64 = 86_400 * 1_000_000_000;
/// Most flows in one trial.
const MAX_FLOWS: usize = 100_000;

impl Plan {
    /// Reads and checks a plan whose congestion controls are all in the registry.
    pub fn from_json(text: &str) -> Result<Plan, PlanError> {
        Plan::read(text, &Controls::new())
    }

    /// Reads and checks a plan that may name congestion controls of `controls`.
    pub fn read(text: &str, controls: &Controls<'_>) -> Result<Plan, PlanError> {
        let p: Plan = serde_json::from_str(text)?;
        p.check(controls)?;
        Ok(p)
    }

    fn check(&self, controls: &Controls<'_>) -> Result<(), PlanError> {
        if self.duration_ns == 0 || self.duration_ns > MAX_DURATION {
            return refuse("duration", "must be between 1 ns and one day");
        }
        if !(128..=65_535).contains(&self.mtu) {
            return refuse("mtu", "must be between 128 and 65535 bytes");
        }
        if self.flows.is_empty() || self.flows.len() > MAX_FLOWS {
            return refuse("flows", format!("must be between 1 and {MAX_FLOWS}"));
        }
        for (name, ns) in [("sample_interval", self.sample_interval_ns), ("queue_sample_interval", self.queue_sample_interval_ns)] {
            if ns > 0 && self.duration_ns / ns > 10_000_000 {
                return refuse(name, "gives more than ten million samples a trial; take a longer one");
            }
        }
        for f in &self.flows {
            f.check_control(controls)?;
            f.check(self.duration_ns)?;
        }
        self.kernel()?;
        Ok(())
    }

    /// The kernel profile with its overrides.
    pub fn kernel(&self) -> Result<Kernel, PlanError> {
        let (name, overrides) = match &self.kernel {
            serde_json::Value::Null => ("6.1", None),
            serde_json::Value::String(s) => (s.as_str(), None),
            serde_json::Value::Object(m) => (m.get("profile").and_then(|p| p.as_str()).unwrap_or("6.1"), Some(m)),
            _ => return refuse("kernel", "must be a profile's name, or a profile with overrides"),
        };
        let Some(base) = profile(name) else {
            return refuse("kernel", format!("no profile '{name}'; there are {}", PROFILES.map(|p| p.0).join(", ")));
        };
        let Some(m) = overrides else { return Ok(base) };
        let mut v = serde_json::to_value(base)?;
        for (k, x) in m.iter().filter(|(k, _)| *k != "profile") {
            match v.get_mut(k) {
                Some(slot) => *slot = x.clone(),
                None => return refuse(format!("kernel.{k}"), "is not a setting of a kernel profile"),
            }
        }
        let k: Kernel = match serde_json::from_value(v) {
            Ok(k) => k,
            Err(e) => return refuse("kernel", e.to_string()),
        };
        if !(24..=10_000).contains(&k.hz) {
            return refuse("kernel.hz", "must be between 24 and 10000");
        }
        Ok(k)
    }
}

/// Kernel profiles by name.
pub const PROFILES: [(&str, Kernel); 2] = [("6.1", Kernel::V6_1), ("6.12", Kernel::V6_12)];

/// The profile called `name`.
pub fn profile(name: &str) -> Option<Kernel> {
    PROFILES.iter().find(|p| p.0 == name).map(|p| p.1)
}

impl FlowPlan {
    /// When it starts and stops.
    pub fn span(&self, duration_ns: u64) -> (Time, Time) {
        let stop = if self.stop_ns == 0 { duration_ns } else { self.stop_ns.min(duration_ns) };
        (Time(self.start_ns), Time(stop))
    }

    fn check_control(&self, controls: &Controls<'_>) -> Result<(), PlanError> {
        let own = controls.has_own(&self.cca);
        let unknown = |field, name: &str, known: &Controls<'_>| {
            refuse(field, format!("no congestion control '{name}'; there are {}", known.names().join(", ")))
        };
        if !own && cc::find(&self.cca).is_none() {
            return unknown("cca", &self.cca, controls);
        }
        if let Some(name) = self.listener.as_deref().filter(|l| cc::find(l).is_none()) {
            return unknown("listener", name, &Controls::new());
        }
        match cc::check(&self.cca, &self.cca_params) {
            Err((param, fix)) if !own => refuse(format!("cca.{param}"), fix),
            _ => Ok(()),
        }
    }

    fn check(&self, duration_ns: u64) -> Result<(), PlanError> {
        let (start, stop) = self.span(duration_ns);
        if start >= stop {
            return refuse("flows.start", "must be before the flow's stop and the end of the trial");
        }
        let chunk = match self.app {
            App::Bulk { chunk } => chunk,
            App::Finite { chunk, bytes } => {
                if bytes == 0 {
                    return refuse("app.bytes", "must be at least 1");
                }
                chunk
            }
            App::Paced { chunk, rate } => {
                if !(rate.is_finite() && rate > 0.0) {
                    return refuse("app.rate", "must be more than 0 bytes a second");
                }
                chunk
            }
        };
        if chunk == 0 || chunk > 1 << 30 {
            return refuse("app.chunk", "must be between 1 byte and 1 GiB");
        }
        if self.read.size == 0 {
            return refuse("read.size", "must be at least 1 byte");
        }
        if self.read.delay_ns > MAX_DURATION {
            return refuse("read.delay", "must be at most one day");
        }
        Ok(())
    }

    /// How its listening socket tells of marks, where the sender's congestion control is `congestion`.
    pub fn listener_feedback(&self, congestion: &dyn cc::CongestionController) -> Feedback {
        match &self.listener {
            Some(name) => cc::make(name, 0).map_or(Feedback::Classic, |c| Feedback::of(&*c)),
            None => Feedback::of(congestion),
        }
    }

    /// The pause between two chunks of a paced application.
    pub fn gap(&self) -> Duration {
        match self.app {
            App::Paced { chunk, rate } => Duration((chunk as f64 / rate * 1e9).min(1e18) as u64),
            _ => Duration::ZERO,
        }
    }
}
