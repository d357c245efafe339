//! The channel to the host: jobs come as lines of a FIFO of the host's, results go into files of a shared directory.
//!
//! The FIFO is read through `/dev/dsp`, User-Mode Linux's audio relay (arch/um/drivers/hostaudio): a read of it is a plain
//! blocking `read(2)` of the host, so a waiting guest costs nothing and its virtual time stands still; end-of-file means that
//! the host is gone. Lines to the host go to the console.
//!
//! With `TCPSCAPE_ONCE=7` on the kernel's command line there is only job 7, and the guest ends after it. It says nothing before: when
//! the host reads a line is the host's affair, but it interrupts the guest and so changes its random numbers.

use crate::programs;
use crate::sys;
use crate::trial::{self, Job};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use tcpscape_base::Column;
use tcpscape_testbed::report::{Report, Table};
use tcpscape_testbed::sys::prepare_signals;

/// Where the guest sees the host's directory.
const HOST: &str = "/host";
/// Keeps drivers of tunnels from adding a device to every new namespace. Linux: Documentation/admin-guide/sysctl/net.rst.
const NO_TUNNELS: &str = "/proc/sys/net/core/fb_tunnels_only_for_init_net";
/// Memory that all sockets of TCP may take: from where it is saved, from where buffers shrink, most; pages of 4 KiB. Linux gives TCP a sixteenth of a
/// machine's memory (ip-sysctl), which of this small guest's are 32 MB: two large buffers shrank, which no server's would. So it is all that the guest
/// has, the sixteenth of a machine of 8 GB.
const TCP_MEMORY: (&str, &str) = ("/proc/sys/net/ipv4/tcp_mem", "98304 131072 262144");
/// The FIFO's device.
const JOBS: &str = "/dev/dsp";

/// Serves jobs until the host closes the channel.
pub fn serve() -> io::Result<()> {
    sys::mount("proc", "/proc", "proc", "")?;
    sys::mount("none", HOST, "hostfs", &shared().map_err(io::Error::other)?)?;
    prepare_signals();
    let _ = fs::write(NO_TUNNELS, "1"); // not all kernels have tunnels
    fs::write(TCP_MEMORY.0, TCP_MEMORY.1)?;
    if let Ok(id) = std::env::var("TCPSCAPE_ONCE") {
        serve_one(&id, &File::open("/proc/self/ns/net")?)?;
        say(&format!("done {id}"));
        return Ok(());
    }
    say(&format!("ready {}", greeting()));
    let home = File::open("/proc/self/ns/net")?;
    let jobs = BufReader::new(File::open(JOBS)?);
    for line in jobs.lines() {
        let line = line?;
        let id = line.trim();
        if !id.is_empty() {
            serve_one(id, &home)?;
            say(&format!("done {id}"));
        }
    }
    Ok(())
}

/// The directory that the host shares, a path of the host's.
fn shared() -> Result<String, String> {
    std::env::var("TCPSCAPE_IO").map_err(|_| "TCPSCAPE_IO is not on the kernel's command line".to_owned())
}

/// A line to the host.
pub fn say(what: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "@tcpscape {what}");
    let _ = out.flush();
}

fn greeting() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cca = read("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let names: Vec<&str> = cca.split_whitespace().collect();
    serde_json::json!({ "release": read("/proc/sys/kernel/osrelease"), "cca": names }).to_string()
}

fn serve_one(id: &str, home: &File) -> io::Result<()> {
    let file = |suffix: &str| PathBuf::from(format!("{HOST}/{id}.{suffix}"));
    let answer = match answer(id, home, &file) {
        Ok(answer) => answer,
        Err(why) => serde_json::json!({ "error": why }).to_string(),
    };
    fs::write(file("json"), answer)
}

/// What a job asks for: a trial, a program of the host's, or `{"probe": "netem"}`, what this kernel's netem does.
fn answer(id: &str, home: &File, file: &dyn Fn(&str) -> PathBuf) -> Result<String, String> {
    let text = fs::read_to_string(file("job")).map_err(|e| format!("job: {e}"))?;
    let job: serde_json::Value = serde_json::from_str(&text).map_err(|e| format!("job: {e}"))?;
    if job["probe"] == "netem" {
        let report = tcpscape_testbed::capabilities::netem::probe().map_err(|e| format!("probe: {e}"))?;
        return Ok(serde_json::json!({ "probe": report }).to_string());
    }
    if job.get("program").is_some() {
        let job: programs::Job = serde_json::from_value(job).map_err(|e| format!("job: {e}"))?;
        let read = File::open(JOBS).map_err(|e| format!("{JOBS}: {e}"))?;
        return programs::run(&job, &file("log"), read, &shared()?).map(|()| "{}".to_owned());
    }
    let job: Job = serde_json::from_str(&text).map_err(|e| format!("job: {e}"))?;
    let report = run(id, &job, home, file)?;
    serde_json::to_string(&report).map_err(|e| format!("result: {e}"))
}

fn run(id: &str, job: &Job, home: &File, file: &dyn Fn(&str) -> PathBuf) -> Result<Report, String> {
    let captures: Vec<_> = job.pcap.iter().map(|&place| (place, file(&format!("{}.pcap", place.name())))).collect();
    let (mut report, watched) = trial::run(job, home, &captures).map_err(|e| e.to_string())?;
    for (name, columns) in watched.tables(&job.plan) {
        let table = write_table(&file(name), format!("{id}.{name}"), columns).map_err(|e| format!("result: {e}"))?;
        report.tables.insert(name, table);
    }
    Ok(report)
}

fn write_table(path: &Path, file: String, columns: Vec<Column>) -> io::Result<Table> {
    let rows = columns.first().map_or(0, |c| c.bytes.len() / c.kind.size);
    let mut out = File::create(path)?;
    let mut named = Vec::with_capacity(columns.len());
    for column in columns {
        out.write_all(&column.bytes)?;
        named.push((column.name, column.kind.name));
    }
    Ok(Table { file, rows, columns: named })
}
