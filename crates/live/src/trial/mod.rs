//! One trial on this machine's kernel: namespaces, the path, flows, the checks, the result.
//!
//! ```text
//! job ─→ spaces ─→ Wire and emulator | Testbed and netem ─→ Course::run ─→ check ─→ columns of samples, report
//! ```
//!
//! | Module | What it is |
//! |---|---|
//! | [`job`] | what Python asks for, and faults that a test plants |
//! | [`emulated`] | a network whose path is the emulator |
//! | [`check`] | what was asked and what happened, and what the machine did meanwhile |
//!
//! Names and units of the result are those of the virtual engine (`crates/testbed`). What it does not do: repeat a trial to the last bit.

pub mod check;
pub mod emulated;
pub mod job;
mod sys;

use crate::channel::Channel;
use crate::spaces::{self, Options};
use base64::prelude::{Engine, BASE64_STANDARD};
use check::machine::{Machine, Monitor};
use check::Check;
use emulated::Emulated;
use job::{Backend, Job};
use serde::Serialize;
use serde_json::{json, Value};
use tcpscape_base::Column;
use tcpscape_testbed::course::{time_zero, CapturePoint, Course, Finished};
use tcpscape_testbed::flows::{Buffers, Options as FlowOptions, Sleeps};
use tcpscape_testbed::network::{Network, Scope, Settings, Testbed};
use tcpscape_testbed::report::Report;
use tcpscape_testbed::sys as calls;

/// Runs the trial of a job: the report, after the samples have gone out as columns. An error is one line for the user.
pub fn run(job: Value, channel: &Channel) -> Result<Value, String> {
    let mut job: Job = serde_json::from_value(job).map_err(|e| format!("job: {e}"))?;
    for (name, value) in spaces::BRIEF {
        job.sysctls.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    let spaces = channel.enter(&Options { root: job.root }).map_err(|e| e.to_string())?;
    calls::prepare_signals();
    let (mut finished, mut check) = match job.backend {
        Backend::Emulator => emulator(&job)?,
        Backend::Netem => netem(&job)?,
    };
    check.realtime = spaces.realtime();
    check.goodput_by_second_mbps = finished.watched.flows.iter().map(|seen| check::by_second(&seen.acked)).collect();
    finished.report.caveats.extend(check.flags.iter().cloned());
    let report = serde_json::to_value(Checked { report: &finished.report, check: &check }).map_err(|e| format!("result: {e}"))?;
    for (table, columns) in finished.watched.tables(&job.plan) {
        send(table, columns, channel);
    }
    Ok(report)
}

/// What Python gets: the result, and what was found out about it.
#[derive(Serialize)]
struct Checked<'a> {
    #[serde(flatten)]
    report: &'a Report,
    check: &'a Check,
}

/// Sends a table as lines of the channel: one for each column, its bytes little endian in base64 (RFC 4648).
fn send(table: &str, columns: Vec<Column>, channel: &Channel) {
    for Column { name, kind, bytes } in columns {
        channel.send(&json!({ "event": "column", "table": table, "name": name, "type": kind.name, "data": BASE64_STANDARD.encode(bytes) }));
    }
}

fn emulator(job: &Job) -> Result<(Finished, Check), String> {
    let (mut network, zero) = Emulated::start(job)?;
    let (mut finished, machine) = watched(job, zero, &mut network)?;
    let check = network.finish(job, &mut finished, machine)?;
    Ok((finished, check))
}

fn netem(job: &Job) -> Result<(Finished, Check), String> {
    let settings = Settings { values: &job.sysctls, scope: Scope::Namespaces };
    let mut network = Testbed::build(&job.planted.plan(&job.plan), &settings, Some(job.seed)).map_err(|e| e.to_string())?;
    let zero = time_zero(&job.plan, job.seed);
    let (finished, machine) = watched(job, zero, &mut network)?;
    let mut check = Check { backend: "netem", proof: finished.report.proof.clone(), ..Check::default() };
    check.flags.extend(network.unset().iter().cloned());
    check.of_machine(job, machine);
    Ok((finished, check))
}

/// The course of the trial with the machine under observation.
fn watched(job: &Job, zero: u64, network: &mut dyn Network) -> Result<(Finished, Machine), String> {
    let monitor = Monitor::start(job.planted.clock_step).map_err(|e| format!("thread: {e}"))?;
    let buffers = if job.force_buffers { Buffers::Forced } else { Buffers::Allowed };
    let captures: Vec<_> =
        job.pcap.iter().filter(|_| job.backend == Backend::Netem).map(|file| (CapturePoint::Sender, file.clone())).collect();
    let options = FlowOptions { buffers, cpu: true, sleeps: Sleeps::Plain };
    let is_proved = job.backend == Backend::Netem;
    let course = Course { plan: &job.plan, seed: job.seed, zero, sample_ns: job.sample_ns, options, captures: &captures, is_proved };
    let finished = course.run(network).map_err(|e| e.to_string())?;
    let machine = monitor.finish(&finished.flows, job.plan.duration_ns);
    Ok((finished, machine))
}
