//! The applications: a writer and a reader thread for each flow, on real sockets.
//!
//! What they are: the model's applications (docs/models/tcp/applications.md) as system calls: writes of `chunk` bytes as fast as
//! the socket takes them, with a pause after each, by turns with pauses, or so many in all; reads of `size` bytes with or without a sleep
//! before each, or a client and its server ([`applications`]). [`sockets`] makes the sockets. Source: the published experiments' scripts, tcp(7).
//! How they differ from a loop of `write` and `read`: many of them share one system call ([`crate::sys::Batch`]), which the kernel does one after
//! the other. The end is a RST at the flow's stop time, as if the program had closed its socket without lingering.

use crate::sys::{self, Batch, Thread};
use crate::tcp_info::TcpInfo;
use socket2::Socket;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use tcpscape_base::Time;
use tcpscape_plan::requests::Client;
use tcpscape_plan::results::ResponseSummary;
use tcpscape_plan::{App, FlowPlan, PlayerSummary};

mod applications;
pub(crate) mod sockets;

pub use sockets::Buffers;

/// First port; flow i listens on `PORT + i`.
pub(crate) const PORT: u16 = 9000;
/// Stack of an application's thread, bytes.
const STACK: usize = 64 << 10;
/// How often a finite transfer looks whether all is acknowledged, ns.
const ACKED_POLL: u64 = 500_000;
/// Most bytes of writes in one system call.
const MOST_AT_ONCE: usize = 64 << 20;

/// What a flow does besides its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How its sockets' buffers are set.
    pub buffers: Buffers,
    /// Whether its threads say at their end how long they ran and waited: [`Flow::cpu`].
    pub cpu: bool,
    /// How its applications sleep.
    pub sleeps: Sleeps,
}

/// How an application sleeps between its reads or writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sleeps {
    /// In chains without a system call between them, with the plan's timer slack and scheduling noise added: for virtual time.
    #[default]
    Chained,
    /// By nanosleep(2), with the timer slack that the kernel adds and the latency that this machine has: for real time.
    Plain,
}

/// How long a thread of a flow ran, and how long it waited for a processor, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// On a processor.
    pub ran: u64,
    /// Ready to run, but on none.
    pub waited: u64,
}

/// What the threads of a flow and its watcher share.
pub struct Flow {
    /// The plan's words for it.
    pub plan: FlowPlan,
    /// The sender's socket.
    pub sender: Socket,
    listener: Socket,
    receiver: OnceLock<Socket>,
    /// The sender's last words before it closed.
    last: Mutex<Option<TcpInfo>>,
    /// What went wrong in its applications.
    trouble: Mutex<Option<String>>,
    begin: AtomicU64,
    end: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    stopping: AtomicBool,
    writing: AtomicBool,
    reading: AtomicBool,
    noise: AtomicU64,
    /// What the viewer of its player has seen, once the reader has ended.
    viewed: OnceLock<PlayerSummary>,
    /// How long its requests took, once the reader has ended.
    answered: OnceLock<ResponseSummary>,
    options: Options,
    /// The writer's and the reader's time on processors, once they have ended.
    cpu: [OnceLock<Cpu>; 2],
}

/// A flow's threads.
pub struct Running {
    /// What they share.
    pub flow: Arc<Flow>,
    writer: (Arc<OnceLock<Thread>>, JoinHandle<()>),
    reader: JoinHandle<()>,
}

/// When a trial runs.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The trial's time 0 on the monotonic clock, ns.
    pub zero: u64,
    /// How long it lasts, ns.
    pub end: u64,
    /// Timer slack of the applications, ns.
    pub slack: u64,
    /// Most that a sleep lasts longer, ns.
    pub noise: u64,
}

impl Flow {
    /// The listening socket; the calling thread is in the receiver's namespace. `Flow::dial` makes the other one.
    pub fn listen(plan: &FlowPlan, index: usize, options: Options) -> io::Result<Socket> {
        sockets::listener(plan, PORT + index as u16, options.buffers)
    }

