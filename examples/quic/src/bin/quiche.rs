//! quiche: cubic, bbr (`bbr2_gcongestion`) and reno. The library has no sockets: this loop takes packets from it ahead of their time, as far as
//! `max_release_into_future` says, and sends each at the time that its pacer says. A packet that is taken at its time only is as late as the
//! program woke, and the pacer counts on from there: the rate is lower then.

use quic_transfer::{any, refuse, report, role, Outcome, Role, CERTIFICATE, DATAGRAM, KEY, NAME, PART, PORT, PROTOCOL, WINDOW};
use quiche::{Config, Connection, ConnectionId, Header, RecvInfo};
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The one stream, opened by the client.
const STREAM: u64 = 0;
/// Identifiers of the two ends: there is one connection.
const THEIRS: [u8; 8] = [1; 8];
const OURS: [u8; 8] = [2; 8];

fn main() -> Outcome {
    match role() {
        Role::Serve(control) => serve(&control),
        Role::Get(address, time) => get(address, time),
    }
}

fn config(control: &str) -> Outcome<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_cc_algorithm_name(control).unwrap_or_else(|_| refuse("quiche has cubic, bbr and reno"));
    config.set_application_protos(&[PROTOCOL])?;
    config.verify_peer(false);
    config.set_max_recv_udp_payload_size(DATAGRAM);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_data(WINDOW.into());
    config.set_initial_max_stream_data_bidi_local(WINDOW.into());
    config.set_initial_max_stream_data_bidi_remote(WINDOW.into());
    config.set_max_connection_window(WINDOW.into());
    config.set_max_stream_window(WINDOW.into());
    config.set_initial_max_streams_bidi(1);
    Ok(config)
}

/// A socket, a connection over it, and packets that wait for their times.
struct End {
    socket: UdpSocket,
    here: SocketAddr,
    connection: Connection,
    waiting: VecDeque<(Vec<u8>, quiche::SendInfo)>,
}

impl End {
    fn new(socket: UdpSocket, here: SocketAddr, connection: Connection) -> End {
        End { socket, here, connection, waiting: VecDeque::new() }
    }

    /// Sends what may be sent now, and takes from the connection what may be sent soon.
    fn send(&mut self) -> Outcome {
        loop {
            let now = Instant::now();
            while self.waiting.front().is_some_and(|(_, info)| info.at <= now) {
                let (packet, info) = self.waiting.pop_front().expect("it is there");
                self.socket.send_to(&packet, info.to)?;
            }
            let until = now + self.connection.max_release_into_future();
            if self.waiting.back().is_some_and(|(_, info)| info.at > until) {
                return Ok(());
            }
            let mut packet = vec![0; DATAGRAM];
            match self.connection.send(&mut packet) {
                Ok((size, info)) => {
                    packet.truncate(size);
                    self.waiting.push_back((packet, info));
                }
                Err(quiche::Error::Done) => return Ok(()),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Waits for a packet, for the next one's time, for a timer or until `end`. The time of a packet is slept for, since a socket's timeout is as
    /// coarse as the kernel's tick; what has arrived meanwhile is read then.
    fn receive(&mut self, end: Option<Instant>) -> Outcome {
        let paced = self.waiting.front().map(|(_, info)| info.at);
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        self.socket.set_nonblocking(paced.is_some())?;
        match (paced, [self.connection.timeout_instant(), end].into_iter().flatten().min()) {
            (Some(at), until) => sleep(left(until.map_or(at, |until| until.min(at)))),
            (None, until) => self.socket.set_read_timeout(until.map(|until| left(until).max(Duration::from_micros(1))))?,
        }
        let mut bytes = vec![0; 65_536];
        while let Ok((size, from)) = self.socket.recv_from(&mut bytes) {
            // A stray packet is none of ours.
            let _ = self.connection.recv(&mut bytes[..size], RecvInfo { from, to: self.here });
            if paced.is_none() {
                break;
            }
        }
        self.socket.set_nonblocking(false)?;
        if self.connection.timeout_instant().is_some_and(|at| at <= Instant::now()) {
            self.connection.on_timeout();
        }
        Ok(())
    }
}

/// Serves one client after the other.
fn serve(control: &str) -> Outcome {
    let mut config = config(control)?;
    config.load_cert_chain_from_pem_file(CERTIFICATE)?;
    config.load_priv_key_from_pem_file(KEY)?;
    loop {
        let socket = UdpSocket::bind(any(PORT))?;
        let mut first = vec![0; 65_536];
        let (size, from) = socket.recv_from(&mut first)?;
        if Header::from_slice(&mut first[..size], quiche::MAX_CONN_ID_LEN).map(|header| header.ty) != Ok(quiche::Type::Initial) {
            continue;
        }
        let here = any(PORT);
        let mut connection = quiche::accept(&ConnectionId::from_ref(&OURS), None, here, from, &mut config)?;
        connection.recv(&mut first[..size], RecvInfo { from, to: here })?;
        let mut end = End::new(socket, here, connection);
        while !end.connection.is_closed() {
            if end.connection.stream_readable(STREAM) || end.connection.stream_capacity(STREAM).is_ok() {
                while end.connection.stream_send(STREAM, &PART, false).is_ok_and(|sent| sent > 0) {}
            }
            end.send()?;
            end.receive(None)?;
        }
    }
}

fn get(address: SocketAddr, time: Duration) -> Outcome {
    let socket = UdpSocket::bind(any(0))?;
    socket.connect(address)?;
    let here = socket.local_addr()?;
    let connection = quiche::connect(Some(NAME), &ConnectionId::from_ref(&THEIRS), here, address, &mut config("cubic")?)?;
    let mut end = End::new(socket, here, connection);
    let (mut began, mut bytes, mut part) = (None, 0, vec![0; PART.len()]);
    while !end.connection.is_closed() {
        end.send()?;
        end.receive(began.map(|at: Instant| at + time))?;
        if began.is_none() && end.connection.is_established() {
            end.connection.stream_send(STREAM, b"x", false)?;
            began = Some(Instant::now());
        }
        while let Ok((size, _)) = end.connection.stream_recv(STREAM, &mut part) {
            bytes += size as u64;
        }
        if began.is_some_and(|at| at.elapsed() >= time) && !end.connection.is_draining() {
            report(bytes, began.map_or(time, |at| at.elapsed()));
            let _ = end.connection.close(true, 0, b""); // once
            end.send()?;
            return Ok(());
        }
    }
    Err("the connection was closed".into())
}
