//! Congestion controls written in Python: the trait's hooks as calls into an object, with the GIL held for the whole trial.

use crate::sample::{self, PyWindow, Sample};
use crate::watch::Clock;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use tcpscape_base::CaState;
use tcpscape_sim::Controls;
use tcpscape_tcp::cc::{AckSample, CaEvent, CongestionController, InAck, LostPacket, Observation, PktsAcked, Shown, View, Window};

/// What a hook raised; unwinds the trial.
pub struct Failed {
    pub control: String,
    pub hook: &'static str,
    pub error: PyErr,
}

/// What the hooks of one trial cost.
#[derive(Default)]
pub struct Cost {
    acks: AtomicU64,
    pub clock: Arc<Clock>,
}

impl Cost {
    /// Starts a trial.
    pub fn reset(&self) {
        self.acks.store(0, Relaxed);
        self.clock.reset();
    }

    /// Calls of `on_ack`, s in hooks, s in all.
    pub fn dict<'py>(&self, py: Python<'py>, run_s: f64) -> PyResult<Bound<'py, PyDict>> {
        let d = PyDict::new(py);
        d.set_item("acks", self.acks.load(Relaxed))?;
        d.set_item("hooks_s", self.clock.spent_ns() as f64 / 1e9)?;
        d.set_item("run_s", run_s)?;
        Ok(d)
    }
}

/// The registry with the Python congestion controls: each name with what makes one, called with the flow's seed.
pub fn controls(makers: BTreeMap<String, Py<PyAny>>, cost: &Arc<Cost>) -> Controls<'static> {
    let mut all = Controls::new();
    for (name, maker) in makers {
        let (cost, control) = (cost.clone(), name.clone());
        all = all.with(name, move |_flow, seed| {
            Python::with_gil(|py| {
                let made = cost.clock.call("__init__", || maker.bind(py).call1((seed,)));
                match made.and_then(|object| Hooked::new(&object, &control, cost.clone())) {
                    Ok(hooked) => Box::new(hooked) as Box<dyn CongestionController>,
                    Err(error) => stop(Failed { control: control.clone(), hook: "__init__", error }),
                }
            })
        });
    }
    all
}

/// Ends the trial. Nothing is printed: whoever called it catches this and tells the user.
fn stop(failed: Failed) -> ! {
    std::panic::resume_unwind(Box::new(failed))
}

/// A method of an object, and its name.
struct Hook {
    name: &'static str,
    method: Py<PyAny>,
}

/// The methods that an object has; what it has not is done here, as Reno does it.
struct Hooks {
    init: Option<Hook>,
    ssthresh: Option<Hook>,
    in_ack: Option<Hook>,
    pkts_acked: Option<Hook>,
    on_lost: Option<Hook>,
    on_ack: Option<Hook>,
    on_state: Option<Hook>,
    on_event: Option<Hook>,
    undo: Option<Hook>,
}

/// A Python object as a congestion control.
struct Hooked {
    name: String,
    hooks: Hooks,
    /// The object, where it has an attribute `observed`.
    shows: Option<Py<PyAny>>,
    window: Py<PyWindow>,
    paced: bool,
    owns_window: bool,
    needs_ecn: bool,
    reacts_to_loss: bool,
    min_tso_segs: u32,
    sndbuf_expand: u32,
    /// `delivered_ce` at the last ACK.
    ce_before: u32,
    cost: Arc<Cost>,
}

/// An attribute of the object, or its default where the object has none.
fn attribute<'py, T: FromPyObject<'py>>(object: &Bound<'py, PyAny>, name: &str, default: T) -> PyResult<T> {
    match object.getattr_opt(name)? {
        Some(value) => value.extract().map_err(|e| PyTypeError::new_err(format!("{name} = {value}: {e}"))),
        None => Ok(default),
    }
}

impl Hooked {
    fn new(object: &Bound<'_, PyAny>, name: &str, cost: Arc<Cost>) -> PyResult<Hooked> {
        // The base class has the defaults for readers and for super(); they are not worth a call.
        let base = object.py().import("tcpscape.controls.hooks")?.getattr("Control")?;
        let hook = |name: &'static str| -> PyResult<Option<Hook>> {
            let own = object.get_type().getattr_opt(name)?;
            let inherited = base.getattr_opt(name)?;
            if own.is_none() || own.as_ref().zip(inherited.as_ref()).is_some_and(|(a, b)| a.is(b)) {
                return Ok(None);
            }
            Ok(Some(Hook { name, method: object.getattr(name)?.unbind() }))
        };
        let hooks = Hooks {
            init: hook("init")?,
            ssthresh: hook("ssthresh")?,
            in_ack: hook("in_ack")?,
            pkts_acked: hook("pkts_acked")?,
            on_lost: hook("on_lost")?,
            on_ack: hook("on_ack")?,
            on_state: hook("on_state")?,
            on_event: hook("on_event")?,
            undo: hook("undo")?,
        };
        Ok(Hooked {
            name: name.to_owned(),
            hooks,
            shows: object.hasattr("observed")?.then(|| object.clone().unbind()),
            window: Py::new(object.py(), PyWindow { w: Window::default() })?,
            paced: attribute(object, "paced", false)?,
            owns_window: attribute(object, "owns_window", false)?,
            needs_ecn: attribute(object, "needs_ecn", false)?,
            reacts_to_loss: attribute(object, "reacts_to_loss", true)?,
            min_tso_segs: attribute(object, "min_tso_segs", 2u32)?.max(1),
            sndbuf_expand: attribute(object, "sndbuf_expand", 2u32)?.max(1),
            ce_before: 0,
            cost,
        })
    }

    /// Calls a hook with what it reads and the window; gives back what it returned.
    fn call<T>(
        &self,
        hook: &Hook,
        s: Sample,
        w: Window,
        third: impl FnOnce(Python<'_>) -> PyResult<Option<Py<PyAny>>>,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> (T, Window) {
        let call = |py: Python<'_>| -> PyResult<(T, Window)> {
            let window = self.window.bind(py);
            window.try_borrow_mut()?.w = w;
            let f = hook.method.bind(py);
            let sample = Bound::new(py, s)?;
            let answer = match third(py)? {
                Some(x) => f.call1((sample, window, x))?,
                None => f.call1((sample, window))?,
            };
            let answer = read(&answer)?;
            let w = window.try_borrow()?.w;
            Ok((answer, w))
        };
        let result = self.cost.clock.call(hook.name, || Python::with_gil(call));
        result.unwrap_or_else(|error| stop(Failed { control: self.name.clone(), hook: hook.name, error }))
    }

    /// A hook that writes the window and answers nothing.
    fn write(&self, hook: Option<&Hook>, s: Sample, w: &mut Window) {
        if let Some(hook) = hook {
            *w = self.call(hook, s, *w, |_| Ok(None), |_| Ok(())).1;
        }
    }

    /// A hook that reads the window and answers with a number of packets.
    fn ask(&self, hook: &Hook, v: &View, w: &Window) -> u32 {
        let packets = |answer: &Bound<'_, PyAny>| match answer.extract::<u32>() {
            Ok(n) if n > 0 => Ok(n),
            _ => Err(PyTypeError::new_err(format!("it returned {answer}, not a whole number of packets from 1"))),
        };
        self.call(hook, Sample::at(v), *w, |_| Ok(None), packets).0
    }
}

