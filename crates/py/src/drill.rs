//! A script of packetdrill's → what became of it; without the GIL.

use crate::{objects, refused};
use pyo3::prelude::*;
use tcpscape_plan::kernel;

/// Runs a script's text on a host with the kernel profile: `outcome`, `snapshots` and `ignored` as a dict. A ValueError, `LINE: problem; fix`, where it
/// is no script.
#[pyfunction]
pub fn packetdrill<'py>(py: Python<'py>, script: &str, profile: &str) -> PyResult<Bound<'py, PyAny>> {
    let host = kernel::profile(profile).ok_or_else(|| refused(format!("kernel: no profile '{profile}'")))?;
    let report = py.allow_threads(|| tcpscape_drill::run(script, host)).map_err(refused)?;
    objects::of(py, &report)
}
