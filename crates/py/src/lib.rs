//! The Python leaf: conversions, one error table, the GIL released around heavy calls; no logic.

mod convert;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tcpscape_path::{parse_tc as parse, QdiscSpec, REGISTRY};
use tcpscape_sim::{plan, Plan};
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

/// Runs a plan (JSON) with each seed on up to `threads` threads; a dict for each seed, in order.
#[pyfunction]
fn run<'py>(py: Python<'py>, plan_json: &str, seeds: Vec<u64>, threads: usize) -> PyResult<Bound<'py, PyList>> {
    let plan = Plan::from_json(plan_json).map_err(refused)?;
    let outputs = py.allow_threads(|| tcpscape_sim::run_many(&plan, &seeds, threads));
    let dicts = outputs.into_iter().map(|o| convert::trial(py, o, &plan)).collect::<PyResult<Vec<Bound<'py, PyDict>>>>()?;
    PyList::new(py, dicts)
}

/// Runs one trial and writes its packets as pcapng.
#[pyfunction]
fn write_pcapng(py: Python<'_>, path: &str, plan_json: &str, seed: u64) -> PyResult<()> {
    let plan = Plan::from_json(plan_json).map_err(refused)?;
    py.allow_threads(|| tcpscape_sim::write_pcapng(path, &plan, seed, &tcpscape_sim::Controls::new())).map_err(refused)
}

/// CPU seconds that the event queue alone takes for `events` events of as many components as one flow has: the floor of any simulation.
#[pyfunction]
fn bench_floor(py: Python<'_>, events: u64) -> f64 {
    py.allow_threads(|| tcpscape_sim::events::floor(events))
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
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
