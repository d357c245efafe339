//! Rust results as Python dicts; columns go over as bytes with their dtype, never row by row.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tcpscape_sim::{Column, Table, TrialOutput};

/// The results of a trial of this length.
pub fn trial<'py>(py: Python<'py>, o: TrialOutput, duration_ns: u64) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("seed", o.seed)?;
    d.set_item("duration_ns", duration_ns)?;
    d.set_item("flows", json(py, &o.flows)?)?;
    let queues = PyList::empty(py);
    for account in &o.queues {
        let q = json(py, &account.stats)?;
        q.set_item("direction", account.direction)?;
        if let Some(link) = account.link {
            q.set_item("link", link.to_string())?;
            q.set_item("pipe", account.pipe)?;
        }
        queues.append(q)?;
    }
    d.set_item("queues", queues)?;
    d.set_item("probes", json(py, &o.probes)?)?;
    d.set_item("transfers", json(py, &o.transfers)?)?;
    d.set_item("samples", table(py, o.samples.into_table())?)?;
    d.set_item("queue_samples", table(py, o.queue_samples.into_table())?)?;
    d.set_item("probe_samples", table(py, o.probe_samples.into_table())?)?;
    d.set_item("packets", table(py, o.packets.into_table())?)?;
    d.set_item("sender_events", table(py, o.sender_events.into_table())?)?;
    d.set_item("events", o.events)?;
    d.set_item("arrivals", o.arrivals)?;
    d.set_item("hash", format!("{:016x}", o.hash))?;
    d.set_item("caveats", o.caveats)?;
    Ok(d)
}

/// A serialisable value as Python objects; numbers that are not finite become None.
pub fn json<'py>(py: Python<'py>, v: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(v).map_err(crate::refused)?;
    py.import("json")?.call_method1("loads", (text,))
}

fn table<'py>(py: Python<'py>, t: Table) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    for (name, column) in t.columns {
        let (dtype, bytes): (&str, Vec<u8>) = match column {
            Column::U64(v) => ("<u8", v.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Column::U32(v) => ("<u4", v.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Column::U8(v) => ("<u1", v),
        };
        d.set_item(name, (dtype, PyBytes::new(py, &bytes)))?;
    }
    Ok(d)
}
