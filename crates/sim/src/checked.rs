//! A plan that can be simulated: read and validated once, shared by the trials of all its seeds.
//!
//! What every trial of a plan needs is worked out here: the kernel profile, the pipes of its network and the routes through
//! them, and for each flow what makes its congestion control. A [`CheckedPlan`] does not change and can be shared by threads.

use crate::controls::{Control, Controls};
use crate::engine::Topology;
use crate::kernel;
use crate::plan::{refuse, App, FlowPlan, Plan, PlanError, TransfersPlan};
use crate::size;
use crate::traffic;
use tcpscape_path::Description;
use tcpscape_tcp::cc::{self, CongestionController};
use tcpscape_tcp::{Feedback, Kernel};

/// Longest trial, one day.
const MAX_DURATION: u64 = 86_400 * 1_000_000_000;
/// Most flows in one trial.
const MAX_FLOWS: usize = 100_000;

/// A plan that passed every check, with what its trials share. `'a` is the life of congestion controls from outside.
pub struct CheckedPlan<'a> {
    plan: Plan,
    kernel: Kernel,
    topology: Topology,
    controls: Vec<FlowControl<'a>>,
    /// The same for each entry of the transfers.
    transfer_controls: Vec<FlowControl<'a>>,
}

/// What makes the congestion controls of a flow's two sockets.
pub(crate) struct FlowControl<'a> {
    sender: Control<'a>,
    listener: Option<&'static cc::Entry>,
}

impl FlowControl<'_> {
    /// The sender's congestion control, new; `seed` is the flow's own.
    pub fn congestion(&self, flow: &FlowPlan, seed: u64) -> Box<dyn CongestionController> {
        self.sender.make(flow, seed)
    }

    /// How the listening socket tells of marks, where the sender's congestion control is `congestion`.
    pub fn feedback(&self, congestion: &dyn CongestionController) -> Feedback {
        match self.listener {
            Some(entry) => Feedback::of(&*(entry.new)(&cc::Options::default())),
            None => Feedback::of(congestion),
        }
    }
}

impl<'a> CheckedPlan<'a> {
    /// The plan as it was given.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
    /// The kernel profile with its overrides.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }
    /// Most packets of data that a trial carries: what the path's rate, the applications and the windows admit in its time. A trial takes about a
    /// microsecond of a CPU for each.
    pub fn most_packets(&self) -> u64 {
        size::packets(&self.plan, &self.kernel)
    }
    /// The pipes of its network and the routes through them.
    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }
    /// The flows, each with what makes its congestion controls.
    pub(crate) fn flows(&self) -> impl Iterator<Item = (&FlowPlan, &FlowControl<'a>)> {
        self.plan.flows.iter().zip(&self.controls)
    }
    /// The entries of the transfers, each with what makes its congestion controls.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = (&TransfersPlan, &FlowControl<'a>)> {
        self.plan.transfers.iter().zip(&self.transfer_controls)
    }
}

impl Plan {
    /// Checks a plan whose congestion controls are all in the registry.
    pub fn check(self) -> Result<CheckedPlan<'static>, PlanError> {
        self.check_with(&Controls::new())
    }

    /// Checks a plan that may name congestion controls of `controls`.
    pub fn check_with<'a>(self, controls: &Controls<'a>) -> Result<CheckedPlan<'a>, PlanError> {
        let kernel = self.check_without_controls()?;
        let flow_controls: Result<Vec<_>, _> = self.flows.iter().map(|f| control(f, controls)).collect();
        let transfer_controls: Result<Vec<_>, _> = self.transfers.iter().map(|t| control(&t.flow, controls)).collect();
        let topology = Topology::of(&self);
        Ok(CheckedPlan { controls: flow_controls?, transfer_controls: transfer_controls?, plan: self, kernel, topology })
    }

    /// Checks all of a plan but its congestion controls, for engines that have their own; gives the kernel profile with its overrides.
    pub fn check_without_controls(&self) -> Result<Kernel, PlanError> {
        if self.duration_ns == 0 || self.duration_ns > MAX_DURATION {
            return refuse("duration", "must be above 0 and at most one day; for example 10s");
        }
        if !(Description::LEAST_MTU..=65_535).contains(&self.mtu) {
            return refuse("mtu", "must be between 128 and 65535 bytes; Ethernet's is 1500");
        }
        let other_traffic = !self.transfers.is_empty() || !self.probes.is_empty();
        if (self.flows.is_empty() && !other_traffic) || self.flows.len() > MAX_FLOWS {
            return refuse("flows", format!("{} flows cannot run; give 1 to {MAX_FLOWS}", self.flows.len()));
        }
        for (name, path) in self.paths() {
            if let Err(e) = path.validate() {
                return refuse(format!("{name}: {}", e.field), e.fix);
            }
        }
        self.check_places()?;
        for f in self.flows.iter().chain(self.transfers.iter().map(|t| &t.flow)) {
            check_flow(f, self.duration_ns)?;
        }
        traffic::check(self)?;
        let kernel = kernel::read(&self.kernel)?;
        size::check(self, &kernel)?;
        Ok(kernel)
    }
}