    /// The flow with its sender's socket; the calling thread is in the sender's namespace.
    pub fn dial(plan: &FlowPlan, listener: Socket, options: Options, seed: u64) -> io::Result<Flow> {
        let sender = sockets::sender(plan, options.buffers)?;
        Ok(Flow {
            plan: plan.clone(),
            sender,
            listener,
            receiver: OnceLock::new(),
            last: Mutex::new(None),
            trouble: Mutex::new(None),
            begin: AtomicU64::new(0),
            end: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            writing: AtomicBool::new(true),
            reading: AtomicBool::new(true),
            noise: AtomicU64::new(seed | 1),
            viewed: OnceLock::new(),
            answered: OnceLock::new(),
            options,
            cpu: Default::default(),
        })
    }

    /// Starts both threads; the reader listens already.
    pub fn start(self, index: usize, to: Ipv4Addr, clock: Clock) -> io::Result<Running> {
        let flow = Arc::new(self);
        let address = SocketAddrV4::new(to, PORT + index as u16);
        let (mine, theirs) = (flow.clone(), flow.clone());
        let reader = thread(move || {
            mine.note("reader", mine.read(clock));
            mine.keep_cpu(1);
            mine.reading.store(false, Ordering::Release);
        })?;
        let id = Arc::new(OnceLock::new());
        let publish = id.clone();
        let writer = thread(move || {
            let _ = publish.set(Thread::current());
            theirs.write(address, clock);
            theirs.keep_cpu(0);
            theirs.writing.store(false, Ordering::Release);
        })?;
        Ok(Running { flow, writer: (id, writer), reader })
    }

    /// The receiver's socket, once the connection was accepted.
    pub fn receiver(&self) -> Option<&Socket> {
        self.receiver.get()
    }

    /// Whether connect() has returned and the flow has not ended.
    pub fn sending(&self) -> bool {
        self.begin.load(Ordering::Acquire) > 0 && self.end.load(Ordering::Acquire) == 0
    }

    /// When connect() returned and when the sender stopped, ns on the guest's clock; 0 never.
    pub fn span(&self) -> (u64, u64) {
        (self.begin.load(Ordering::Acquire), self.end.load(Ordering::Acquire))
    }

