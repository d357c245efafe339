//! Rust results as Python dicts; columns go over as bytes with their dtype, never row by row.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tcpscape_base::Column;
use tcpscape_sim::TrialOutput;

/// The results of a trial, and its tables.
pub fn trial<'py>(py: Python<'py>, o: &TrialOutput) -> PyResult<Bound<'py, PyDict>> {
    let d = json(py, o)?.downcast_into::<PyDict>()?;
    let tables = [
        ("samples", o.samples.columns()),
        ("queue_samples", o.queue_samples.narrowed()),
        ("probe_samples", o.probe_samples.columns()),
        ("packets", o.packets.columns()),
        ("sender_events", o.sender_events.columns()),
    ];
    for (name, columns) in tables {
        d.set_item(name, table(py, columns)?)?;
    }
    Ok(d)
}

/// A serialisable value as Python objects; numbers that are not finite become None.
pub fn json<'py>(py: Python<'py>, v: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(v).map_err(crate::refused)?;
    py.import("json")?.call_method1("loads", (text,))
}

/// A table: the type and the bytes of each column, by its name.
pub fn table(py: Python<'_>, columns: impl IntoIterator<Item = Column>) -> PyResult<Bound<'_, PyDict>> {
    let d = PyDict::new(py);
    for column in columns {
        d.set_item(column.name, (column.kind.numpy, PyBytes::new(py, &column.bytes)))?;
    }
    Ok(d)
}
