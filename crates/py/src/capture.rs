//! A capture's bytes → what was read of it, without the GIL.

use crate::{convert, refused};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tcpscape_capture::read::Reader;

/// Reads a capture whose bytes are fed to it in chunks of any size.
#[pyclass]
pub struct CaptureReader {
    /// None once it is finished.
    reader: Option<Reader>,
}

#[pymethods]
impl CaptureReader {
    #[new]
    fn new() -> CaptureReader {
        CaptureReader { reader: Some(Reader::new()) }
    }

    /// Takes the next bytes; returns whether more are of use. A ValueError, `problem; fix`, where this is no capture.
    fn feed(&mut self, py: Python<'_>, chunk: &Bound<'_, PyBytes>) -> PyResult<bool> {
        let reader = self.reader.as_mut().ok_or_else(|| refused("the reader is finished; make another"))?;
        let bytes = chunk.as_bytes();
        py.allow_threads(|| reader.feed(bytes, &mut |_| {})).map_err(refused)?;
        Ok(!reader.is_over())
    }

    /// The report as a dict, and a dict of each direction of each connection that carries data, most bytes first.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyList>)> {
        let reader = self.reader.take().ok_or_else(|| refused("the reader is finished; make another"))?;
        let report = reader.finish().map_err(refused)?;
        let flows = PyList::empty(py);
        Ok((convert::json(py, &report)?, flows))
    }
}
