//! Probes on real sockets: streams of single packets, each sent at its time, whose delays are measured.
//!
//! What they are: the model's probes (docs/models/methods/traffic.md) as UDP datagrams or ICMP echo requests. Source: udp(7), raw(7) (a raw socket gives what it receives with its
//! IPv4 header), RFC 792 (echo request and reply), RFC 1071 (checksum). Each
//! packet carries its number in its first 8 bytes; when each was sent is kept here, since both ends have the same clock. A thread sends, one
//! receives, and for `udp_echo` one sends back; the kernel itself answers ICMP. How it differs from ping(8): nothing is sent again, and a late
//! answer counts until the end of the trial. A wake-up costs nothing in virtual time; in real time the kernel's stamp of a packet's arrival counts.

use crate::flows::{thread, Clock, Options, Sleeps, PORT};
use crate::network::Site;
use crate::sys;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tcpscape_base::wire::sum;
use tcpscape_base::Duration;
use tcpscape_plan::probe::ProbeMeter;
use tcpscape_plan::results::ProbeSummary;
use tcpscape_plan::{ProbeKind, ProbePlan};

/// Fewest bytes of payload: a packet's number.
pub const LEAST_SIZE: usize = 8;
/// Room for packets in the sending host's own queues, bytes.
const SEND_BUFFER: u32 = 16 << 20;
/// The largest packet that is received, bytes.
const LARGEST: usize = 65_535;
/// The delay of a packet that did not arrive, in tables.
const LOST: u64 = u64::MAX;

/// A probe with its sockets.
pub struct Probe {
    plan: ProbePlan,
    number: usize,
    near: Socket,
    /// The far host's; none where its kernel answers.
    far: Option<Socket>,
    to: SockAddr,
    /// Where an echo goes.
    back: SockAddr,
}

