//! How late the emulator is: real TCP flows through a path that only delays, and what the emulator says of itself, as one line of JSON.
//!
//! `cargo run --release -p tcpscape-live --example lateness -- --rate 100 --seconds 10`. Beside the flows a probe sends a small UDP packet each
//! millisecond and compares the delay that it met, by the kernel's receive timestamps, with what was asked for. benches/live.py runs it
//! over rates, priorities and kinds of ports.

#![allow(unsafe_code)]

use serde_json::json;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tcpscape_base::Histogram;
use tcpscape_live::emulator::{sys, Emulator, EmulatorOptions, Lateness, Port};
use tcpscape_live::link::{Link, LinkOptions};
use tcpscape_live::spaces::{self, realtime, Spaces};
use tcpscape_path::{parse_tc, Direction, Host, PathSpec, StageSpec};
use tcpscape_plan::Plan;
use tcpscape_testbed::network::wire::{End, Wire};

const USAGE: &str = "lateness [--rate MBIT/S, 0 is bulk] [--flows N] [--delay MS] [--seconds S] [--mtu BYTES] \
                     [--super] [--ordinary] [--words NETEM] [--window BYTES]";
const TCP: u16 = 5001;
const UDP: u16 = 5002;
/// A probe packet each so many ns, with so many bytes.
const PROBE_NS: u64 = 1_000_000;
const PROBE: usize = 100;

struct Options {
    rate_mbit: f64,
    flows: usize,
    delay_ms: f64,
    seconds: u64,
    mtu: u32,
    super_packets: bool,
    realtime: bool,
    words: String,
    window: u64,
}

fn options() -> Result<Options, String> {
    let (mut o, mut words) = (
        Options {
            rate_mbit: 100.0,
            flows: 1,
            delay_ms: 25.0,
            seconds: 10,
            mtu: 1500,
            super_packets: false,
            realtime: true,
            words: String::new(),
            window: 0,
        },
        std::env::args().skip(1),
    );
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word}: a value is missing; {USAGE}"));
        let number = |text: String| text.parse::<f64>().map_err(|_| format!("{text:?} is no number; {USAGE}"));
        match word.as_str() {
            "--rate" => o.rate_mbit = number(value()?)?,
            "--flows" => o.flows = number(value()?)? as usize,
            "--delay" => o.delay_ms = number(value()?)?,
            "--seconds" => o.seconds = number(value()?)? as u64,
            "--mtu" => o.mtu = number(value()?)? as u32,
            "--window" => o.window = number(value()?)? as u64,
            "--words" => o.words = value()?,
            "--super" => o.super_packets = true,
            "--ordinary" => o.realtime = false,
            _ => return Err(format!("{word:?} is no option; {USAGE}")),
        }
    }
    Ok(o)
}

fn path(o: &Options) -> PathSpec {
    let words = format!("netem delay {}ms limit 10000000 {}", o.delay_ms, o.words);
    PathSpec { stages: vec![StageSpec { qdisc: parse_tc(&words).expect("tc's words"), at: Host::Router }], schedule: Vec::new() }
}

/// Does something in a namespace, on a thread of its own.
fn within<T: Send>(namespace: BorrowedFd<'_>, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|s| {
        s.spawn(|| tcpscape_testbed::sys::enter(namespace).map(|()| work()).expect("a namespace of our own")).join().expect("no panic")
    })
}

