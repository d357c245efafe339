//! The receivers of transfers: one thread for all connections of an entry, which reads as soon as there is something to read.

use super::sys::{Interest, Poller};
use super::{Account, Transfers};
use crate::flows::Clock;
use crate::sys::Batch;
use socket2::Socket;
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Mutex;

/// Most reads in one system call.
const READS: usize = 64;
/// The listener's token; connections are numbered from 0.
const LISTENER: u64 = u64::MAX;

/// Accepts and reads until the end of the trial.
pub fn run(entry: &Transfers, clock: Clock, account: &Mutex<Account>) -> io::Result<()> {
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
