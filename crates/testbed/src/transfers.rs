//! Connections that arrive at random, on real sockets: each has one of its own, made when it begins and closed when all is acknowledged.
//!
//! What they are: the model's transfers, with the same starts and sizes ([`tcpscape_plan::transfers::draw`]). An entry of the plan costs two threads,
//! however many connections it has: one begins, writes and closes them, the other accepts and reads them, both where epoll(7) tells
//! them to. Source: docs/models/methods/traffic.md, tcp(7), `Documentation/networking/timestamping.rst` (SOF_TIMESTAMPING_TX_ACK: the kernel tells
//! when the last byte is acknowledged, so nobody has to look again and again). A connection ends with a RST, as a flow does.

use crate::flows::{sockets, thread, Clock, Options, PORT};
use crate::network::Site;
use crate::poll::{Interest, Poller};
use crate::sys::{self, disconnect, now, timer_slack, unacknowledged, Batch};
use crate::tcp_info::TcpInfo;
use socket2::Socket;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tcpscape_base::Duration;
use tcpscape_plan::results::TransfersSummary;
use tcpscape_plan::transfers::{Tally, Transfer};
use tcpscape_plan::{App, TransfersPlan};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4_096;

/// An entry of the plan, and its connections.
pub struct Transfers {
    plan: TransfersPlan,
    drawn: Vec<Transfer>,
    listener: Socket,
    to: SocketAddrV4,
    options: Options,
}

impl Transfers {
    /// An entry of a plan and the connections that were drawn of it ([`tcpscape_plan::transfers::draw`]), at this port after the first; the calling thread ends in the receivers' namespace.
    pub fn prepare(plan: &TransfersPlan, drawn: Vec<Transfer>, port: usize, to: Site<'_>, options: Options) -> io::Result<Transfers> {
        sys::enter(to.namespace)?;
        let listener = sockets::listener(&plan.flow, PORT + port as u16, options.buffers)?;
        listener.listen(BACKLOG)?;
        listener.set_nonblocking(true)?;
        let to = SocketAddrV4::new(to.address, PORT + port as u16);
        Ok(Transfers { plan: plan.clone(), drawn, listener, to, options })
    }

    /// Starts both threads; the calling one is in the senders' namespace.
    pub fn start(self, clock: Clock) -> io::Result<Running> {
        let shared = Arc::new(Mutex::new(Account { tally: Tally::new(&self.plan), troubles: Vec::new() }));
        let (entry, mine) = (Arc::new(self), shared.clone());
        let (theirs, account) = (entry.clone(), shared.clone());
        let receiver = thread(move || note(&mine, "receivers", receive_all(&entry, clock, &mine)))?;
        let sender = thread(move || note(&account, "senders", send_all(&theirs, clock, &account)))?;
        Ok(Running { shared, threads: [sender, receiver] })
    }

    /// Bytes of a write.
    fn chunk(&self) -> usize {
        match self.plan.flow.app {
            App::Bulk { chunk } | App::Finite { chunk, .. } | App::Paced { chunk, .. } => chunk as usize,
            App::Respond { chunk, .. } | App::OnOff { chunk, .. } => chunk as usize,
        }
    }
}

/// The threads of an entry.
pub struct Running {
    shared: Arc<Mutex<Account>>,
    threads: [JoinHandle<()>; 2],
}

/// What became of the connections of an entry so far.
struct Account {
    tally: Tally,
    troubles: Vec<String>,
}

impl Running {
    /// Waits for the end of the trial: the results, and what went wrong.
    pub fn finish(self) -> (TransfersSummary, Vec<String>) {
        let ended_well = self.threads.into_iter().all(|thread| thread.join().is_ok());
        let mut account = self.shared.lock().expect("no thread panics with it");
        if !ended_well {
            account.troubles.push("transfers: one of their threads ended before the trial".into());
        }
        (account.tally.summary(), std::mem::take(&mut account.troubles))
    }
}

fn note(account: &Mutex<Account>, who: &str, outcome: io::Result<()>) {
    if let Err(e) = outcome {
        account.lock().expect("no thread panics with it").troubles.push(format!("transfers: the {who} failed: {e}"));
    }
}

/// Most reads in one system call.
const READS: usize = 64;
/// The listener's token; connections are numbered from 0.
const LISTENER: u64 = u64::MAX;

