//! The mode `emulate`: a command of the user's behind an emulated path.
//!
//! ```text
//! the command ── near (10.77.1.2) ── [router] ── emulator ── far (10.77.1.3) ── servers, and ports of this host's loopback
//!                                                         └─ further hosts ── servers
//! ```
//!
//! Begin reading at [`run`]: it builds the two ends and the path, starts servers and the command, and then watches: figures go out, changes
//! come in, until the command ends. The directions are those of the engines: forward is from the command to the far end.
//!
//! | Module | What it is |
//! |---|---|
//! | `watch` | the time while the command runs |
//! | [`places`] | the hosts, their names, and a router |
//! | [`service`] | servers, and whether they listen; the router's command |
//! | [`relay`], [`host`] | ports of this host at the far end |
//! | `outside` | the world outside in place of the far end |
//! | `capture` | the packets as a file |
//! | `beside` | flows of ours beside the command |
//! | `stuck` | what programs wait for when the time is over |
//! | `cca` | the congestion control of both ends |

mod beside;
mod capture;
mod cca;
pub mod host;
mod outside;
pub mod places;
pub mod relay;
pub mod service;
mod stuck;
mod watch;

use crate::channel::Channel;
use crate::emulator::{Emulator, EmulatorOptions, Port, Running};
use crate::link::{Link, LinkOptions};
use crate::spaces::{self, Child, Options, Program, Realtime, Spaces};
use beside::Beside;
use capture::Capture;
use host::Host;
use places::Places;
use relay::Reach;
use serde::Deserialize;
use serde_json::{json, Value};
use service::{Service, Start};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use tcpscape_path::{Direction, PathSpec};
use tcpscape_plan::Plan;
use tcpscape_testbed::network::wire::Wire;
use tcpscape_testbed::sys;
use watch::Watch;

/// The job of the mode: what is to run behind which path, as Python sends it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Both directions of the path, MTU and offloads, and flows of ours beside the command.
    pub plan: Plan,
    /// Whether the plan's flows run; otherwise they are not looked at.
    #[serde(default)]
    pub has_flows: bool,
    /// Seed of the path's random streams.
    pub seed: u64,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Congestion control of the sockets at both ends; None is the kernel's.
    pub cca: Option<String>,
    /// Without a user namespace.
    pub root: bool,
    /// Whether this kernel runs in virtual time.
    pub is_virtual: bool,
    /// Names of further hosts at the far end.
    pub hosts: Vec<String>,
    /// Command line of a router between the near end and the path.
    pub router: Option<String>,
    /// Servers.
    pub serve: Vec<Served>,
    /// Ports of the far end that are ports of this host.
    pub reach: Vec<Reach>,
    /// Whether the far end is the world outside.
    pub outside: bool,
    /// Time after which the command is asked to end, ns.
    pub duration_ns: Option<u64>,
    /// File for the packets and the decisions on them.
    pub pcap: Option<PathBuf>,
    /// Time between figures while it runs, ns; None is never.
    pub live_ns: Option<u64>,
    /// A Unix socket to the process outside, for `reach`.
    pub host: Option<RawFd>,
    /// The command's standard input and output, where they are not this process's.
    pub stdin: Option<RawFd>,
    /// As `stdin`.
    pub stdout: Option<RawFd>,
}

/// A server: the host that it runs at, and its command line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Served {
    /// Name of the host.
    pub host: String,
    /// Command line of the shell.
    pub command: String,
}

/// Runs a command behind a path; the account of what passed.
pub fn run(job: Value, channel: &Channel) -> Result<Value, String> {
    let job: Job = serde_json::from_value(job).map_err(|e| format!("job: {e}; send one that this version understands"))?;
    let spaces = channel.enter(&Options { root: job.root }).map_err(|e| format!("emulate: {e}"))?;
    let capture = job.pcap.as_deref().map(Capture::create).transpose()?;
    // Theirs is the command alone: servers must not inherit them.
    let streams = [job.stdin, job.stdout].map(|fd| fd.map(spaces::inherited).transpose().map_err(not_started));
    let [stdin, stdout] = streams;
    let streams = (stdin?, stdout?);
    let mut ends = Ends::build(&job, &spaces)?;
    if job.outside {
        outside::connect(&ends.wire, channel)?;
    }
    let running = ends.connect(&job)?;
    let host = job.host.map(Host::inherited).transpose().map_err(|e| format!("reach: {e}; report it"))?.map(Arc::new);
    for &reach in &job.reach {
        let host = host.as_ref().ok_or("reach: nobody outside opens ports; report it")?;
        let listens = spaces::within(ends.wire.receiver(), || relay::serve(reach, host)).and_then(|done| done);
        listens.map_err(|e| format!("reach: port {} of the far end: {e}; choose another with FAR:HERE", reach.far))?;
    }
    let services = ends.serve(&job)?;
    let beside = job.has_flows.then(|| Beside::prepare(&job.plan, &ends.wire, job.seed, job.is_virtual)).transpose()?;
    let command = ends.start(&job, streams)?;
    beside.map(|flows| flows.start(sys::now())).transpose()?;
    running.with(|now, link| link.begin(now));
    let watch = Watch::new(&job, channel, &running);
    let ended = watch.until_the_end(command)?;
    ends.account(ended, running, services, &job, capture)
}

