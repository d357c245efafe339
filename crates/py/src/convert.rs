//! Rust results as Python dicts; columns go over as bytes with their dtype, never row by row.

use crate::objects;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tcpscape_base::Column;
use tcpscape_sim::record::ControlRecord;
use tcpscape_sim::TrialOutput;

/// The results of a trial, and its tables.
pub fn trial<'py>(py: Python<'py>, o: &TrialOutput) -> PyResult<Bound<'py, PyDict>> {
    let d = objects::of(py, o)?.downcast_into::<PyDict>()?;
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
    d.set_item("control", control(py, &o.control)?)?;
    d.set_item("control_states", o.control.states.clone())?;
    Ok(d)
}

/// What the congestion controls showed, a column for each variable.
fn control<'py>(py: Python<'py>, record: &ControlRecord) -> PyResult<Bound<'py, PyDict>> {
    let own = [Column::of("t_ns", record.t_ns.iter().copied()), Column::of("flow", record.flow.iter().copied())];
    let d = table(py, own)?;
    for (name, values) in &record.columns {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        d.set_item(name, ("<f8", PyBytes::new(py, &bytes)))?;
    }
    Ok(d)
}

/// A table: the type and the bytes of each column, by its name.
pub fn table(py: Python<'_>, columns: impl IntoIterator<Item = Column>) -> PyResult<Bound<'_, PyDict>> {
    let d = PyDict::new(py);
    for column in columns {
        d.set_item(column.name, (column.kind.numpy, PyBytes::new(py, &column.bytes)))?;
    }
    Ok(d)
}
