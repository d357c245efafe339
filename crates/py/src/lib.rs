//! The Python leaf: conversions, one error table, the GIL released around heavy calls; no logic. Only where a congestion control is Python
//! code is the GIL held, for the whole trial.

mod control;
mod convert;
mod sample;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Instant;
use tcpscape_path::{parse_tc as parse, QdiscSpec, REGISTRY};
use tcpscape_sim::{plan, Controls, Plan};
use tcpscape_tcp::cc;

/// Anything a user can cause becomes a ValueError with its one line.
fn refused(e: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(e.to_string())
}

/// The version of the extension.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The version of the model: results of one version are comparable and reproducible bit for bit.
#[pyfunction]
fn model_version() -> String {
    format!("model-{}-{}", env!("CARGO_PKG_VERSION"), env!("TCPSCAPE_MODEL_HASH"))
}

/// A qdisc in tc's words as JSON.
#[pyfunction]
fn parse_tc(words: &str) -> PyResult<String> {
    let q = parse(words).map_err(refused)?;
    serde_json::to_string(&q).map_err(refused)
}

/// A qdisc's JSON in tc's words.
#[pyfunction]
fn to_tc(json: &str) -> PyResult<String> {
    let q: QdiscSpec = serde_json::from_str(json).map_err(refused)?;
    Ok(q.to_tc())
}

/// A parameter of a congestion control: name, about, default, smallest, largest.
type ParamRow = (&'static str, &'static str, i64, i64, i64);

/// The congestion controls: name, a line about it, its source, its parameters.
#[pyfunction]
fn cca_registry() -> Vec<(&'static str, &'static str, &'static str, Vec<ParamRow>)> {
    let params = |e: &cc::Entry| e.params.iter().map(|p| (p.name, p.about, p.default, p.min, p.max)).collect();
    cc::REGISTRY.iter().map(|e| (e.name, e.about, e.source, params(e))).collect()
}

/// Names of the queue disciplines, with an example of each.
#[pyfunction]
fn qdisc_registry() -> Vec<(&'static str, &'static str)> {
    REGISTRY.iter().map(|e| (e.name, e.example)).collect()
}

/// A kernel profile as JSON.
#[pyfunction]
fn kernel_profile(name: &str) -> PyResult<String> {
    let known: Vec<&str> = plan::PROFILES.iter().map(|p| p.0).collect();
    let k = plan::profile(name).ok_or_else(|| refused(format!("kernel: no profile '{name}'; there are {}", known.join(", "))))?;
    serde_json::to_string(&k).map_err(refused)
}

/// Names of the kernel profiles.
#[pyfunction]
fn kernel_profiles() -> Vec<&'static str> {
    plan::PROFILES.iter().map(|p| p.0).collect()
}

/// Congestion controls in Python by name, with what makes one for a flow: `maker(seed)`.
type Makers = BTreeMap<String, Py<PyAny>>;

/// Does `work`; where a hook of a Python congestion control raised something, `HookError(control, hook)` with that as its cause.
fn hooked<T>(py: Python<'_>, work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| match payload.downcast::<control::Failed>() {
        Ok(failed) => {
            let said = HookError::new_err((failed.control, failed.hook));
            said.set_cause(py, Some(failed.error));
            said
        }
        Err(bug) => std::panic::resume_unwind(bug),
    })
}

/// Runs a plan (JSON) with each seed on up to `threads` threads; a dict for each seed, in order. With `controls`, one after the other.
#[pyfunction]
#[pyo3(signature = (plan_json, seeds, threads, controls=None))]
fn run<'py>(py: Python<'py>, plan_json: &str, seeds: Vec<u64>, threads: usize, controls: Option<Makers>) -> PyResult<Bound<'py, PyList>> {
    if let Some(makers) = controls {
        return run_hooked(py, plan_json, &seeds, makers);
    }
    let plan = Plan::from_json(plan_json).map_err(refused)?;
    let outputs = py.allow_threads(|| tcpscape_sim::run_many(&plan, &seeds, threads));
    let dicts = outputs.into_iter().map(|o| convert::trial(py, o, &plan)).collect::<PyResult<Vec<Bound<'py, PyDict>>>>()?;
    PyList::new(py, dicts)
}

fn run_hooked<'py>(py: Python<'py>, plan_json: &str, seeds: &[u64], makers: Makers) -> PyResult<Bound<'py, PyList>> {
    let all = PyList::empty(py);
    let cost = Arc::new(control::Cost::default());
    let controls = control::controls(makers, &cost);
    let plan = Plan::read(plan_json, &controls).map_err(refused)?;
    for &seed in seeds {
        cost.reset();
        let began = Instant::now();
        let output = hooked(py, || tcpscape_sim::run_with(&plan, seed, &controls))?;
        let run_s = began.elapsed().as_secs_f64();
        let dict = convert::trial(py, output, &plan)?;
        dict.set_item("hook_cost", cost.dict(py, run_s)?)?;
        all.append(dict)?;
    }
    Ok(all)
}

/// Runs one trial and writes its packets as pcapng.
#[pyfunction]
#[pyo3(signature = (path, plan_json, seed, controls=None))]
fn write_pcapng(py: Python<'_>, path: &str, plan_json: &str, seed: u64, controls: Option<Makers>) -> PyResult<()> {
    let Some(makers) = controls else {
        let plan = Plan::from_json(plan_json).map_err(refused)?;
        return py.allow_threads(|| tcpscape_sim::write_pcapng(path, &plan, seed, &Controls::new())).map_err(refused);
    };
    let controls = control::controls(makers, &Arc::default());
    let plan = Plan::read(plan_json, &controls).map_err(refused)?;
    hooked(py, || tcpscape_sim::write_pcapng(path, &plan, seed, &controls))?.map_err(refused)
}

/// CPU seconds that the event queue alone takes for `events` events of as many components as one flow has: the floor of any simulation.
#[pyfunction]
fn bench_floor(py: Python<'_>, events: u64) -> f64 {
    py.allow_threads(|| tcpscape_sim::events::floor(events))
}

pyo3::create_exception!(_core, HookError, PyRuntimeError, "A hook of a Python congestion control raised something: its cause.");

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("HookError", m.py().get_type::<HookError>())?;
    m.add_class::<sample::Sample>()?;
    m.add_class::<sample::PyWindow>()?;
    m.add_function(wrap_pyfunction!(version, m)?)?;
    m.add_function(wrap_pyfunction!(model_version, m)?)?;
    m.add_function(wrap_pyfunction!(parse_tc, m)?)?;
    m.add_function(wrap_pyfunction!(to_tc, m)?)?;
    m.add_function(wrap_pyfunction!(cca_registry, m)?)?;
    m.add_function(wrap_pyfunction!(qdisc_registry, m)?)?;
    m.add_function(wrap_pyfunction!(kernel_profile, m)?)?;
    m.add_function(wrap_pyfunction!(kernel_profiles, m)?)?;
    m.add_function(wrap_pyfunction!(run, m)?)?;
    m.add_function(wrap_pyfunction!(bench_floor, m)?)?;
    m.add_function(wrap_pyfunction!(write_pcapng, m)?)?;
    Ok(())
}
