//! Probes and transfers of a trial beside its flows: made, started, and their results put into the report.

use crate::flows::{Clock, Options};
use crate::network::{ends, io_at, Network, TestbedError};
use crate::probes::{self, Probe};
use crate::report::Report;
use crate::sys;
use crate::transfers::{self, Transfers};
use crate::watch::probe_samples;
use tcpscape_plan::samples::ProbeSamples;
use tcpscape_plan::transfers::draw;
use tcpscape_plan::Plan;

/// What a trial has beside flows, with its sockets.
pub struct Traffic<'a> {
    plan: &'a Plan,
    options: Options,
    probes: Vec<Probe>,
    transfers: Vec<Transfers>,
}

/// The threads of all of it.
pub struct Running {
    probes: Vec<probes::Running>,
    transfers: Vec<transfers::Running>,
}

impl<'a> Traffic<'a> {
    /// The sockets that are there from the beginning; the calling thread ends in one of the network's namespaces.
    pub fn prepare(plan: &'a Plan, seed: u64, options: Options, network: &dyn Network) -> Result<Traffic<'a>, TestbedError> {
        let mut traffic = Traffic { plan, options, probes: Vec::new(), transfers: Vec::new() };
        for (i, entry) in plan.transfers.iter().enumerate() {
            let [_, to] = ends(network, entry.flow.place, entry.flow.up);
            let port = plan.flows.len() + i;
            let drawn = draw(entry, i, seed, plan.duration_ns);
            let prepared = Transfers::prepare(entry, drawn, port, to, options);
            traffic.transfers.push(prepared.map_err(io_at("transfers"))?);
        }
        for (i, probe) in plan.probes.iter().enumerate() {
            let prepared = Probe::prepare(probe, i, ends(network, probe.place, probe.up));
            traffic.probes.push(prepared.map_err(io_at("probe"))?);
        }
        Ok(traffic)
    }

    /// Starts it; the calling thread ends in one of the network's namespaces.
    pub fn start(self, network: &dyn Network, clock: Clock) -> Result<Running, TestbedError> {
        let mut running = Running { probes: Vec::new(), transfers: Vec::new() };
        for (entry, transfers) in self.plan.transfers.iter().zip(self.transfers) {
            let [from, _] = ends(network, entry.flow.place, entry.flow.up);
            sys::enter(from.namespace).map_err(io_at("namespace"))?;
            running.transfers.push(transfers.start(clock).map_err(io_at("transfers"))?);
        }
        for probe in self.probes {
            running.probes.push(probe.start(clock, self.options).map_err(io_at("probe"))?);
        }
        Ok(running)
    }
}

impl Running {
    /// Ends it, after the end of the trial.
    pub fn finish(self, report: &mut Report, samples: &mut ProbeSamples) {
        let mut packets = Vec::new();
        for probe in self.probes {
            let finished = probe.finish();
            report.probes.push(finished.summary);
            report.caveats.extend(finished.trouble);
            packets.push(finished.samples);
        }
        *samples = probe_samples(&packets);
        for transfers in self.transfers {
            let (summary, troubles) = transfers.finish();
            report.transfers.push(summary);
            report.caveats.extend(troubles);
        }
    }
}
