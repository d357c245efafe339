//! Flows of ours beside the user's programs: the plan's, with their applications, on the same path.
//!
//! Data that travel down come from the far end, as what a program downloads does; data that travel up come from the command's end.

use super::cca;
use crate::spaces;
use std::io;
use std::thread;
use tcpscape_base::mix;
use tcpscape_plan::{FlowPlan, Plan};
use tcpscape_testbed::flows::{Clock, Flow, Options, Running, Sleeps};
use tcpscape_testbed::network::wire::{End, Wire};
use tcpscape_testbed::sys;

/// Between two times that a flow is told to stop, ns.
const AGAIN: u64 = 1_000_000;

/// Flows whose sockets are there, and which do not send yet.
pub struct Beside<'a> {
    plan: &'a Plan,
    flows: Vec<Flow>,
    options: Options,
}

impl<'a> Beside<'a> {
    /// Their sockets at both ends. An error is one line for the user.
    pub fn prepare(plan: &'a Plan, wire: &Wire, seed: u64, is_virtual: bool) -> Result<Beside<'a>, String> {
        plan.flows.iter().try_for_each(|flow| cca::check("mix", &flow.cca))?;
        let options = Options { sleeps: if is_virtual { Sleeps::Chained } else { Sleeps::Plain }, ..Options::default() };
        let made = plan.flows.iter().enumerate().map(|(i, flow)| {
            let [from, to] = ends(flow).map(|end| if end == End::Sender { wire.sender() } else { wire.receiver() });
            let listener = spaces::within(to, || Flow::listen(flow, i, options)).and_then(|made| made)?;
            spaces::within(from, || Flow::dial(flow, listener, options, mix(seed, i as u64 + 1))).and_then(|made| made)
        });
        let flows = made.collect::<io::Result<Vec<Flow>>>().map_err(|e| format!("mix: {e}; leave it out"))?;
        Ok(Beside { plan, flows, options })
    }

    /// Starts them, at time 0 by CLOCK_MONOTONIC, ns. They end with this process, or when their plan says.
    pub fn start(self, zero: u64) -> Result<(), String> {
        sys::on_signal(libc::SIGUSR1, sys::nothing, 0); // which ends a blocking call of a flow that stops
        let plan = self.plan;
        let noise = if self.options.sleeps == Sleeps::Chained { plan.wake_noise_ns } else { 0 };
        let clock = Clock { zero, end: plan.duration_ns, slack: plan.timer_slack_ns, noise };
        for (i, (flow, of)) in self.flows.into_iter().zip(&plan.flows).enumerate() {
            let running = flow.start(i, ends(of)[1].address(), clock).map_err(failed)?;
            let stop = zero.saturating_add(of.stop_ns);
            thread::Builder::new().name("stop".into()).spawn(move || stop_at(&running, stop)).map_err(failed)?;
        }
        Ok(())
    }
}

fn failed(e: io::Error) -> String {
    format!("mix: {e}; write fewer flows")
}

/// Where a flow's data begin, and where they end.
fn ends(flow: &FlowPlan) -> [End; 2] {
    if flow.up {
        [End::Sender, End::Receiver]
    } else {
        [End::Receiver, End::Sender]
    }
}

/// Ends a flow at a moment, unless it ends before.
fn stop_at(running: &Running, at: u64) {
    sys::nap_until(at);
    while !running.flow.writer_ended() {
        running.stop();
        sys::nap(AGAIN);
    }
    running.hang_up();
}
