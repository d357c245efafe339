//! A capture's bytes → the same capture with comments, without the GIL.

use crate::refused;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::net::IpAddr;
use tcpscape_capture::annotate::{Annotator, Pseudonyms};

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
        let annotator = self.annotator.as_mut().ok_or_else(over)?;
        let bytes = chunk.as_bytes();
        let out = py.allow_threads(|| annotator.feed(bytes)).map_err(refused)?;
        Ok((PyBytes::new(py, &out), !annotator.is_over()))
    }

    /// The last bytes.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let annotator = self.annotator.take().ok_or_else(over)?;
        Ok(PyBytes::new(py, &annotator.finish().map_err(refused)?))
    }
}

fn over() -> PyErr {
    refused("the annotator is finished; make another")
}