impl Probe {
    /// Probe `number` between two hosts; the calling thread ends in the far one's namespace.
    pub fn prepare(plan: &ProbePlan, number: usize, [from, to]: [Site<'_>; 2]) -> io::Result<Probe> {
        if (plan.size as usize) < LEAST_SIZE {
            let problem = format!("probes.size: {} bytes cannot carry a packet's number; write at least {LEAST_SIZE}", plan.size);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let port = PORT + number as u16;
        sys::enter(from.namespace)?;
        let near = if plan.kind == ProbeKind::IcmpEcho { icmp()? } else { udp(port)? };
        sys::force_buffer(near.as_fd(), sys::Buffer::Send, SEND_BUFFER);
        sys::enter(to.namespace)?;
        let far = if plan.kind == ProbeKind::IcmpEcho { None } else { Some(udp(port)?) };
        if let Some(far) = &far {
            sys::force_buffer(far.as_fd(), sys::Buffer::Send, SEND_BUFFER);
        }
        let [to, back] = [to, from].map(|site| SocketAddrV4::new(site.address, port).into());
        Ok(Probe { plan: plan.clone(), number, near, far, to, back })
    }

    /// Starts its threads.
    pub fn start(self, clock: Clock, options: Options) -> io::Result<Running> {
        let stop = if self.plan.stop_ns == 0 { clock.end } else { self.plan.stop_ns.min(clock.end) };
        let is_stamped = options.sleeps == Sleeps::Plain;
        let receiving = if self.plan.kind == ProbeKind::Udp { self.far.as_ref() } else { None }.unwrap_or(&self.near);
        if is_stamped {
            sys::stamp(receiving.as_fd())?;
        }
        let account = Account { meter: ProbeMeter::new(self.plan.start_ns, self.plan.interval_ns), ..Account::default() };
        let shared = Arc::new(Shared { kind: self.plan.kind, number: self.number, account: Mutex::new(account) });
        let (account, socket) = (shared.clone(), receiving.try_clone()?);
        let receiver = thread(move || account.receive(&socket, clock, is_stamped))?;
        let mut sockets = vec![receiving.try_clone()?];
        let mut threads = vec![receiver];
        if let (ProbeKind::UdpEcho, Some(far)) = (self.plan.kind, &self.far) {
            sockets.push(far.try_clone()?);
            let (far, back) = (far.try_clone()?, self.back.clone());
            threads.push(thread(move || answer(&far, &back))?);
        }
        let account = shared.clone();
        let sender = thread(move || account.send(&self, stop, clock))?;
        Ok(Running { shared, end: clock.end, sender, sockets, threads })
    }
}

/// A probe's threads.
pub struct Running {
    shared: Arc<Shared>,
    /// When the trial ends, ns since its start.
    end: u64,
    sender: JoinHandle<()>,
    /// Those that threads read from.
    sockets: Vec<Socket>,
    threads: Vec<JoinHandle<()>>,
}

/// What a probe measured.
pub struct Finished {
    /// Its results.
    pub summary: ProbeSummary,
    /// Each packet: when it was sent, ns since the trial's start, and its delay, ns; `u64::MAX` where it did not arrive.
    pub samples: Vec<(u64, u64)>,
    /// What went wrong.
    pub trouble: Option<String>,
}

impl Running {
    /// Ends it; the trial's end has come.
    pub fn finish(self) -> Finished {
        let mut ended_well = self.sender.join().is_ok();
        for socket in &self.sockets {
            // Linux wakes whoever reads an unconnected socket, and says that it is not connected.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        for thread in self.threads {
            ended_well &= thread.join().is_ok();
        }
        if !ended_well {
            self.shared.trouble(&format!("probe {}: one of its threads ended before the trial", self.shared.number + 1));
        }
        let mut account = self.shared.account.lock().expect("no thread panics with it");
        Finished {
            summary: account.meter.summary(self.end),
            samples: std::mem::take(&mut account.samples),
            trouble: account.trouble.take(),
        }
    }
}

/// What the threads of a probe share.
struct Shared {
    kind: ProbeKind,
    number: usize,
    account: Mutex<Account>,
}

#[derive(Default)]
struct Account {
    meter: ProbeMeter,
    /// When each packet was sent, ns since the trial's start, and its delay.
    samples: Vec<(u64, u64)>,
    trouble: Option<String>,
}

impl Shared {
    /// Sends packet k at `start + k · interval`, until `stop`.
    fn send(&self, probe: &Probe, stop: u64, clock: Clock) {
        sys::timer_slack(1);
        let mut packet = vec![0; header(self.kind) + probe.plan.size as usize];
        for k in 0.. {
            let at = probe.plan.start_ns.saturating_add(probe.plan.interval_ns.saturating_mul(k));
            if at >= stop {
                return;
            }
            while sys::now() < clock.zero + at {
                sys::nap_until(clock.zero + at);
            }
            fill(&mut packet, self.kind, self.number, k);
            self.account.lock().expect("no thread panics with it").sends(sys::now().saturating_sub(clock.zero));
            if let Err(e) = probe.near.send_to_with_flags(&packet, &probe.to, libc::MSG_DONTWAIT) {
                self.trouble(&format!("probe {}: packet {k} could not be sent: {e}", self.number + 1));
            }
        }
    }

    /// Takes packets until the socket is shut down; what comes after the end of the trial does not count.
    fn receive(&self, socket: &Socket, clock: Clock, is_stamped: bool) {
        let mut packet = vec![0; LARGEST];
        while let Some(seen) = sys::next_packet(socket.as_fd(), &mut packet) {
            if seen.length == 0 {
                return;
            }
            let late = if is_stamped && seen.at > 0 { sys::wall().saturating_sub(seen.at) } else { 0 };
            let at = sys::now().saturating_sub(clock.zero).saturating_sub(late);
            let bytes = &packet[..seen.length.min(LARGEST)];
            if let Some(k) = number_of(bytes, self.kind, self.number).filter(|_| at <= clock.end) {
                self.account.lock().expect("no thread panics with it").arrives(k, at);
            }
        }
    }

    fn trouble(&self, what: &str) {
        self.account.lock().expect("no thread panics with it").trouble.get_or_insert_with(|| what.to_owned());
    }
}

impl Account {
    fn sends(&mut self, at: u64) {
        self.meter.sent();
        self.samples.push((at, LOST));
    }

    /// Packet `k` arrives, or comes back; a number that was never sent is nobody's.
    fn arrives(&mut self, k: u64, at: u64) {
        let Some((sent, delay)) = self.samples.get_mut(k as usize) else { return };
        let took = at.saturating_sub(*sent);
        if self.meter.received(k, Duration(took)) {
            *delay = took;
        }
    }
}

/// Sends every datagram back to where they come from, until the socket is shut down.
fn answer(socket: &Socket, back: &SockAddr) {
    let mut packet = vec![0; LARGEST];
    while let Some(seen) = sys::next_packet(socket.as_fd(), &mut packet).filter(|seen| seen.length > 0) {
        // What the host's queue does not take is lost.
        let _ = socket.send_to(&packet[..seen.length], back);
    }
}

fn udp(port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port).into())?;
    Ok(socket)
}

