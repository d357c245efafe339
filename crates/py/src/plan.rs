//! A plan for Python: parsed and checked once when the object is made, then run with any number of seeds.

use crate::control::{self, Cost, Failed};
use crate::watch::Watch;
use crate::{convert, refused, HookError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tcpscape_sim::{CheckedPlan, TrialOutput};

/// Congestion controls in Python by name, with what makes one for a flow: `maker(seed)`.
type Makers = BTreeMap<String, Py<PyAny>>;

/// How long trials run before the interpreter is looked at again.
const AWAY: Duration = Duration::from_millis(20);

/// What to simulate, without the seed.
#[pyclass(frozen, module = "tcpscape._core")]
pub struct Plan {
    checked: CheckedPlan<'static>,
    recorded: convert::Recorded,
    /// What hooks cost, where congestion controls are Python code: then the GIL is held for a whole trial.
    cost: Option<Arc<Cost>>,
}

#[pymethods]
impl Plan {
    /// Reads and checks a plan's JSON; ValueError for one that makes no sense.
    #[new]
    #[pyo3(signature = (json, controls=None))]
    fn new(json: &str, controls: Option<Makers>) -> PyResult<Plan> {
        let cost = controls.is_some().then(Arc::default);
        let known = match (controls, &cost) {
            (Some(makers), Some(cost)) => control::controls(makers, cost),
            _ => tcpscape_sim::Controls::new(),
        };
        let plan = tcpscape_plan::Plan::from_json(json).map_err(refused)?;
        let recorded = convert::Recorded::by(&plan);
        Ok(Plan { checked: CheckedPlan::with_controls(plan, &known).map_err(refused)?, recorded, cost })
    }

    /// Runs one trial; its results as a dict, columns as `(dtype, buffer)`. None where `stop` was set before it was over.
    #[pyo3(signature = (seed, stop=None))]
    fn run<'py>(&self, py: Python<'py>, seed: u64, stop: Option<&Stop>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let run = || self.output(seed, stop);
        let Some(cost) = &self.cost else {
            return py.allow_threads(run).map(|output| self.finished(py, output)).transpose();
        };
        cost.reset();
        let began = Instant::now();
        let Some(output) = hooked(py, run)? else { return Ok(None) };
        let run_s = began.elapsed().as_secs_f64();
        let dict = self.finished(py, output)?;
        dict.set_item("hook_cost", cost.dict(py, run_s)?)?;
        Ok(Some(dict))
    }

    /// Runs a trial for each seed, as [`Plan::run`] does, without the GIL in between where no control is Python code; signals are still looked at.
    #[pyo3(signature = (seeds, stop=None))]
    fn run_all<'py>(&self, py: Python<'py>, seeds: Vec<u64>, stop: Option<&Stop>) -> PyResult<Option<Vec<Bound<'py, PyDict>>>> {
        if self.cost.is_some() {
            return seeds.into_iter().map(|seed| self.run(py, seed, stop)).collect();
        }
        let mut results = Vec::with_capacity(seeds.len());
        let mut left = seeds.into_iter().peekable();
        while left.peek().is_some() {
            py.check_signals()?;
            let outputs = py.allow_threads(|| {
                let began = Instant::now();
                let mut outputs = Vec::new();
                while let Some(seed) = left.next_if(|_| outputs.is_empty() || began.elapsed() < AWAY) {
                    outputs.push(self.output(seed, stop)?);
                }
                Some(outputs)
            });
            let Some(outputs) = outputs else { return Ok(None) };
            for output in outputs {
                results.push(self.finished(py, output)?);
            }
        }
        Ok(Some(results))
    }

    /// Watches the calls of hooks from now on; seconds for each of them and for those of a trial together. None without hooks.
    fn watch(&self, call_s: f64, total_s: f64, interrupt: Py<PyAny>, last_words: Option<String>) -> Option<Watch> {
        let clock = self.cost.as_ref()?.clock.clone();
        Some(Watch::of(clock, call_s, total_s, interrupt, last_words))
    }

    /// Most packets of data that a trial carries; it takes about a microsecond of a CPU for each.
    fn most_packets(&self) -> u64 {
        self.checked.most_packets()
    }

    /// Runs one trial and writes its packets as pcapng; the plan must record them.
    fn write_pcapng(&self, py: Python<'_>, path: &str, seed: u64) -> PyResult<()> {
        let write = || tcpscape_sim::write_pcapng(path, &self.checked, seed);
        let written = match self.cost {
            None => py.allow_threads(write),
            Some(_) => hooked(py, write)?,
        };
        written.map_err(refused)
    }
}

impl Plan {
    /// What comes out of a trial; none where `stop` was set before it was over.
    fn output(&self, seed: u64, stop: Option<&Stop>) -> Option<TrialOutput> {
        match stop {
            None => Some(self.checked.run(seed)),
            Some(stop) => self.checked.run_unless(seed, || stop.is_set()),
        }
    }

    /// The results of a trial; ValueError for one that was ended long before its time.
    fn finished<'py>(&self, py: Python<'py>, output: TrialOutput) -> PyResult<Bound<'py, PyDict>> {
        match output.stalled {
            Some(problem) => Err(refused(problem)),
            None => convert::trial(py, &output, self.recorded),
        }
    }
}

/// Whether trials that look at it are to end.
#[pyclass(frozen, module = "tcpscape._core")]
#[derive(Default)]
pub struct Stop(AtomicBool);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Stop {
        Stop::default()
    }

    /// Ends every trial that looks at it, for good.
    fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Does `work`; where a hook of a Python congestion control raised something, `HookError(control, hook)` with that as its cause.
fn hooked<T>(py: Python<'_>, work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| match payload.downcast::<Failed>() {
        Ok(failed) => {
            let error = HookError::new_err((failed.control, failed.hook));
            error.set_cause(py, Some(failed.error));
            error
        }
        Err(bug) => std::panic::resume_unwind(bug),
    })
}
