//! Whether a plan can run, and by which field it cannot.

use crate::plan::{refuse, App, FlowPlan, Plan, PlanError};
use crate::topology::Topology;
use crate::{kernel, size, traffic};
use tcpscape_base::Kernel;
use tcpscape_path::Description;

/// Longest trial, one day.
const MAX_DURATION: u64 = 86_400 * 1_000_000_000;
/// Most of each time of a clock, ns.
const MAX_STEP: u64 = 1_000_000;
/// Most flows in one trial.
const MAX_FLOWS: usize = 100_000;

impl Plan {
    /// Checks all of a plan but its congestion controls, of which each engine has its own; gives the kernel profile with its overrides.
    pub fn check(&self) -> Result<Kernel, PlanError> {
        if self.duration_ns == 0 || self.duration_ns > MAX_DURATION {
            return refuse("duration", "must be above 0 and at most one day; for example 10s");
        }
        if !(Description::LEAST_MTU..=65_535).contains(&self.mtu) {
            return refuse("mtu", "must be between 128 and 65535 bytes; Ethernet's is 1500");
        }
        if self.clock.is_some_and(|clock| {
            let most = clock.step_ns.max(clock.timer_ns).max(clock.wake_ns);
            clock.phase_ns >= clock.step_ns || clock.timer_ns == 0 || most > MAX_STEP
        }) {
            return refuse(
                "clock",
                format!("step_ns and timer_ns must be above 0, phase_ns below step_ns, and all of it at most {MAX_STEP} ns"),
            );
        }
        let other_traffic = !self.transfers.is_empty() || !self.probes.is_empty();
        if (self.flows.is_empty() && !other_traffic) || self.flows.len() > MAX_FLOWS {
            return refuse("flows", format!("{} flows cannot run; give 1 to {MAX_FLOWS}", self.flows.len()));
        }
        for way in Topology::of(self).ways() {
            if let Err(e) = way.path.validate() {
                return refuse(format!("{}: {}", way.field(), e.field), e.fix);
            }
        }
        self.check_places()?;
        for f in self.connections() {
            check_flow(f, self.duration_ns)?;
        }
        traffic::check(self)?;
        let kernel = kernel::read(&self.kernel)?;
        size::check(self, &kernel)?;
        Ok(kernel)
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