/// Both hosts, and the ports between them.
fn hosts(o: &Options) -> (Wire, [Port; 2]) {
    let mut plan = Plan::from_json(r#"{"duration_ns": 1000000000, "flows": [{"cca": "cubic"}]}"#).expect("a plan");
    (plan.mtu, plan.offload, plan.arp) = (o.mtu, o.super_packets, false);
    let buffers = format!("4096 131072 {}", o.window);
    let names: &[&str] = if o.window > 0 { &["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] } else { &[] };
    let settings = names.iter().map(|&name| (name.to_owned(), buffers.clone())).collect();
    let wire = Wire::build(&plan, &settings).expect("hosts");
    let ports = Wire::MIDDLE.map(|d| Port::open(wire.middle(), d, o.super_packets).expect("AF_PACKET"));
    (wire, ports)
}

/// A flow that sends until it is told to stop; what it receives is counted.
fn flow(wire: &Wire, index: u16, o: &Options, done: &Arc<AtomicBool>, bytes: &Arc<AtomicU64>) -> Vec<JoinHandle<()>> {
    let to = (End::Receiver.address(), TCP + 10 * index);
    let listener = within(wire.receiver(), || TcpListener::bind(to).expect("a port"));
    let bytes = bytes.clone();
    let reader = std::thread::spawn(move || {
        let (mut stream, mut buffer) = (listener.accept().expect("a connection").0, vec![0; 1 << 20]);
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            bytes.fetch_add(n as u64, Ordering::Relaxed);
        }
    });
    let stream = within(wire.sender(), || TcpStream::connect(to).expect("a connection"));
    if o.rate_mbit > 0.0 {
        let rate = (o.rate_mbit * 1e6 / 8.0 / o.flows as f64) as u64;
        // SAFETY: an option with eight bytes.
        let status =
            unsafe { libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, (&raw const rate).cast(), 8) };
        assert_eq!(status, 0, "SO_MAX_PACING_RATE");
    }
    let done = done.clone();
    let writer = std::thread::spawn(move || {
        let (mut stream, data) = (stream, vec![7; 1 << 18]);
        while !done.load(Ordering::Relaxed) && stream.write_all(&data).is_ok() {}
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    vec![reader, writer]
}

/// The kernel's receive timestamp of the next packet, and its first eight bytes; None at the end.
fn next_stamp(socket: &UdpSocket) -> Option<(u64, u64)> {
    let (mut data, mut control) = ([0u8; PROBE], [0u64; 16]);
    let mut vector = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
    // SAFETY: the header points at buffers that live until the call returns; control messages are walked with libc's macros.
    unsafe {
        let mut m: libc::msghdr = std::mem::zeroed();
        (m.msg_iov, m.msg_iovlen) = (&mut vector, 1);
        (m.msg_control, m.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control) as _);
        if libc::recvmsg(socket.as_raw_fd(), &mut m, 0) < 8 {
            return None;
        }
        let c = libc::CMSG_FIRSTHDR(&m);
        let t = libc::CMSG_DATA(c).cast::<libc::timespec>().read_unaligned();
        let sent = u64::from_ne_bytes(data[..8].try_into().expect("eight bytes"));
        Some((sent, t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64))
    }
}

/// Sends a time each millisecond, and says how long each packet was under way beyond the path's delay, µs.
fn probe(wire: &Wire, o: &Options, done: &Arc<AtomicBool>) -> io::Result<JoinHandle<Histogram>> {
    let receiver = within(wire.receiver(), || UdpSocket::bind((End::Receiver.address(), UDP)))?;
    receiver.set_read_timeout(Some(Duration::from_millis(500)))?;
    let on: libc::c_int = 1;
    // SAFETY: an option with an int.
    unsafe { libc::setsockopt(receiver.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, (&raw const on).cast(), 4) };
    let sender = within(wire.sender(), || UdpSocket::bind((End::Sender.address(), UDP)))?;
    let (done, asked) = (done.clone(), (o.delay_ms * 1e6) as u64);
    realtime::spawn("probe", move || {
        let mut at = sys::now();
        while !done.load(Ordering::Relaxed) {
            let mut data = [0; PROBE];
            data[..8].copy_from_slice(&sys::wall().to_ne_bytes());
            let _ = sender.send_to(&data, (End::Receiver.address(), UDP));
            at += PROBE_NS;
            std::thread::sleep(Duration::from_nanos(at.saturating_sub(sys::now())));
        }
    })?;
    realtime::spawn("probe", move || {
        let mut added = Histogram::default();
        while let Some((sent, arrived)) = next_stamp(&receiver) {
            added.add(u32::try_from(arrived.saturating_sub(sent).saturating_sub(asked) / 1000).unwrap_or(u32::MAX));
        }
        added
    })
}

/// CPU time of the whole machine, busy and in all, and of this process, clock ticks.
fn cpu_ticks() -> [u64; 3] {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let all: Vec<u64> = stat.lines().next().unwrap_or_default().split_whitespace().skip(1).filter_map(|w| w.parse().ok()).collect();
    let own = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let own: u64 =
        own.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2).filter_map(|w| w.parse::<u64>().ok()).sum();
    let (sum, idle) = (all.iter().take(8).sum::<u64>(), all.get(3).copied().unwrap_or(0) + all.get(4).copied().unwrap_or(0));
    [sum - idle, sum, own]
}

fn main() -> Result<(), String> {
    let o = options()?;
    let spaces = Spaces::enter(&spaces::Options::default()).map_err(|e| e.to_string())?;
    let (wire, ports) = hosts(&o);
    let link_options = LinkOptions { seed: 1, merge: o.super_packets, ..LinkOptions::default() };
    let link = Link::new(&path(&o), &path(&o), &link_options).map_err(|e| e.to_string())?;
    let emulator =
        Emulator::start(link, ports, &EmulatorOptions { realtime: o.realtime, ..EmulatorOptions::default() }).map_err(|e| e.to_string())?;
    let (done, bytes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let probe = probe(&wire, &o, &done).map_err(|e| e.to_string())?;
    let flows: Vec<_> = (0..o.flows as u16).flat_map(|i| flow(&wire, i, &o, &done, &bytes)).collect();
    std::thread::sleep(Duration::from_secs(1)); // slow start
    let (before, bytes_before, began) = (cpu_ticks(), bytes.load(Ordering::Relaxed), sys::now());
    std::thread::sleep(Duration::from_secs(o.seconds));
    let goodput = (bytes.load(Ordering::Relaxed) - bytes_before) as f64 * 8e3 / (sys::now() - began) as f64;
    let after = cpu_ticks();
    done.store(true, Ordering::Relaxed);
    let added: Lateness = (&probe.join().expect("no panic")).into();
    let (report, link) = emulator.stop();
    drop(wire);
    drop(flows); // their threads end with the process
    let [busy, all, own] = [0, 1, 2].map(|i| (after[i] - before[i]) as f64);
    let delay = (o.delay_ms * 1e6) as u64;
    let line = json!({
        "rate_mbit": o.rate_mbit, "delay_ms": o.delay_ms, "mtu": o.mtu,
        "super_packets": o.super_packets, "flows": o.flows,
        "goodput_mbit": goodput, "added": added, "emulator": report, "flags": report.flags([delay, delay]),
        "totals": Direction::BOTH.map(|d| link.totals(d)),
        "machine": {
            "cpus": std::thread::available_parallelism().map_or(1, usize::from), "busy_of_others": (busy - own).max(0.0) / all.max(1.0),
            "busy_of_ours": own / all.max(1.0), "realtime_allowed": spaces.realtime().allowed,
            "loadavg": fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
        },
    });
    println!("{line}");
    Ok(())
}
