//! Rust results as Python dicts; columns go over as bytes with their dtype, never row by row.

use crate::objects;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tcpscape_base::Column;
use tcpscape_plan::Plan;
use tcpscape_sim::record::ControlRecord;
use tcpscape_sim::TrialOutput;

/// Which tables a plan records.
#[derive(Clone, Copy)]
pub struct Recorded {
    samples: bool,
    queue_samples: bool,
    packets: bool,
    sender_events: bool,
    control: bool,
}

impl Recorded {
    /// Of a plan.
    pub fn by(plan: &Plan) -> Recorded {
        Recorded {
            samples: plan.sample_interval_ns > 0,
            queue_samples: plan.queue_sample_interval_ns > 0,
            packets: plan.trace_packets,
            sender_events: plan.trace_events,
            control: plan.control_interval_ns > 0,
        }
    }
}

/// The results of a trial, the accounts of its queues as JSON, and the tables that are recorded.
pub fn trial<'py>(py: Python<'py>, o: &TrialOutput, recorded: Recorded) -> PyResult<Bound<'py, PyDict>> {
    let d = objects::with_text(py, o, "queues")?.downcast_into::<PyDict>()?;
    if recorded.samples {
        d.set_item("samples", table(py, o.samples.columns())?)?;
        d.set_item("probe_samples", table(py, o.probe_samples.columns())?)?;
    }
    if recorded.queue_samples {
        d.set_item("queue_samples", table(py, o.queue_samples.narrowed())?)?;
    }
    if recorded.packets {
        d.set_item("packets", table(py, o.packets.columns())?)?;
    }
    if recorded.sender_events {
        d.set_item("sender_events", table(py, o.sender_events.columns())?)?;
    }
    if recorded.control {
        d.set_item("control", control(py, &o.control)?)?;
        d.set_item("control_states", o.control.states.clone())?;
    }
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
