//! A network whose path is the emulator: sender, middle and receiver, and in the middle a thread that copies frames.
//!
//! Where the first stage is the sender's own queue, super-packets reach it whole, as they do in Linux with segmentation offload switched off at
//! the device, and are cut behind it. How it differs from such a host: the emulator's queue is beyond the device, so it never holds the sender
//! back (TCP small queues).

use super::check::machine::Machine;
use super::check::Check;
use super::job::{Job, SuperPackets};
use crate::emulator::{Emulator, EmulatorOptions, Port, Running};
use crate::link::capture::{self, write_pcapng, About};
use crate::link::{caveats, Link, LinkOptions, Whole};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use tcpscape_path::{Direction, Host, StageStats};
use tcpscape_plan::results::{QueueAccount, QueueReport};
use tcpscape_plan::samples::QueueSamples;
use tcpscape_plan::{Plan, Topology, LEFT_HOST};
use tcpscape_testbed::course::{time_zero, Finished};
use tcpscape_testbed::network::offload::Offload;
use tcpscape_testbed::network::wire::{End, Wire};
use tcpscape_testbed::network::{Network, Site, TestbedError};

/// The network; dropping it takes it down.
pub struct Emulated {
    wire: Wire,
    emulator: Running,
}

impl Emulated {
    /// Builds the network and lets the emulator run; also gives the trial's time 0.
    pub fn start(job: &Job) -> Result<(Emulated, u64), String> {
        let plan = job.planted.plan(&job.plan);
        let mut wire = Wire::build(&plan, &job.sysctls).map_err(|e| e.to_string())?;
        let at_host = !plan.offload && plan.forward.stages.first().is_some_and(|s| s.at == Host::Sender);
        if at_host {
            wire.pass_whole().map_err(|e| e.to_string())?;
        }
        if let Some(place) = job.planted.super_packets {
            plant(place, &wire)?;
        }
        let zero = time_zero(&plan, job.seed);
        let options = LinkOptions {
            seed: job.seed,
            merge: plan.offload || job.planted.super_packets == Some(SuperPackets::Link),
            whole: match (plan.offload, at_host) {
                (true, _) => Whole::Everywhere,
                (false, true) => Whole::AtHost,
                (false, false) => Whole::Nowhere,
            },
            capture: job.pcap.is_some().then_some(tcpscape_capture::WHOLE),
            waits: false,
            ahead: false,
        };
        let link = Link::new(&plan.forward, &plan.reverse, &options).map_err(|e| e.to_string())?;
        let port = |device, super_packets| Port::open(wire.middle(), device, super_packets).map_err(|e| e.to_string());
        let [near, far] = Wire::MIDDLE;
        let ports = [port(near, plan.offload || at_host)?, port(far, plan.offload)?];
        let emulator = Emulator::start(link, ports, &EmulatorOptions { zero: Some(zero), ..EmulatorOptions::default() });
        let emulator = emulator.map_err(|e| format!("the emulator cannot start: {e}"))?;
        Ok((Emulated { wire, emulator }, zero))
    }

    /// The accounts of the queues so far.
    fn stats(&self) -> Result<[Vec<StageStats>; 3], TestbedError> {
        let stats = self.emulator.with(|_, link| link.stats());
        stats.ok_or_else(|| TestbedError::Path("the emulator has ended before the trial".into()))
    }

    /// Ends the emulator, writes its packets where they were asked for, and judges the trial, whose queues are those at the emulator's end.
    pub fn finish(self, job: &Job, finished: &mut Finished, machine: Machine) -> Result<Check, String> {
        let zero = self.emulator.zero();
        let (report, link) = self.emulator.stop();
        if let Some(file) = &job.pcap {
            write_packets(file, &link, job.seed, zero).map_err(|e| format!("pcap: {}: {e}", file.display()))?;
        }
        let mut check = Check { backend: "emulator", ..Check::default() };
        check.flags.extend(job.pcap.as_ref().and_then(|_| capture::missing(&link)));
        check.flags.extend(self.wire.unset().iter().cloned());
        check.totals = Direction::BOTH.map(|d| (d.name(), link.totals(d))).into();
        check.emulator = Some(report);
        check.of_emulator(job, finished, link.stats());
        finished.report.queues = reports(link.stats());
        for (direction, path) in Direction::BOTH.into_iter().zip(job.plan.paths()) {
            if job.plan.connections().any(|flow| flow.up == (direction == Direction::Reverse)) {
                check.flags.extend(caveats(direction, path));
            }
        }
        check.flags.extend(Direction::BOTH.iter().flat_map(|&d| link.totals(d).unasked(d)));
        check.of_machine(job, machine);
        Ok(check)
    }
}

/// The packets as the emulator saw them, with its decisions; times are of the wall clock.
fn write_packets(file: &Path, link: &Link, seed: u64, zero: u64) -> std::io::Result<()> {
    let comment = format!("tcpscape, live engine, seed {seed}: what the emulator saw and decided");
    let about = About { program: "tcpscape", comment: &comment, zero: zero.saturating_add_signed(super::sys::offset().0) };
    write_pcapng(BufWriter::new(File::create(file)?), link, &about)
}

/// Lets super-packets pass at a device although the plan asks for none.
fn plant(place: SuperPackets, wire: &Wire) -> Result<(), String> {
    let (namespace, device, offload) = match place {
        SuperPackets::Sender => (wire.sender(), "fwd", Offload::Tso),
        SuperPackets::Middle => (wire.middle(), "fwd", Offload::Gso),
        SuperPackets::Receiver => (wire.receiver(), "rev", Offload::Gro),
        SuperPackets::Link => return Ok(()),
    };
    let set = || {
        let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
        offload.set(std::os::fd::AsFd::as_fd(&socket), device, true)
    };
    crate::spaces::within(namespace, set).and_then(|done| done).map_err(|e| format!("planted: {device}: {e}"))
}

impl Network for Emulated {
    fn hosts(&self, _: usize) -> [Site<'_>; 2] {
        let left = Site { namespace: self.wire.sender(), address: End::Sender.address() };
        [left, Site { namespace: self.wire.receiver(), address: End::Receiver.address() }]
    }
    /// The emulator follows the plan's schedule itself.
    fn next_change(&self) -> Option<u64> {
        None
    }
    fn change(&mut self, _: u64) -> Result<(), TestbedError> {
        Ok(())
    }
    fn queues(&mut self) -> Result<Vec<QueueReport>, TestbedError> {
        self.stats().map(reports)
    }
    fn sample_queues(&mut self, _: &Plan, t: u64, into: &mut QueueSamples) -> Result<(), TestbedError> {
        let [host, network, reverse] = self.stats()?;
        let pipes = [(LEFT_HOST, host), (Topology::pipe(0), network), (Topology::pipe(1), reverse)];
        pipes.iter().for_each(|(pipe, queues)| into.push_pipe(t, *pipe, queues));
        Ok(())
    }
    fn faults(&mut self) -> Result<Vec<String>, TestbedError> {
        self.wire.faults()
    }
}

/// The accounts of the queues of the sender's host, of the network and of the way back.
fn reports([host, network, reverse]: [Vec<StageStats>; 3]) -> Vec<QueueReport> {
    let forward = host.into_iter().chain(network).map(|stats| (Direction::Forward, stats));
    let all = forward.chain(reverse.into_iter().map(|stats| (Direction::Reverse, stats)));
    all.map(|(direction, stats)| QueueReport::Own(QueueAccount { stats, direction, link: None, pipe: None })).collect()
}
