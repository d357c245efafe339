//! Programs of the host's in the guest: the live engine's program, with a command of the user's behind an emulated path.
//!
//! Their root is the host's, read through hostfs, under a layer in memory that takes what is written (overlayfs): nothing of the host's is
//! changed but the directories that the job names. Devices, processes and the clock are the guest's, so their time is virtual.
//!
//! What they write goes into one log, in the order in which it was written: files of frames, each a kind, a length and as many bytes. The host
//! takes a file away when it has read it; the guest waits for that where it is two files ahead, and virtual time with it. A wait is a read of the
//! host's FIFO, so that nothing of it is seen in the guest.
//!
//! ```text
//! tcpscape-live emulate ─→ command, servers         stdout, stderr, messages ─→ log 0, log 1, … ─→ host
//! ```
//!
//! Source: hostfs and overlayfs in Documentation/filesystems, proc_sys_kernel(5) threads-max.

use crate::sys;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tcpscape_testbed::sys::{now, pass_on, pipe};

/// What the host asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The live engine's program, a path of the host.
    pub program: PathBuf,
    /// Its mode.
    pub mode: String,
    /// The mode's job.
    pub job: Value,
    /// Working directory, a path of the host.
    pub directory: PathBuf,
    /// Environment.
    pub environment: BTreeMap<String, String>,
    /// Directories of the host that the programs may change.
    pub bind: Vec<PathBuf>,
    /// Most processes and threads.
    pub most_processes: u32,
}

/// What a frame is of.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The program's messages.
    Message = 0,
    /// Standard output of the programs.
    Output = 1,
    /// Standard error of the programs.
    Error = 2,
    /// Time since the start, ns, as eight bytes, low first.
    Time = 3,
}

/// Bytes of a file of the log, and most of a frame.
const FILE: usize = 8 << 20;
const FRAME: usize = 64 << 10;
/// Between two frames with the time.
const TICK: Duration = Duration::from_secs(1);
/// Where the programs see the host's directory.
const SHARED: &str = "/run/tcpscape";
/// Where the host's root, the layer over it and both together are.
const HOST_ROOT: &str = "/hostroot";
const LAYER: &str = "/layer";
const ROOT: &str = "/root";
/// Most of the memory that files in it may take.
const LAYER_SIZE: &str = "size=60%";
/// Device nodes: name, major, minor. Source: Documentation/admin-guide/devices.txt.
const NODES: [(&str, u32, u32); 6] = [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)];
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// The log of one job.
struct Log {
    /// The path of its files without their number.
    path: PathBuf,
    number: usize,
    file: File,
    written: usize,
    /// Lines of the host's, one for each file that it has read.
    read: BufReader<File>,
}

impl Log {
    fn create(path: &Path, read: File) -> io::Result<Log> {
        Ok(Log { path: path.to_owned(), number: 0, file: File::create(numbered(path, 0))?, written: 0, read: BufReader::new(read) })
    }

    fn write(&mut self, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        if self.written >= FILE {
            if self.number > 0 {
                self.read.read_line(&mut String::new())?;
            }
            self.number += 1;
            self.file = File::create(numbered(&self.path, self.number))?;
            self.written = 0;
        }
        let mut frame = vec![kind as u8];
        frame.extend((bytes.len() as u32).to_le_bytes());
        frame.extend(bytes);
        self.written += frame.len();
        self.file.write_all(&frame)
    }
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(number.to_string());
    name.into()
}

/// Runs a job: everything that comes of it goes into the files `log`, to whose name a number is added. `read`: the host's FIFO; `shared`: the
/// host's directory.
pub fn run(job: &Job, log: &Path, read: File, shared: &str) -> Result<(), String> {
    let _ = fs::write("/proc/sys/kernel/threads-max", job.most_processes.to_string()); // only a bound
    build(job, shared)
        .map_err(|e| format!("emulate: this kernel makes no root for programs: {e}; build it again with `tcpscape kernel build`"))?;
    let log = Log::create(log, read).map_err(|e| format!("emulate: the log: {e}; make room where TMPDIR is"))?;
    let log = Arc::new(Mutex::new(log));
    Started::new(job, &log).and_then(Started::wait).map_err(|e| format!("emulate: {}: {e}; report it", job.program.display()))
}

/// The program, and the threads that write its log.
struct Started {
    child: Child,
    /// Until it is closed, the program goes on.
    _input: File,
    copies: [thread::JoinHandle<()>; 3],
}

