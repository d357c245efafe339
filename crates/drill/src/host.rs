//! The application of the host under test: its file descriptors and system calls, on one connection.
//!
//! Source: POSIX.1-2017 (socket(), read(), write(), …), RFC 9293 §3.10 (calls), §3.6 (closing), RFC 1122 §4.2.2.13 (a reset for data that
//! nobody will read). Not modelled: a second connection, queues of a listener, signals.

use crate::endpoint::{Buffers, Endpoint, Stage};
use crate::script::Call;
use crate::settings::Settings;
use crate::wire::Packet;
use std::collections::BTreeMap;
use tcpscape_base::{Flags, Time};

/// What a file descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fresh,
    Listening,
    Connection,
}

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    kind: Kind,
    nonblocking: bool,
    buffers: Buffers,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It returns this.
    Done(i64),
    /// It returns -1 with this error.
    Failed(&'static str),
    /// It blocks.
    Blocks,
    /// It gives another value than the script expects, in words.
    Differs(String),
    /// The model has no answer to it.
    NotApplicable(String),
}

/// A call that has begun.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    pub call: Call,
    /// Bytes written so far.
    written: u64,
    has_begun: bool,
}

impl Begun {
    pub fn new(call: Call) -> Begun {
        Begun { call, written: 0, has_begun: false }
    }
}

/// The host.
pub(crate) struct Host {
    pub settings: Settings,
    descriptors: BTreeMap<i64, Descriptor>,
    pub connection: Option<Endpoint>,
    /// accept() has returned, or connect() was called.
    is_taken: bool,
    /// No descriptor stands for the connection any more.
    is_abandoned: bool,
    /// shutdown() for reading.
    is_deaf: bool,
    /// Bytes written so far.
    written: u64,
    /// The error that the next call reports.
    error: Option<&'static str>,
    /// The peer's FIN came before the own was written.
    pub peer_ended_first: bool,
    pub last_data: Option<Time>,
}

impl Host {
    pub fn new(settings: Settings) -> Host {
        Host {
            settings,
            descriptors: BTreeMap::new(),
            connection: None,
            is_taken: false,
            is_abandoned: false,
            is_deaf: false,
            written: 0,
            error: None,
            peer_ended_first: false,
            last_data: None,
        }
    }

    /// When [`Host::on_timer`] wants to be called.
    pub fn next_event(&self) -> Option<Time> {
        self.connection.as_ref().and_then(Endpoint::next_event)
    }
    /// A timer has come.
    pub fn on_timer(&mut self, now: Time) {
        if let Some(connection) = &mut self.connection {
            connection.on_timer(now);
        }
    }

    /// A packet comes. Refused with a reason where the model has no answer.
    pub fn on_packet(&mut self, now: Time, p: &Packet) -> Result<(), String> {
        let Some(connection) = &mut self.connection else { return self.on_first(now, p) };
        let is_new = p.seq + u64::from(p.len) > connection.receiver.rcv_nxt() && p.len > 0;
        if self.is_abandoned && is_new && connection.stage == Stage::Open {
            connection.abort(now, Some(p));
            return Ok(());
        }
        if connection.stage == Stage::Closed && p.flags.has(Flags::SYN) && !p.flags.has(Flags::ACK) {
            return Err("a second connection".into());
        }
        let was_open = connection.stage == Stage::Open;
        let was_connecting = connection.stage == Stage::SynSent;
        connection.on_packet(now, p);
        if p.len > 0 || !was_open && connection.stage == Stage::Open {
            self.last_data = Some(now);
        }
        if connection.receiver.fin_received() && connection.fin.is_none() {
            self.peer_ended_first = true;
        }
        if p.flags.has(Flags::RST) && connection.stage == Stage::Closed {
            self.error = if was_connecting { Some("ECONNREFUSED") } else { was_open.then_some("ECONNRESET") };
        }
        if self.peer_ended_first && connection.is_fin_acked() {
            connection.stage = Stage::Closed;
        }
        connection.refusal.take().map_or(Ok(()), Err)
    }

    fn on_first(&mut self, now: Time, p: &Packet) -> Result<(), String> {
        let listener = self.descriptors.values().find(|d| d.kind == Kind::Listening);
        match listener {
            Some(d) if p.flags.has(Flags::SYN) && !p.flags.has(Flags::ACK) && p.len == 0 => {
                self.connection = Some(Endpoint::accept(now, &self.settings, d.buffers, p)?);
                Ok(())
            }
            Some(_) if p.len > 0 && p.flags.has(Flags::SYN) => Err("data on a SYN".into()),
            _ => Err("a packet for which there is neither a listener nor a connection".into()),
        }
    }

