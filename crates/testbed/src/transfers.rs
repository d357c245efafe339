//! Connections that arrive at random, on real sockets: each has one of its own, made when it begins and closed when all is acknowledged.
//!
//! What they are: the model's transfers, with the same starts and sizes ([`tcpscape_plan::transfers::draw`]). An entry of the plan costs two threads,
//! however many connections it has: [`senders`] begins, writes and closes them, [`receivers`] accepts and reads them, both where epoll(7) tells
//! them to. Source: docs/models/methods/traffic.md, tcp(7), `Documentation/networking/timestamping.rst` (SOF_TIMESTAMPING_TX_ACK: the kernel tells
//! when the last byte is acknowledged, so nobody has to look again and again). A connection ends with a RST, as a flow does.

mod receivers;
mod senders;
mod sys;

use crate::flows::{sockets, thread, Clock, Options, PORT};
use crate::network::Site;
use socket2::Socket;
use std::io;
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tcpscape_plan::results::TransfersSummary;
use tcpscape_plan::transfers::{draw, Tally, Transfer};
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
    /// Entry `index` of a plan whose flows and entries before took `ports` ports; the calling thread ends in the receivers' namespace.
    pub fn prepare(
        plan: &TransfersPlan,
        index: usize,
        port: usize,
        to: Site<'_>,
        options: Options,
        trial: (u64, u64),
    ) -> io::Result<Transfers> {
        crate::sys::enter(to.namespace)?;
        let (seed, duration) = trial;
        let listener = sockets::listener(&plan.flow, PORT + port as u16, options.buffers)?;
        listener.listen(BACKLOG)?;
        listener.set_nonblocking(true)?;
        let to = SocketAddrV4::new(to.address, PORT + port as u16);
        Ok(Transfers { plan: plan.clone(), drawn: draw(plan, index, seed, duration), listener, to, options })
    }

    /// Starts both threads; the calling one is in the senders' namespace.
    pub fn start(self, clock: Clock) -> io::Result<Running> {
        let shared = Arc::new(Mutex::new(Account { tally: Tally::new(&self.plan), troubles: Vec::new() }));
        let (entry, mine) = (Arc::new(self), shared.clone());
        let (theirs, account) = (entry.clone(), shared.clone());
        let receiver = thread(move || note(&mine, "receivers", receivers::run(&entry, clock, &mine)))?;
        let sender = thread(move || note(&account, "senders", senders::run(&theirs, clock, &account)))?;
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
