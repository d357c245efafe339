//! Whether the emulator can be had, found by sending a datagram through it; and how much it carries.

use crate::emulator::{Emulator, EmulatorOptions, Port, Running};
use crate::link::{Link, LinkOptions};
use crate::spaces;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::BorrowedFd;
use std::thread;
use std::time::{Duration, Instant};
use tcpscape_path::PathSpec;
use tcpscape_plan::Plan;
use tcpscape_testbed::network::wire::{End, Wire};

/// The emulator's backends: why each cannot be had, and the fix; None where it can.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Backends {
    /// Packets of veth pairs by AF_PACKET.
    pub packet: Option<String>,
}

/// What one connection carried through an emulator without impairments, Mbit/s: what no path can exceed on this machine now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// With packets of the MTU, as trials have them.
    pub packets_mbps: f64,
    /// With super-packets, where the scenario has offloads.
    pub super_packets_mbps: f64,
}

/// The receiver's port, and bytes of a datagram and of a write.
const PORT: u16 = 7000;
const BYTES: usize = 64;
const CHUNK: usize = 64 << 10;
/// A datagram is sent this often, and waited for this long.
const AGAIN: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(2);
/// A burst lasts so long, of which the beginning is not counted.
const BURST: Duration = Duration::from_millis(500);
const RAMP: Duration = Duration::from_millis(100);
/// Size of packets, B.
const MTU: u32 = 1500;

/// Tries them.
pub fn probe() -> Backends {
    Backends { packet: Bench::new(false).and_then(|b| b.passes()).err() }
}

/// Measures for about a second.
pub fn rates() -> Result<Rates, String> {
    Ok(Rates { packets_mbps: Bench::new(false)?.carries()?, super_packets_mbps: Bench::new(true)?.carries()? })
}

/// Two hosts, and an emulator without impairments between them.
struct Bench {
    // The emulator ends before the hosts.
    _running: Running,
    wire: Wire,
}

impl Bench {
    fn new(super_packets: bool) -> Result<Bench, String> {
        let wire = Wire::build(&plan(super_packets)?, &brief()).map_err(text)?;
        let port = |device| Port::open(wire.middle(), device, super_packets).map_err(text);
        let ports = [port(Wire::MIDDLE[0])?, port(Wire::MIDDLE[1])?];
        let options = LinkOptions { merge: super_packets, ..LinkOptions::default() };
        let link = Link::new(&PathSpec::default(), &PathSpec::default(), &options).map_err(text)?;
        let running = Emulator::start(link, ports, &EmulatorOptions::default()).map_err(text)?;
        Ok(Bench { _running: running, wire })
    }

    /// Whether a datagram passes.
    fn passes(&self) -> Result<(), String> {
        let receiver = there(self.wire.receiver(), || UdpSocket::bind((End::Receiver.address(), PORT)))?;
        let sender = there(self.wire.sender(), || UdpSocket::bind((End::Sender.address(), 0)))?;
        receiver.set_read_timeout(Some(AGAIN)).map_err(text)?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            sender.send_to(&[0; BYTES], (End::Receiver.address(), PORT)).map_err(text)?;
            if receiver.recv(&mut [0; BYTES]).is_ok() {
                return Ok(());
            }
        }
        Err("a datagram does not pass the emulator; report it with `tcpscape doctor --json`".into())
    }

    /// Goodput of one connection that sends as fast as it can, Mbit/s.
    fn carries(&self) -> Result<f64, String> {
        let listener = there(self.wire.receiver(), || TcpListener::bind((End::Receiver.address(), PORT)))?;
        let to = (End::Receiver.address(), PORT);
        let mut sender = there(self.wire.sender(), || TcpStream::connect(to))?;
        let (mut receiver, _) = listener.accept().map_err(text)?;
        sender.set_write_timeout(Some(PATIENCE)).map_err(text)?;
        receiver.set_read_timeout(Some(PATIENCE)).map_err(text)?;
        let begin = Instant::now();
        let writer = thread::spawn(move || while begin.elapsed() < BURST && sender.write_all(&[0; CHUNK]).is_ok() {});
        let mut buffer = vec![0; CHUNK];
        let (mut bytes, mut first, mut last) = (0, None, begin);
        while let Ok(n @ 1..) = receiver.read(&mut buffer) {
            let now = Instant::now();
            if begin.elapsed() < RAMP {
                continue;
            }
            // Bytes are counted from the end of the first counted read on.
            match first {
                None => first = Some(now),
                Some(_) => (bytes, last) = (bytes + n, now),
            }
        }
        writer.join().map_err(|_| "the writer ended")?;
        let seconds = first.map_or(0.0, |first| (last - first).as_secs_f64());
        Ok(if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 })
    }
}

/// Settings of both hosts.
fn brief() -> BTreeMap<String, String> {
    spaces::BRIEF.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Makes a socket in a network namespace, to which it belongs from then on.
fn there<T>(namespace: BorrowedFd<'_>, make: impl FnOnce() -> io::Result<T>) -> Result<T, String> {
    spaces::within(namespace, make).and_then(|made| made).map_err(text)
}

fn plan(offload: bool) -> Result<Plan, String> {
    let fields = format!(r#"{{"duration_ns": 1000000000, "mtu": {MTU}, "offload": {offload}, "flows": [{{"cca": "cubic"}}]}}"#);
    Plan::from_json(&fields).map_err(text)
}

fn text(error: impl Display) -> String {
    error.to_string()
}