    // ---- calls --------------------------------------------------------------------------------------------------------

    /// Carries a call out, or as much of it as can be; called again while it blocks.
    pub fn step(&mut self, now: Time, begun: &mut Begun) -> Progress {
        let call = begun.call.clone();
        match call.name.as_str() {
            "socket" => self.socket(&call),
            "bind" => Progress::Done(0),
            "listen" => self.change(&call, |d| d.kind = Kind::Listening),
            "accept" | "accept4" => self.accept(&call),
            "connect" => self.connect(now, begun),
            "read" | "recv" | "recvfrom" => self.read(now, &call, call.number(2)),
            "readv" | "recvmsg" => self.read(now, &call, bytes_of_vector(&call)),
            "write" | "send" | "sendto" => self.write(now, begun, call.number(2)),
            "writev" | "sendmsg" => self.write(now, begun, bytes_of_vector(&call)),
            "setsockopt" => self.setsockopt(now, &call),
            "getsockopt" => self.getsockopt(&call),
            "fcntl" => self.fcntl(&call),
            "ioctl" => self.ioctl(&call),
            "shutdown" => self.shutdown(now, &call),
            "close" => self.close(now, &call),
            name => Progress::NotApplicable(format!("the call {name}()")),
        }
    }

    fn socket(&mut self, call: &Call) -> Progress {
        let nonblocking = call.arg(1).contains("SOCK_NONBLOCK");
        let Some(fd) = call.returns.filter(|&fd| fd >= 0) else { return Progress::NotApplicable("socket() that fails".into()) };
        self.descriptors.insert(fd, Descriptor { kind: Kind::Fresh, nonblocking, buffers: Buffers::default() });
        Progress::Done(fd)
    }

    fn descriptor(&self, call: &Call) -> Option<Descriptor> {
        call.number(0).and_then(|fd| self.descriptors.get(&fd).copied())
    }
    fn change(&mut self, call: &Call, change: impl FnOnce(&mut Descriptor)) -> Progress {
        match call.number(0).and_then(|fd| self.descriptors.get_mut(&fd)) {
            Some(d) => {
                change(d);
                Progress::Done(0)
            }
            None => Progress::Failed("EBADF"),
        }
    }

    fn accept(&mut self, call: &Call) -> Progress {
        let Some(d) = self.descriptor(call) else { return Progress::Failed("EBADF") };
        let is_open = self.connection.as_ref().is_some_and(|c| matches!(c.stage, Stage::Open | Stage::Closed));
        if !is_open || self.is_taken {
            return if d.nonblocking { Progress::Failed("EAGAIN") } else { Progress::Blocks };
        }
        let Some(fd) = call.returns.filter(|&fd| fd >= 0) else { return Progress::Done(NEXT_DESCRIPTOR) };
        self.is_taken = true;
        self.descriptors.insert(fd, Descriptor { kind: Kind::Connection, nonblocking: false, buffers: d.buffers });
        Progress::Done(fd)
    }

    fn connect(&mut self, now: Time, begun: &mut Begun) -> Progress {
        let Some(d) = self.descriptor(&begun.call) else { return Progress::Failed("EBADF") };
        match &self.connection {
            Some(c) if begun.has_begun => match c.stage {
                Stage::Open => return Progress::Done(0),
                Stage::Closed => return Progress::Failed(self.error.take().unwrap_or("ECONNREFUSED")),
                _ => return Progress::Blocks,
            },
            Some(c) if self.is_taken && c.stage == Stage::Open => return Progress::Failed("EISCONN"),
            Some(c) if self.is_taken && c.stage == Stage::SynSent => return Progress::Failed("EALREADY"),
            Some(_) => return Progress::NotApplicable("a second connection".into()),
            None => {}
        }
        match Endpoint::connect(now, &self.settings, d.buffers) {
            Ok(connection) => self.connection = Some(connection),
            Err(reason) => return Progress::NotApplicable(reason),
        }
        (self.is_taken, begun.has_begun) = (true, true);
        self.change(&begun.call, |d| d.kind = Kind::Connection);
        if d.nonblocking {
            Progress::Failed("EINPROGRESS")
        } else {
            Progress::Blocks
        }
    }

