//! The time that user code takes: calls into Python write it down, and a thread that needs no GIL ends those that take too long.
//!
//! First the call is interrupted: `interrupt` is called with the GIL, from a thread of its own, and raises an exception in the thread that is
//! watched. What does not come back (a loop in C, a wait) ends the process with `last_words` on stderr and status 2, where they are given.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often the time is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long an interrupted call has to come back, and how often it is interrupted meanwhile.
const GRACE: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_millis(500);
/// Exit status of an error that a user can mend.
const USER_ERROR: i32 = 2;

/// Time spent in calls of user code.
pub struct Clock {
    base: Instant,
    /// When the call that runs began, ns since `base`, from 1; 0 while none does.
    began: AtomicU64,
    /// Calls that are over, ns.
    spent: AtomicU64,
    /// What runs, or ran last.
    name: Mutex<&'static str>,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { base: Instant::now(), began: AtomicU64::new(0), spent: AtomicU64::new(0), name: Mutex::new("") }
    }
}

impl Clock {
    /// Starts at zero.
    pub fn reset(&self) {
        self.began.store(0, Relaxed);
        self.spent.store(0, Relaxed);
    }

    /// Does `work`, a call of user code of this name.
    pub fn call<T>(&self, name: &'static str, work: impl FnOnce() -> T) -> T {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
        let began = self.now();
        self.began.store(began, Relaxed);
        let result = work();
        self.began.store(0, Relaxed);
        self.spent.fetch_add(self.now() - began, Relaxed);
        result
    }

    /// Calls that are over, ns.
    pub fn spent_ns(&self) -> u64 {
        self.spent.load(Relaxed)
    }

    fn now(&self) -> u64 {
        self.base.elapsed().as_nanos() as u64 + 1
    }

    /// The call that runs, and all calls.
    fn running(&self) -> (Duration, Duration) {
        let began = self.began.load(Relaxed);
        let call = if began == 0 { 0 } else { self.now() - began };
        (Duration::from_nanos(call), Duration::from_nanos(self.spent_ns() + call))
    }
}

/// Watches a clock until it is closed or dropped.
#[pyclass(frozen, module = "tcpscape._core")]
pub struct Watch {
    clock: Arc<Clock>,
    is_closed: Arc<AtomicBool>,
}

/// What is allowed, and what happens otherwise.
struct Bounds {
    call: Duration,
    total: Duration,
    interrupt: Arc<Py<PyAny>>,
    last_words: Option<String>,
}

impl Watch {
    /// Starts to watch `clock`; times in s.
    pub fn of(clock: Arc<Clock>, call_s: f64, total_s: f64, interrupt: Py<PyAny>, last_words: Option<String>) -> Watch {
        let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX);
        let bounds = Bounds { call: seconds(call_s), total: seconds(total_s), interrupt: Arc::new(interrupt), last_words };
        let is_closed = Arc::<AtomicBool>::default();
        let (watched, closed) = (clock.clone(), is_closed.clone());
        // Where no thread can start, nothing is watched; whoever needs threads for the trials says so.
        let _ = thread::Builder::new().name("watch".into()).spawn(move || bounds.watch(&watched, &closed));
        Watch { clock, is_closed }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.close();
    }
}

#[pymethods]
impl Watch {
    /// A watch of a clock of its own, for `run`.
    #[new]
    fn new(call_s: f64, interrupt: Py<PyAny>, last_words: Option<String>) -> Watch {
        Watch::of(Arc::default(), call_s, f64::INFINITY, interrupt, last_words)
    }

    /// Calls a function as a call that is watched.
    fn call(&self, function: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.clock.call("", || function.call0().map(Bound::unbind))
    }

    /// Ends watching.
    fn close(&self) {
        self.is_closed.store(true, Relaxed);
    }
}

impl Bounds {
    fn watch(&self, clock: &Clock, is_closed: &AtomicBool) {
        let mut over_since: Option<Instant> = None;
        let mut interrupted: Option<Instant> = None;
        while !is_closed.load(Relaxed) {
            thread::sleep(LOOK);
            let (call, total) = clock.running();
            if call <= self.call && total <= self.total {
                (over_since, interrupted) = (None, None);
                continue;
            }
            let since = *over_since.get_or_insert_with(Instant::now);
            if interrupted.map_or(true, |at| at.elapsed() > AGAIN) && !is_closed.load(Relaxed) {
                interrupted = Some(Instant::now());
                self.interrupt();
            }
            if since.elapsed() > GRACE {
                self.end(clock);
            }
        }
    }

    fn interrupt(&self) {
        let interrupt = self.interrupt.clone();
        // It waits for the GIL, perhaps without end: a loop in C does not give it away.
        let _ = thread::Builder::new().spawn(move || {
            Python::with_gil(|py| {
                let _ = interrupt.call0(py);
            })
        });
    }

    fn end(&self, clock: &Clock) {
        if let Some(words) = &self.last_words {
            let name = *clock.name.lock().unwrap_or_else(PoisonError::into_inner);
            eprintln!("{}", words.replace("HOOK", name));
            std::process::exit(USER_ERROR);
        }
    }
}
