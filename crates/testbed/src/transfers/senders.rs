//! The senders of transfers: one thread for all connections of an entry.

use super::sys::{self, Interest, Poller};
use super::{Account, Transfers};
use crate::flows::{sockets, Clock};
use crate::sys::{disconnect, now, timer_slack, unacknowledged};
use crate::tcp_info::TcpInfo;
use socket2::Socket;
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Mutex;
use tcpscape_base::Duration;

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
pub fn run(entry: &Transfers, clock: Clock, account: &Mutex<Account>) -> io::Result<()> {
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