/// Bytes of the header of an echo request.
const HEADER: usize = 8;
/// Types of messages.
const REQUEST: u8 = 8;
const REPLY: u8 = 0;
/// The identifier of the first probe.
const FIRST_ID: u16 = 0x7000;

/// A socket that sends ICMP and gets all that its host does.
fn icmp() -> io::Result<Socket> {
    Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))
}

/// Bytes before the payload that the program writes itself.
fn header(kind: ProbeKind) -> usize {
    if kind == ProbeKind::IcmpEcho {
        HEADER
    } else {
        0
    }
}

/// Writes what packet `k` of probe `probe` says.
fn fill(packet: &mut [u8], kind: ProbeKind, probe: usize, k: u64) {
    let payload = header(kind);
    packet[payload..payload + 8].copy_from_slice(&k.to_be_bytes());
    if kind == ProbeKind::IcmpEcho {
        packet[..4].copy_from_slice(&[REQUEST, 0, 0, 0]);
        packet[4..6].copy_from_slice(&(FIRST_ID + probe as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&(k as u16).to_be_bytes());
        let check = !sum(packet, 0);
        packet[2..4].copy_from_slice(&check.to_be_bytes());
    }
}

/// The number of a packet that was received; None where it is not one of this probe.
fn number_of(packet: &[u8], kind: ProbeKind, probe: usize) -> Option<u64> {
    let mut message = packet;
    if kind == ProbeKind::IcmpEcho {
        let ip = usize::from(packet.first()? & 0x0f) * 4;
        message = packet.get(ip..)?;
        let id = u16::from_be_bytes(message.get(4..6)?.try_into().ok()?);
        if message[0] != REPLY || id != FIRST_ID + probe as u16 {
            return None;
        }
        message = message.get(HEADER..)?;
    }
    Some(u64::from_be_bytes(message.get(..8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_known_by_its_type_and_its_probe() {
        let mut request = vec![0; HEADER + 10];
        fill(&mut request, ProbeKind::IcmpEcho, 3, 70_000);
        assert_eq!(!sum(&request, 0), 0, "a message with its checksum adds up to nothing");
        let ip = [&[0x45][..], &[0; 19]].concat();
        let received = |kind: u8| [&ip[..], &[kind], &request[1..]].concat();
        assert_eq!(number_of(&received(REPLY), ProbeKind::IcmpEcho, 3), Some(70_000));
        assert_eq!(number_of(&received(REQUEST), ProbeKind::IcmpEcho, 3), None);
        assert_eq!(number_of(&received(REPLY), ProbeKind::IcmpEcho, 2), None);
        assert_eq!(number_of(&received(REPLY)[..30], ProbeKind::IcmpEcho, 3), None);
    }

    #[test]
    fn a_datagram_is_its_number_and_zeros() {
        let mut datagram = vec![0; 20];
        fill(&mut datagram, ProbeKind::Udp, 0, 258);
        assert_eq!(datagram[..10], [0, 0, 0, 0, 0, 0, 1, 2, 0, 0]);
        assert_eq!(number_of(&datagram, ProbeKind::Udp, 0), Some(258));
    }
}