    /// The connection that a call names.
    fn connected(&mut self, call: &Call) -> Result<(&mut Endpoint, bool), &'static str> {
        let d = self.descriptor(call).ok_or("EBADF")?;
        match &mut self.connection {
            Some(c) if d.kind == Kind::Connection => Ok((c, d.nonblocking)),
            _ => Err("ENOTCONN"),
        }
    }

    fn read(&mut self, now: Time, call: &Call, bytes: Option<i64>) -> Progress {
        let Some(bytes) = bytes.and_then(|n| u64::try_from(n).ok()) else { return Progress::NotApplicable(UNREADABLE.into()) };
        let (is_deaf, error) = (self.is_deaf, self.error);
        let (connection, nonblocking) = match self.connected(call) {
            Ok(found) => found,
            Err(errno) => return Progress::Failed(errno),
        };
        let nonblocking = nonblocking || call.args.iter().any(|a| a.contains("MSG_DONTWAIT"));
        if connection.receiver.readable() > 0 && connection.stage != Stage::Closed || connection.receiver.readable() > 0 && error.is_none()
        {
            return Progress::Done(connection.read(now, bytes) as i64);
        }
        let over = connection.receiver.fin_received() || is_deaf || connection.stage == Stage::Closed;
        match self.error.take() {
            Some(errno) => Progress::Failed(errno),
            None if over => Progress::Done(0),
            None if nonblocking => Progress::Failed("EAGAIN"),
            None => Progress::Blocks,
        }
    }

    fn write(&mut self, now: Time, begun: &mut Begun, bytes: Option<i64>) -> Progress {
        let Some(bytes) = bytes.and_then(|n| u64::try_from(n).ok()) else { return Progress::NotApplicable(UNREADABLE.into()) };
        let error = self.error;
        let call = &begun.call;
        let (connection, nonblocking) = match self.connected(call) {
            Ok(found) => found,
            Err(errno) => return Progress::Failed(errno),
        };
        if connection.fin.is_some() || connection.stage == Stage::Closed {
            self.error = None;
            return Progress::Failed(error.unwrap_or("EPIPE"));
        }
        let nonblocking = nonblocking || call.args.iter().any(|a| a.contains("MSG_DONTWAIT"));
        if !begun.has_begun || connection.sender.take_wake() {
            begun.has_begun = true;
            let written = connection.write(now, bytes - begun.written, begun.written > 0);
            begun.written += written;
            self.written += written;
        }
        if begun.written == bytes || nonblocking && begun.written > 0 {
            Progress::Done(begun.written as i64)
        } else if nonblocking {
            Progress::Failed("EAGAIN")
        } else {
            Progress::Blocks
        }
    }

    fn setsockopt(&mut self, now: Time, call: &Call) -> Progress {
        let value = call.boxed(3);
        let bytes = value.and_then(|n| u32::try_from(n).ok());
        let is_early = self.descriptor(call).is_some_and(|d| d.kind != Kind::Connection);
        match (call.arg(2), bytes) {
            ("SO_REUSEADDR" | "SO_REUSEPORT" | "SO_KEEPALIVE" | "IP_FREEBIND" | "TCP_QUICKACK", _) => Progress::Done(0),
            ("SO_SNDBUF", Some(n)) if is_early => self.change(call, |d| d.buffers.send = n),
            ("SO_RCVBUF", Some(n)) if is_early => self.change(call, |d| d.buffers.receive = n),
            ("TCP_NODELAY", Some(1)) if is_early => self.change(call, |d| d.buffers.nodelay = true),
            ("TCP_MAXSEG", Some(n)) if is_early => self.change(call, |d| d.buffers.segment = n),
            ("SO_SNDBUF", Some(n)) => self.on_connection(call, |c| c.set_send_buffer(n)),
            ("TCP_NODELAY", Some(1)) => self.on_connection(call, |c| c.set_nodelay(now)),
            ("TCP_CONGESTION", _) if is_early && tcpscape_tcp::cc::find(text_of(call)).is_some() => {
                self.settings.control = text_of(call).into();
                Progress::Done(0)
            }
            (name, _) => Progress::NotApplicable(format!("the socket option {name} ({})", call.arg(3))),
        }
    }
    fn on_connection(&mut self, call: &Call, act: impl FnOnce(&mut Endpoint)) -> Progress {
        match self.connected(call) {
            Ok((connection, _)) => {
                act(connection);
                Progress::Done(0)
            }
            Err(errno) => Progress::Failed(errno),
        }
    }

    fn getsockopt(&mut self, call: &Call) -> Progress {
        let expected = call.boxed(3);
        let actual = match call.arg(2) {
            "SO_ERROR" if matches!(expected, Some(0)) && self.error.is_none() => Some(0),
            "SO_SNDBUF" => self.connection.as_ref().and_then(|c| c.send_buffer).map(i64::from),
            "TCP_MAXSEG" => {
                let asked = self.descriptor(call).map(|d| d.buffers.segment).filter(|&n| n > 0);
                self.connection.as_ref().map(Endpoint::payload).or(asked).map(i64::from)
            }
            _ => None,
        };
        match (actual, expected) {
            (Some(a), Some(e)) if a == e => Progress::Done(0),
            (Some(a), Some(_)) => Progress::Differs(format!("the value is [{a}]")),
            _ => Progress::NotApplicable(format!("getsockopt() of {}", call.arg(2))),
        }
    }

    fn fcntl(&mut self, call: &Call) -> Progress {
        match call.arg(1) {
            "F_GETFL" => Progress::Done(call.returns.unwrap_or(0)),
            "F_SETFL" => {
                let nonblocking = call.arg(2).contains("O_NONBLOCK");
                self.change(call, |d| d.nonblocking = nonblocking)
            }
            other => Progress::NotApplicable(format!("fcntl() with {other}")),
        }
    }

    fn ioctl(&mut self, call: &Call) -> Progress {
        let expected = call.boxed(2);
        let actual = match (call.arg(1), self.connected(call)) {
            ("SIOCINQ" | "FIONREAD", Ok((c, _))) => {
                // The end of the stream counts as a byte that can be read.
                Some(c.receiver.readable() as i64)
            }
            _ => None,
        };
        match (actual, expected) {
            (Some(a), Some(e)) if a == e => Progress::Done(0),
            (Some(a), Some(_)) => Progress::Differs(format!("the value is [{a}]")),
            _ => Progress::NotApplicable(format!("ioctl() with {}", call.arg(1))),
        }
    }

    fn shutdown(&mut self, now: Time, call: &Call) -> Progress {
        let (reading, writing) = match call.arg(1) {
            "SHUT_RD" => (true, false),
            "SHUT_WR" => (false, true),
            "SHUT_RDWR" => (true, true),
            other => return Progress::NotApplicable(format!("shutdown() with {other}")),
        };
        let written = self.written;
        self.is_deaf |= reading;
        self.on_connection(call, |c| {
            if writing {
                c.finish(now, written);
            }
        })
    }

    fn close(&mut self, now: Time, call: &Call) -> Progress {
        let Some(d) = call.number(0).and_then(|fd| self.descriptors.remove(&fd)) else { return Progress::Failed("EBADF") };
        let written = self.written;
        match &mut self.connection {
            Some(connection) if d.kind == Kind::Connection => {
                self.is_abandoned = true;
                match connection.stage {
                    Stage::Open if connection.receiver.readable() > 0 => connection.abort(now, None),
                    Stage::Open => connection.finish(now, written),
                    _ => connection.stage = Stage::Closed,
                }
            }
            _ => {}
        }
        Progress::Done(0)
    }

    /// The state of the connection as `tcpi_state` counts it.
    pub fn state(&self) -> i64 {
        let Some(c) = &self.connection else { return 7 };
        let ended = c.receiver.fin_received();
        match (c.stage, c.fin.is_some()) {
            (Stage::SynSent, _) => 2,
            (Stage::SynReceived, _) => 3,
            (Stage::Closed, _) => 7,
            (Stage::Open, false) => 1 + 7 * i64::from(ended),
            (Stage::Open, true) if self.peer_ended_first => 9,
            (Stage::Open, true) => match (ended, c.is_fin_acked()) {
                (false, false) => 4,
                (false, true) => 5,
                (true, false) => 11,
                (true, true) => 6,
            },
        }
    }
}

/// The text of a value `"cubic"`, also in brackets.
fn text_of(call: &Call) -> &str {
    call.arg(3).trim_matches(['[', ']', '"'])
}

/// Bytes of the parts `{..., 1000}` of a message.
fn bytes_of_vector(call: &Call) -> Option<i64> {
    let text = call.args.get(1)?;
    let text = text.split("msg_control").next()?;
    let parts = text.split("{...,").skip(1).map(|part| part.split('}').next().and_then(crate::script::number));
    parts.sum()
}

const UNREADABLE: &str = "a call whose number of bytes is not written";
/// What accept() returns where a script expects an error.
const NEXT_DESCRIPTOR: i64 = 4;
