//! A plan that can be simulated: read and validated once, shared by the trials of all its seeds.
//!
//! What every trial of a plan needs is worked out here: the kernel profile, the pipes of its network and the routes through
//! them, and for each flow what makes its congestion control. A [`CheckedPlan`] does not change and can be shared by threads.

use crate::controls::{Control, Controls};
use crate::engine::Pipes;
use tcpscape_base::Kernel;
use tcpscape_plan::{refuse, FlowPlan, Plan, PlanError, TransfersPlan};
use tcpscape_tcp::cc::{self, CongestionController};
use tcpscape_tcp::Feedback;

/// A plan that passed every check, with what its trials share. `'a` is the life of congestion controls from outside.
pub struct CheckedPlan<'a> {
    plan: Plan,
    kernel: Kernel,
    pipes: Pipes,
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
    /// Checks a plan that may name congestion controls of `controls`.
    pub fn with_controls(plan: Plan, controls: &Controls<'a>) -> Result<CheckedPlan<'a>, PlanError> {
        let kernel = plan.check()?;
        let flow_controls: Result<Vec<_>, _> = plan.flows.iter().map(|f| control(f, controls)).collect();
        let transfer_controls: Result<Vec<_>, _> = plan.transfers.iter().map(|t| control(&t.flow, controls)).collect();
        let pipes = Pipes::of(&plan);
        Ok(CheckedPlan { controls: flow_controls?, transfer_controls: transfer_controls?, plan, kernel, pipes })
    }
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
        self.plan.most_packets(&self.kernel)
    }
    /// The pipes of its network and the routes through them.
    pub(crate) fn pipes(&self) -> &Pipes {
        &self.pipes
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

impl CheckedPlan<'static> {
    /// Checks a plan whose congestion controls are all in the registry.
    pub fn new(plan: Plan) -> Result<CheckedPlan<'static>, PlanError> {
        CheckedPlan::with_controls(plan, &Controls::new())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(fields: &str) -> String {
        let json = format!(r#"{{"duration_ns": 1000, {fields}}}"#);
        CheckedPlan::new(Plan::from_json(&json).unwrap()).err().map_or_else(|| panic!("{json} was accepted"), |e| e.to_string())
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
        let problem = CheckedPlan::new(plan).err().map(|e| e.to_string()).unwrap();
        assert!(problem.starts_with("forward: "), "{problem}");
    }

    #[test]
    fn a_checked_plan_is_shared_by_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<CheckedPlan<'static>>();
    }
}