/// The variables of an object's dict `observed`, its method or its attribute: text is a state, a whole number or a bool a count, None nothing.
fn show(object: &Bound<'_, PyAny>, out: &mut Observation) -> PyResult<()> {
    let observed = object.getattr("observed")?;
    let observed = if observed.is_callable() { observed.call0()? } else { observed };
    for (name, value) in observed.downcast_into::<PyDict>()? {
        let shown = if let Ok(text) = value.extract::<String>() {
            Shown::State(text.into())
        } else if value.is_instance_of::<PyInt>() {
            Shown::Count(value.extract()?)
        } else if value.is_none() {
            Shown::Number(f64::NAN)
        } else {
            Shown::Number(value.extract()?)
        };
        out.show(name.extract::<String>()?, shown);
    }
    Ok(())
}

impl CongestionController for Hooked {
    fn init(&mut self, v: &View, w: &mut Window) {
        w.paced = self.paced;
        self.ce_before = v.counts.delivered_ce;
        self.write(self.hooks.init.as_ref(), Sample::at(v), w);
    }

    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        match &self.hooks.ssthresh {
            Some(hook) => self.ask(hook, v, w),
            None => (w.cwnd / 2).max(2),
        }
    }

    fn wants_in_ack(&self) -> bool {
        self.hooks.in_ack.is_some()
    }

    fn in_ack(&mut self, v: &View, w: &mut Window, a: InAck) {
        self.write(self.hooks.in_ack.as_ref(), Sample { a, ..Sample::at(v) }, w);
    }

    fn pkts_acked(&mut self, v: &View, w: &mut Window, a: &PktsAcked) {
        if self.hooks.pkts_acked.is_some() {
            self.write(self.hooks.pkts_acked.as_ref(), Sample::pkts_acked(v, a), w);
        }
    }

    fn wants_lost(&self) -> bool {
        self.hooks.on_lost.is_some()
    }

    fn on_lost(&mut self, v: &View, w: &mut Window, p: &LostPacket) {
        self.write(self.hooks.on_lost.as_ref(), Sample::on_lost(v, p), w);
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        let ce = v.counts.delivered_ce.wrapping_sub(self.ce_before);
        self.ce_before = v.counts.delivered_ce;
        self.cost.acks.fetch_add(1, Relaxed);
        self.write(self.hooks.on_ack.as_ref(), Sample { s: *s, ce, ..Sample::at(v) }, w);
    }

    fn on_state(&mut self, v: &View, w: &mut Window, new: CaState) {
        if let Some(hook) = &self.hooks.on_state {
            let state = |py: Python<'_>| sample::state(py, new).map(Some);
            *w = self.call(hook, Sample::at(v), *w, state, |_| Ok(())).1;
        }
    }

    fn on_event(&mut self, v: &View, w: &mut Window, e: CaEvent) {
        if let Some(hook) = &self.hooks.on_event {
            let event = |py: Python<'_>| sample::event(py, e).map(Some);
            *w = self.call(hook, Sample::at(v), *w, event, |_| Ok(())).1;
        }
    }

    fn undo(&mut self, v: &View, w: &Window) -> u32 {
        match &self.hooks.undo {
            Some(hook) => self.ask(hook, v, w),
            None => w.cwnd.max(w.prior_cwnd),
        }
    }

    fn owns_window(&self) -> bool {
        self.owns_window
    }
    fn observe(&self, _v: &View, _w: &Window, out: &mut Observation) {
        let Some(object) = &self.shows else { return };
        let read = || Python::with_gil(|py| show(object.bind(py), out));
        if let Err(error) = self.cost.clock.call("observed", read) {
            stop(Failed { control: self.name.clone(), hook: "observed", error });
        }
    }
    fn needs_ecn(&self) -> bool {
        self.needs_ecn
    }
    fn reacts_to_loss(&self) -> bool {
        self.reacts_to_loss
    }
    fn min_tso_segs(&self, _w: &Window) -> u32 {
        self.min_tso_segs
    }
    fn sndbuf_expand(&self) -> u32 {
        self.sndbuf_expand
    }
}