    /// Bytes written and bytes read.
    pub fn bytes(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Acquire), self.received.load(Ordering::Acquire))
    }

    /// TCP_INFO just before the end.
    pub fn last_info(&self) -> Option<TcpInfo> {
        *self.last.lock().expect("no thread panics with it")
    }

    /// What the viewer of its player has seen by `end`; one without a connection waited all the time. None without a player.
    pub fn viewed(&self, end: Time) -> Option<PlayerSummary> {
        self.viewed.get().copied().or_else(|| Client::of(&self.plan)?.player(end))
    }

    /// How long its requests took; none where its application does not answer any.
    pub fn responses(&self) -> Option<ResponseSummary> {
        self.answered.get().copied().or_else(|| Client::of(&self.plan)?.responses())
    }

    /// The writer's and the reader's time on processors, once they have ended; None where nobody asked for it or the kernel does not tell.
    pub fn cpu(&self) -> [Option<Cpu>; 2] {
        [0, 1].map(|i| self.cpu[i].get().copied())
    }

    fn keep_cpu(&self, thread: usize) {
        if !self.options.cpu {
            return;
        }
        if let Some((ran, waited)) = sys::cpu_time() {
            let _ = self.cpu[thread].set(Cpu { ran, waited });
        }
    }

    /// What went wrong in its applications, if anything did.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().expect("no thread panics with it").clone()
    }

    fn note(&self, who: &str, outcome: io::Result<()>) {
        if let Err(e) = outcome {
            *self.trouble.lock().expect("no thread panics with it") = Some(format!("the {who} failed: {e}"));
        }
    }

    /// Whether the sender has ended.
    pub fn writer_ended(&self) -> bool {
        !self.writing.load(Ordering::Acquire)
    }

    /// Whether both have ended.
    pub fn ended(&self) -> bool {
        self.writer_ended() && !self.reading.load(Ordering::Acquire)
    }

    fn write(&self, address: SocketAddrV4, clock: Clock) {
        sys::timer_slack(clock.slack);
        sys::nap_until(clock.zero + self.plan.start_ns);
        if self.sender.connect(&address.into()).is_err() {
            return;
        }
        self.begin.store(sys::now(), Ordering::Release);
        match self.plan.app {
            App::Bulk { chunk } if self.plan.player.is_some() => self.serve(chunk as usize),
            App::Bulk { chunk } => self.write_all(chunk as usize, u64::MAX),
            App::Finite { chunk, bytes } => {
                self.write_all(chunk as usize, bytes);
                while !self.stopping() && sys::unacknowledged(self.sender.as_fd()) > 0 {
                    sys::nap(ACKED_POLL);
                }
            }
            App::Paced { chunk, .. } => self.note("writer", self.write_paced(chunk as usize, clock)),
            App::Respond { chunk, .. } => self.serve(chunk as usize),
            App::OnOff { chunk, .. } => self.write_by_turns(chunk as usize, clock),
        }
        let info = TcpInfo::of(self.sender.as_fd()).ok();
        *self.last.lock().expect("no thread panics with it") = info;
        self.end.store(sys::now(), Ordering::Release);
        sys::disconnect(self.sender.as_fd());
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Writes `bytes` in chunks as fast as the socket takes them, until it is told to stop or the connection ends.
    fn write_all(&self, chunk: usize, bytes: u64) {
        let mut many = Batch::new((MOST_AT_ONCE / chunk).max(1), chunk);
        let mut whole = bytes / chunk as u64;
        while whole > 0 && !self.stopping() {
            let most = whole.min(usize::MAX as u64) as usize;
            match many.send(self.sender.as_fd(), most) {
                Ok(n) => {
                    self.sent.fetch_add(n, Ordering::AcqRel);
                    whole -= (n / chunk as u64).min(whole);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
        let rest = (bytes % chunk as u64) as usize;
        if rest > 0 && bytes < u64::MAX && !self.stopping() {
            if let Ok(n) = Batch::new(1, rest).send(self.sender.as_fd(), 1) {
                self.sent.fetch_add(n, Ordering::AcqRel);
            }
        }
    }

    fn read(&self, clock: Clock) -> io::Result<()> {
        sys::timer_slack(clock.slack);
        let Ok((socket, _)) = self.listener.accept() else { return Ok(()) };
        let socket = self.receiver.get_or_init(|| socket);
        if let Some(client) = Client::of(&self.plan) {
            self.converse(socket, client, clock);
            return Ok(());
        }
        let (size, delay) = (self.plan.read.size as usize, self.plan.read.delay_ns);
        if delay > 0 {
            return self.read_slowly(socket, size, delay, clock);
        }
        let mut many = Batch::new(1024, size);
        loop {
            let Ok((n, more)) = many.discard(socket.as_fd()) else { return Ok(()) };
            self.add_received(n);
            if !more {
                return Ok(());
            }
        }
    }

    fn add_received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::AcqRel);
    }
}

impl Running {
    /// Tells the sender to stop now; to be repeated until it has ended.
    pub fn stop(&self) {
        self.flow.stopping.store(true, Ordering::Release);
        if let Some(thread) = self.writer.0.get() {
            thread.interrupt(&self.flow.writing);
        }
    }

    /// Ends a reader whose peer's RST was lost.
    pub fn hang_up(&self) {
        let _ = self.flow.listener.shutdown(std::net::Shutdown::Both);
        if let Some(socket) = self.flow.receiver() {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Waits for both threads.
    pub fn join(self) -> Arc<Flow> {
        let _ = self.writer.1.join();
        let _ = self.reader.join();
        self.flow
    }
}

pub(crate) fn thread(body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().stack_size(STACK).spawn(body)
}
