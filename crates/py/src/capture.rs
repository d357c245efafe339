//! A capture's bytes → what was read of it, or the same capture with comments; without the GIL.

use crate::{convert, objects, refused};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::collections::BTreeMap;
use std::net::IpAddr;
use tcpscape_base::{Column, Row};
use tcpscape_capture::annotate::{Annotator, Pseudonyms};
use tcpscape_capture::flow::{Analyzer, Budget, FlowRecord};
use tcpscape_capture::limits::Interval;
use tcpscape_capture::packet::Endpoint;
use tcpscape_capture::read::Reader;

/// So many flows have rows, those with most bytes; of the others facts and limits are handed on.
const WITH_ROWS: usize = 256;

/// Reads a capture whose bytes are fed to it in chunks of any size.
#[pyclass]
pub struct CaptureReader {
    /// None once it is finished.
    state: Option<(Reader, Analyzer)>,
}

#[pymethods]
impl CaptureReader {
    #[new]
    fn new() -> CaptureReader {
        CaptureReader { state: Some((Reader::new(), Analyzer::new(Budget::default()))) }
    }

    /// Takes the next bytes; returns whether more are of use. A ValueError, `problem; fix`, where this is no capture.
    fn feed(&mut self, py: Python<'_>, chunk: &Bound<'_, PyBytes>) -> PyResult<bool> {
        let (reader, analyzer) = self.state.as_mut().ok_or_else(|| refused("the reader is finished; make another"))?;
        let bytes = chunk.as_bytes();
        py.allow_threads(|| reader.feed(bytes, &mut |p| analyzer.packet(p))).map_err(refused)?;
        Ok(!reader.is_over())
    }

    /// The report as a dict, and a dict of each direction of each connection that carries data, most bytes first.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyList>)> {
        let (reader, analyzer) = self.state.take().ok_or_else(|| refused("the reader is finished; make another"))?;
        let report = objects::of(py, &reader.finish().map_err(refused)?)?;
        let (records, totals) = py.allow_threads(|| analyzer.finish());
        report.set_item("flows", objects::of(py, &totals)?)?;
        let flows = PyList::empty(py);
        for (i, record) in records.into_iter().enumerate() {
            flows.append(flow(py, record, i < WITH_ROWS)?)?;
        }
        Ok((report, flows))
    }
}

/// The packets of a capture at the host where all connections begin: the columns of `packets`. A ValueError, `problem; fix`, where this is no capture.
#[pyfunction]
pub fn capture_packets<'py>(py: Python<'py>, capture: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyDict>> {
    let bytes = capture.as_bytes();
    let packets = py.allow_threads(|| tcpscape_sim::packets_of(bytes)).map_err(refused)?;
    convert::table(py, packets.columns())
}

/// One record as a dict; its rows are given up table by table.
fn flow(py: Python<'_>, r: FlowRecord, with_rows: bool) -> PyResult<Bound<'_, PyDict>> {
    let d = PyDict::new(py);
    let end = |e: Endpoint| (e.address.to_string(), e.port);
    d.set_item("from", end(r.from))?;
    d.set_item("to", end(r.to))?;
    d.set_item("facts", objects::of(py, &r.facts.json())?)?;
    let rows = PyDict::new(py);
    if with_rows {
        rows.set_item("segments", convert::table(py, columns(r.segments))?)?;
        rows.set_item("acks", convert::table(py, columns(r.acks))?)?;
        rows.set_item("events", convert::table(py, columns(r.events))?)?;
    }
    d.set_item("rows", rows)?;
    d.set_item("limits", PyList::new(py, r.limits.iter().map(interval))?)?;
    Ok(d)
}

/// Begin and end, s, the cause's name, and the frames that prove it.
fn interval(i: &Interval) -> (f64, f64, &'static str, Vec<u64>) {
    let frames = i.frames.into_iter().filter(|&f| f > 0).collect();
    (i.from as f64 / 1e9, i.to as f64 / 1e9, i.cause.name(), frames)
}

/// The columns of rows, whose memory is free then.
fn columns<R: Row>(rows: Vec<R>) -> Vec<Column> {
    R::columns(&rows)
}

/// Writes a capture again, as pcapng with comments on its packets.
#[pyclass]
pub struct CaptureAnnotator {
    /// None once it is finished.
    annotator: Option<Annotator>,
}

#[pymethods]
impl CaptureAnnotator {
    #[new]
    #[pyo3(signature = (program, comments, pseudonyms, headers_only))]
    fn new(
        program: &str,
        comments: BTreeMap<u64, String>,
        pseudonyms: Option<Vec<(IpAddr, IpAddr)>>,
        headers_only: bool,
    ) -> CaptureAnnotator {
        CaptureAnnotator { annotator: Some(Annotator::new(program, comments, pseudonyms.map(Pseudonyms::new), headers_only)) }
    }

    /// Takes the next bytes; returns the next ones of the annotated file, and whether more are of use.
    fn feed<'py>(&mut self, py: Python<'py>, chunk: &Bound<'py, PyBytes>) -> PyResult<(Bound<'py, PyBytes>, bool)> {
        let annotator = self.annotator.as_mut().ok_or_else(|| refused("the annotator is finished; make another"))?;
        let bytes = chunk.as_bytes();
        let out = py.allow_threads(|| annotator.feed(bytes)).map_err(refused)?;
        Ok((PyBytes::new(py, &out), !annotator.is_over()))
    }

    /// The last bytes.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let annotator = self.annotator.take().ok_or_else(|| refused("the annotator is finished; make another"))?;
        Ok(PyBytes::new(py, &annotator.finish().map_err(refused)?))
    }
}