/// Accepts and reads until the end of the trial.
fn receive_all(entry: &Transfers, clock: Clock, account: &Mutex<Account>) -> io::Result<()> {
    let mut poller = Poller::new()?;
    poller.add(entry.listener.as_fd(), LISTENER, Interest::Data)?;
    let mut many = Batch::new(READS, entry.plan.flow.read.size as usize);
    let mut active: HashMap<u64, Socket> = HashMap::new();
    let (mut accepted, mut received, mut events) = (0, 0, Vec::new());
    let end = clock.zero + clock.end;
    while !poller.wait_until(end, &mut events)? {
        for event in &events {
            if event.token == LISTENER {
                while let Ok((socket, _)) = entry.listener.accept() {
                    socket.set_nonblocking(true)?;
                    poller.add(socket.as_fd(), accepted, Interest::Data)?;
                    active.insert(accepted, socket);
                    accepted += 1;
                }
            } else if let Some(socket) = active.get(&event.token) {
                // A RST shows as an error once, and what came before it, and the end, only to the next call; the poller tells of them again.
                let (bytes, goes_on) = many.discard_ready(socket.as_fd()).unwrap_or((0, true));
                received += bytes;
                if !goes_on {
                    active.remove(&event.token);
                }
            }
        }
    }
    account.lock().expect("no thread panics with it").tally.carried(received, 0);
    Ok(())
}

/// A connection under way.
struct Sender {
    socket: Socket,
    bytes: u64,
    /// Bytes to be written.
    left: u64,
    /// When connect() was called, ns.
    began: u64,
}

/// What a connection needs next.
enum Step {
    /// Room for more.
    Room,
    /// The acknowledgement of all.
    Acks,
    /// Nothing: all is acknowledged.
    Done,
    /// Nothing: the connection has failed.
    Failed,
}

/// Begins every connection at its time and ends with the trial.
fn send_all(entry: &Transfers, clock: Clock, account: &Mutex<Account>) -> io::Result<()> {
    timer_slack(1);
    let mut poller = Poller::new()?;
    let (end, zeros) = (clock.zero + clock.end, vec![0; entry.chunk()]);
    let mut active: HashMap<u64, Sender> = HashMap::new();
    let mut next = 0;
    let mut events = Vec::new();
    loop {
        let due = entry.drawn.get(next).map_or(end, |t| clock.zero + t.start_ns);
        let is_due = poller.wait_until(due.min(end), &mut events)?;
        for event in &events {
            let Some(sender) = active.get_mut(&event.token) else { continue };
            match sender.step(&zeros, event.failed) {
                Step::Room => {}
                Step::Acks => poller.change(sender.socket.as_fd(), event.token, Interest::Errors)?,
                Step::Done => close(&mut active, event.token, account, true),
                Step::Failed => close(&mut active, event.token, account, false),
            }
        }
        if is_due && due >= end {
            break;
        }
        if let Some(transfer) = entry.drawn.get(next).filter(|_| is_due) {
            let sender = Sender::begin(entry, transfer.bytes)?;
            poller.add(sender.socket.as_fd(), next as u64, Interest::Room)?;
            account.lock().expect("no thread panics with it").tally.started(transfer.bytes);
            active.insert(next as u64, sender);
            next += 1;
        }
    }
    let rest: Vec<u64> = active.keys().copied().collect();
    rest.into_iter().for_each(|token| close(&mut active, token, account, false));
    Ok(())
}

/// Ends a connection with a RST, and counts it.
fn close(active: &mut HashMap<u64, Sender>, token: u64, account: &Mutex<Account>, completed: bool) {
    let Some(sender) = active.remove(&token) else { return };
    let took = Duration(now().saturating_sub(sender.began));
    let retransmits = TcpInfo::of(sender.socket.as_fd()).map_or(0, |x| u64::from(x.total_retrans()));
    disconnect(sender.socket.as_fd());
    let tally = &mut account.lock().expect("no thread panics with it").tally;
    if completed {
        tally.completed(sender.bytes, took);
    }
    tally.carried(0, retransmits);
}

impl Sender {
    /// A connection that is being made.
    fn begin(entry: &Transfers, bytes: u64) -> io::Result<Sender> {
        let socket = sockets::sender(&entry.plan.flow, entry.options.buffers)?;
        socket.set_nonblocking(true)?;
        let began = now();
        match socket.connect(&entry.to.into()) {
            Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => Err(e),
            _ => Ok(Sender { socket, bytes, left: bytes, began }),
        }
    }

    /// Does what the connection is ready for.
    fn step(&mut self, zeros: &[u8], failed: bool) -> Step {
        if failed && !sys::take_stamps(self.socket.as_fd()) {
            return Step::Failed;
        }
        while self.left > 0 {
            let n = self.left.min(zeros.len() as u64);
            if n == self.left && sys::stamp_last_ack(self.socket.as_fd()).is_err() {
                return Step::Failed;
            }
            match self.socket.send_with_flags(&zeros[..n as usize], libc::MSG_NOSIGNAL) {
                Ok(n) => self.left -= n as u64,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Step::Room,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Step::Failed,
            }
        }
        if unacknowledged(self.socket.as_fd()) > 0 {
            Step::Acks
        } else {
            Step::Done
        }
    }
}