impl Started {
    fn new(job: &Job, log: &Arc<Mutex<Log>>) -> io::Result<Started> {
        let [input, messages, output, errors] = [pipe()?, pipe()?, pipe()?, pipe()?];
        let mut command = Command::new(&job.program);
        command.arg(&job.mode).env_clear().envs(&job.environment);
        sys::start_within(&mut command, ROOT, &job.directory)?;
        for (option, theirs) in [("--in", &input.0), ("--out", &messages.1)] {
            pass_on(theirs.as_raw_fd())?;
            command.arg(option).arg(theirs.as_raw_fd().to_string());
        }
        let child = command.stdin(Stdio::null()).stdout(output.1).stderr(errors.1).spawn()?;
        drop((command, input.0, messages.1)); // their ends of the pipes
        let copies = [(Kind::Message, messages.0), (Kind::Output, output.0), (Kind::Error, errors.0)];
        let copies = copies.map(|(kind, from)| copy(from.into(), kind, Arc::clone(log)));
        tell_time(Arc::clone(log));
        let mut input = File::from(input.1);
        writeln!(input, "{}", job.job)?;
        Ok(Started { child, _input: input, copies })
    }

    /// Waits for its end and that of everything that writes to its streams. How it ended is in its messages.
    fn wait(mut self) -> io::Result<()> {
        self.child.wait()?;
        for each in self.copies {
            let _ = each.join(); // it has no result
        }
        Ok(())
    }
}

/// Writes the time into the log every second.
fn tell_time(log: Arc<Mutex<Log>>) {
    let started = now();
    thread::spawn(move || {
        while append(&log, Kind::Time, &(now() - started).to_le_bytes()).is_ok() {
            thread::sleep(TICK);
        }
    });
}

fn append(log: &Mutex<Log>, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    log.lock().unwrap_or_else(PoisonError::into_inner).write(kind, bytes)
}

/// Copies a stream into the log until its end.
fn copy(mut from: File, kind: Kind, log: Arc<Mutex<Log>>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut part = vec![0u8; FRAME];
        while let Ok(n @ 1..) = from.read(&mut part) {
            if append(&log, kind, &part[..n]).is_err() {
                return;
            }
        }
    })
}

/// The programs' root; the host's directory `shared` is at [`SHARED`] in it.
fn build(job: &Job, shared: &str) -> io::Result<()> {
    for place in [HOST_ROOT, LAYER, ROOT] {
        fs::create_dir_all(place)?;
    }
    sys::mount_read_only("none", HOST_ROOT, "hostfs", "/")?;
    sys::mount("tmpfs", LAYER, "tmpfs", LAYER_SIZE)?;
    let [upper, work] = ["upper", "work"].map(|name| format!("{LAYER}/{name}"));
    fs::create_dir_all(&upper)?;
    fs::create_dir_all(&work)?;
    sys::mount("overlay", ROOT, "overlay", &format!("lowerdir={HOST_ROOT},upperdir={upper},workdir={work}"))?;
    let there = |name: &str| format!("{ROOT}/{}", name.trim_start_matches('/'));
    for (kind, name) in [("proc", "proc"), ("sysfs", "sys"), ("tmpfs", "dev"), ("tmpfs", "run")] {
        fs::create_dir_all(there(name))?;
        sys::mount(kind, &there(name), kind, "")?;
    }
    for (name, major, minor) in NODES {
        sys::device(&there(&format!("dev/{name}")), major, minor)?;
    }
    for (to, name) in LINKS {
        symlink(to, there(&format!("dev/{name}")))?;
    }
    for name in ["dev/pts", "dev/shm"] {
        fs::create_dir_all(there(name))?;
    }
    sys::mount("devpts", &there("dev/pts"), "devpts", "ptmxmode=0666")?;
    sys::mount("tmpfs", &there("dev/shm"), "tmpfs", "")?;
    fs::set_permissions(there("dev/shm"), fs::Permissions::from_mode(0o1777))?;
    fs::create_dir_all(there(SHARED))?;
    sys::mount("none", &there(SHARED), "hostfs", shared)?;
    for each in &job.bind {
        let place = there(&each.to_string_lossy());
        fs::create_dir_all(&place)?;
        sys::mount("none", &place, "hostfs", &each.to_string_lossy())?;
    }
    Ok(())
}
