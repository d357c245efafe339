//! The Python leaf: conversions, one error table, the GIL released around heavy calls; no logic. Only where a congestion control is Python
//! code is the GIL held, for the whole trial.

mod capture;
mod control;
mod convert;
mod drill;
mod objects;
mod plan;
mod residual;
mod sample;
mod shadow;
mod watch;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tcpscape_path::{parse_tc as parse, QdiscSpec, REGISTRY};
use tcpscape_plan::kernel;
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

/// What reads otherwise in a qdisc's words than many expect, a line each.
#[pyfunction]
fn hints(words: &str) -> PyResult<Vec<String>> {
    Ok(tcpscape_path::parse_with_hints(words).map_err(refused)?.1)
}

/// Checks all of a plan's JSON but its congestion controls, for engines that have their own.
#[pyfunction]
fn check_plan(json: &str) -> PyResult<()> {
    let plan = tcpscape_plan::Plan::from_json(json).map_err(refused)?;
    plan.check().map(drop).map_err(refused)
}

/// Standard deviation of netem's delays under a distribution, in units of the jitter that it is told.
#[pyfunction]
fn jitter_deviation(distribution: &str) -> PyResult<f64> {
    let known =
        || PyValueError::new_err(format!("distribution: {distribution:?} is unknown; choose uniform, normal, pareto or paretonormal"));
    Ok(tcpscape_path::parts::dist::deviation(tcpscape_path::Dist::named(distribution).ok_or_else(known)?))
}

/// What a qdisc in tc's words and its children do to packets, from the outside in: a dict each.
#[pyfunction]
fn describe<'py>(py: Python<'py>, words: &str) -> PyResult<Bound<'py, PyAny>> {
    objects::of(py, &parse(words).map_err(refused)?.describe())
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
    let known: Vec<&str> = kernel::PROFILES.iter().map(|p| p.0).collect();
    let k = kernel::profile(name).ok_or_else(|| refused(format!("kernel: no profile '{name}'; there are {}", known.join(", "))))?;
    serde_json::to_string(&k).map_err(refused)
}

/// Names of the kernel profiles.
#[pyfunction]
fn kernel_profiles() -> Vec<&'static str> {
    kernel::PROFILES.iter().map(|p| p.0).collect()
}

pyo3::create_exception!(_core, HookError, PyRuntimeError, "A hook of a Python congestion control raised something: its cause.");

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("HookError", m.py().get_type::<HookError>())?;
    m.add_class::<capture::CaptureAnnotator>()?;
    m.add_class::<capture::CaptureReader>()?;
    m.add_function(wrap_pyfunction!(capture::capture_packets, m)?)?;
    m.add_class::<plan::Plan>()?;
    m.add_class::<plan::Stop>()?;
    m.add_class::<watch::Watch>()?;
    m.add_class::<shadow::WatchedAcks>()?;
    m.add_class::<residual::QueueResidual>()?;
    m.add_class::<sample::Sample>()?;
    m.add_class::<sample::PyWindow>()?;
    m.add_function(wrap_pyfunction!(version, m)?)?;
    m.add_function(wrap_pyfunction!(drill::packetdrill, m)?)?;
    m.add_function(wrap_pyfunction!(model_version, m)?)?;
    m.add_function(wrap_pyfunction!(parse_tc, m)?)?;
    m.add_function(wrap_pyfunction!(describe, m)?)?;
    m.add_function(wrap_pyfunction!(jitter_deviation, m)?)?;
    m.add_function(wrap_pyfunction!(hints, m)?)?;
    m.add_function(wrap_pyfunction!(check_plan, m)?)?;
    m.add_function(wrap_pyfunction!(to_tc, m)?)?;
    m.add_function(wrap_pyfunction!(cca_registry, m)?)?;
    m.add_function(wrap_pyfunction!(qdisc_registry, m)?)?;
    m.add_function(wrap_pyfunction!(kernel_profile, m)?)?;
    m.add_function(wrap_pyfunction!(kernel_profiles, m)?)?;
    Ok(())
}