/// The two ends and what is between them.
struct Ends {
    wire: Wire,
    realtime: Realtime,
}

impl Ends {
    fn build(job: &Job, spaces: &Spaces) -> Result<Ends, String> {
        if let Some(cca) = &job.cca {
            cca::check("cca", cca)?;
        }
        let others = places::others(&job.hosts, job.router.is_some());
        let wire = Wire::with(&job.plan, &settings(), others).map_err(|e| format!("emulate: {e}"))?;
        if let Some(cca) = &job.cca {
            cca::set(&Places::new(&wire, &job.hosts), cca, job.outside)?;
        }
        Ok(Ends { wire, realtime: spaces.realtime() })
    }

    /// The path between the ends.
    fn connect(&mut self, job: &Job) -> Result<Running, String> {
        let ahead =
            job.is_virtual && job.plan.paths().iter().all(|path| path.foresight_ns() > 0) && self.wire.wait_for_departures().is_ok();
        let options = LinkOptions {
            seed: job.seed,
            ahead,
            merge: job.plan.offload,
            capture: job.pcap.is_some().then_some(tcpscape_capture::WHOLE),
            waits: true,
            ..LinkOptions::default()
        };
        let link = Link::new(&job.plan.forward, &job.plan.reverse, &options).map_err(|e| e.to_string())?;
        let port = |device| Port::open(self.wire.middle(), device, job.plan.offload).map_err(|e| format!("emulate: {e}"));
        let [near, far] = Wire::MIDDLE;
        let far = if job.outside { outside::DEVICE } else { far };
        let mut ports = [port(near)?, port(far)?];
        if ahead {
            ports.iter_mut().try_for_each(Port::time_departures).map_err(|e| format!("emulate: times of departure: {e}; report it"))?;
        }
        let options = EmulatorOptions { is_virtual: job.is_virtual, ..EmulatorOptions::default() };
        Emulator::start(link, ports, &options).map_err(|e| format!("emulate: the emulator's thread: {e}"))
    }

    /// Starts the servers, and then the router's command.
    fn serve(&self, job: &Job) -> Result<Vec<Service>, String> {
        let places = Places::new(&self.wire, &job.hosts);
        let start = |how: Start, host: &str, text: &str| {
            let namespace = places.namespace(host).ok_or_else(|| format!("serve: {host:?} is no host; report it"))?;
            Service::start(how, text, namespace, self.realtime, |program| places.name(program))
        };
        let served = job.serve.iter().map(|served| start(Start::Listening, &served.host, &served.command));
        served.chain(job.router.iter().map(|text| start(Start::Settled, places::ROUTER_NAME, text))).collect()
    }

    /// Starts the command at the near end.
    fn start(&self, job: &Job, (stdin, stdout): (Option<OwnedFd>, Option<OwnedFd>)) -> Result<Child, String> {
        let mut program = Program::new(&job.command, self.realtime).within(self.wire.sender());
        Places::new(&self.wire, &job.hosts).name(&mut program);
        if job.outside {
            outside::prepare(&mut program);
        }
        if let Some(stdin) = stdin {
            program.command().stdin(stdin);
        }
        if let Some(stdout) = stdout {
            program.command().stdout(stdout);
        }
        program.start().map_err(not_started)
    }

    /// What the emulation reports at its end.
    fn account(
        &mut self,
        ended: watch::Ended,
        running: Running,
        services: Vec<Service>,
        job: &Job,
        capture: Option<Capture>,
    ) -> Result<Value, String> {
        let zero = running.zero();
        let (emulator, link) = running.stop();
        let mut flags = emulator.flags(job.plan.paths().map(PathSpec::delay_ns));
        flags.extend(self.wire.faults().map_err(|e| format!("emulate: {e}"))?);
        flags.extend(self.wire.unset().iter().cloned());
        flags.extend(ended.stuck);
        flags.extend(services.into_iter().filter_map(|mut service| service.ended()));
        if let Some(capture) = capture {
            match capture.write(&link, zero, &job.command) {
                Ok(missing) => flags.extend(missing),
                Err(why) => flags.push(why),
            }
        }
        let totals = Direction::BOTH.map(|d| (d.name().to_owned(), json!(link.totals(d))));
        Ok(json!({
            "status": ended.status, "is_late": ended.is_late, "elapsed_ns": ended.elapsed_ns, "changes": ended.changes,
            "active_ns": { "forward": ended.active_ns[0], "reverse": ended.active_ns[1] },
            "link": totals.into_iter().collect::<serde_json::Map<_, _>>(), "emulator": emulator, "flags": flags,
        }))
    }
}

/// Settings of both ends: servers at any port and ping without a privilege.
fn settings() -> BTreeMap<String, String> {
    let (_, group) = spaces::identity();
    BTreeMap::from([
        ("net.ipv4.ip_unprivileged_port_start".to_owned(), "0".to_owned()),
        ("net.ipv4.ping_group_range".to_owned(), format!("{group} {group}")),
    ])
}

fn not_started(e: io::Error) -> String {
    format!("emulate: the command cannot be started: {e}")
}