/// Finds what makes a flow's congestion controls.
fn control<'a>(flow: &FlowPlan, controls: &Controls<'a>) -> Result<FlowControl<'a>, PlanError> {
    let unknown = |field, name: &str, known: &Controls<'_>| {
        refuse(field, format!("no congestion control '{name}'; there are {}", known.names().join(", ")))
    };
    let Some(sender) = controls.find(&flow.cca) else { return unknown("cca", &flow.cca, controls) };
    let listener = match &flow.listener {
        None => None,
        Some(name) => match cc::find(name) {
            None => return unknown("listener", name, &Controls::new()),
            found => found,
        },
    };
    match cc::check(&flow.cca, &flow.cca_params) {
        Err((param, fix)) if matches!(sender, Control::Registry(_)) => refuse(format!("cca.{param}"), fix),
        _ => Ok(FlowControl { sender, listener }),
    }
}

/// Refuses a flow that cannot be simulated, by its field.
fn check_flow(flow: &FlowPlan, duration_ns: u64) -> Result<(), PlanError> {
    let (start, stop) = flow.span(duration_ns);
    if start >= stop {
        return refuse(
            "flows.start",
            "must be before the flow's stop and the end of the trial; start it earlier or take a longer duration",
        );
    }
    let chunk = match flow.app {
        App::Bulk { chunk } => chunk,
        App::Finite { bytes: 0, .. } => return refuse("app.bytes", "must be at least 1; leave it out for no end"),
        App::Finite { chunk, .. } => chunk,
        App::Paced { rate, .. } if !(rate.is_finite() && rate > 0.0) => {
            return refuse("app.rate", "must be more than 0 bytes a second; leave it out for no limit")
        }
        App::Paced { chunk, .. } => chunk,
        App::Respond { response: 0, .. } => return refuse("app.response", "must be at least 1 byte; for example 100kB"),
        App::Respond { chunk, .. } => chunk,
        App::OnOff { on_ns: 0, .. } => return refuse("app.on", "must be more than 0; for example 1s"),
        App::OnOff { rate, .. } if !(rate.is_finite() && rate >= 0.0) => {
            return refuse("app.rate", "must be at least 0 bytes a second; leave it out for no limit")
        }
        App::OnOff { chunk, .. } => chunk,
    };
    if chunk == 0 || chunk > 1 << 30 {
        return refuse("app.chunk", "must be between 1 byte and 1 GiB; for example 8192");
    }
    if flow.read.size == 0 {
        return refuse("read.size", "must be at least 1 byte; for example 65536");
    }
    if flow.read.delay_ns > MAX_DURATION {
        return refuse("read.delay", "must be at most one day; for example 1ms");
    }
    if matches!(flow.app, App::Respond { .. }) && flow.read.delay_ns > 0 {
        return refuse("read.delay", "must be 0 for a client of requests, which reads at once");
    }
    let Some(player) = &flow.player else { return Ok(()) };
    if !matches!(flow.app, App::Bulk { .. }) {
        return refuse("app", "must have neither rate, size, response nor on beside a player, which says what is sent");
    }
    if flow.read.delay_ns > 0 {
        return refuse("read.delay", "must be 0 for a player, which reads at once");
    }
    player.check().or_else(|(field, fix)| refuse(format!("player.{field}"), fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(fields: &str) -> String {
        let json = format!(r#"{{"duration_ns": 1000, {fields}}}"#);
        Plan::from_json(&json).unwrap().check().err().map_or_else(|| panic!("{json} was accepted"), |e| e.to_string())
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_by_its_field() {
        for (fields, problem) in [
            (r#""flows": []"#, "flows: 0 flows cannot run; give 1 to 100000"),
            (r#""flows": [{"cca": "nosuch"}]"#, "cca: no congestion control 'nosuch'; there are bbr, "),
            (r#""flows": [{"cca": "cubic", "listener": "nosuch"}]"#, "listener: no congestion control 'nosuch'"),
            (r#""flows": [{"cca": "cubic", "cca_params": {"nosuch": 1}}]"#, "cca.nosuch: is no parameter of cubic"),
            (r#""flows": [{"cca": "cubic", "start_ns": 1000}]"#, "flows.start: must be before"),
            (r#""flows": [{"cca": "cubic", "read": {"size": 0}}]"#, "read.size: must be at least"),
            (r#""flows": [{"cca": "cubic", "app": {"kind": "finite", "bytes": 0}}]"#, "app.bytes: must be at least"),
            (
                r#""flows": [{"cca": "cubic", "player": {"ladder_bps": [], "segment_ns": 4000000000, "buffer_ns": 30000000000, "abr": "bola"}}]"#,
                "player.ladder: must have 1 to",
            ),
            (r#""flows": [{"cca": "cubic"}], "kernel": "2.4""#, "kernel: no profile"),
            (r#""flows": [{"cca": "cubic"}], "mtu": 60"#, "mtu: must be between"),
        ] {
            assert!(refused(fields).starts_with(problem), "{}", refused(fields));
        }
    }

    #[test]
    fn a_path_that_cannot_run_is_refused() {
        let mut plan = Plan::from_json(r#"{"duration_ns": 1000, "flows": [{"cca": "cubic"}]}"#).unwrap();
        plan.forward
            .schedule
            .push(serde_json::from_str(r#"{"stage": 3, "change": {"kind": "set", "at": 5, "set": {"rate": 9}}}"#).unwrap());
        let problem = plan.check().err().map(|e| e.to_string()).unwrap();
        assert!(problem.starts_with("forward: "), "{problem}");
    }

    #[test]
    fn a_checked_plan_is_shared_by_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<CheckedPlan<'static>>();
    }
}
