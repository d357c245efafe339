//! Delays whose queue is looked for: columns in, a number out.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::sync::Arc;
use tcpscape_capture::residual::{Delays, Packets, Scratch};

/// Delays of packets behind a queue of which a rate and a burst after the other are tried.
#[pyclass]
pub struct QueueResidual {
    delays: Delays,
    scratch: Scratch,
}

#[pymethods]
impl QueueResidual {
    /// See `_core.pyi`.
    #[new]
    fn new(arrivals: [PyBackedBytes; 2], index: &[u8], packets: [PyBackedBytes; 4], windows: Vec<usize>) -> PyResult<QueueResidual> {
        let [begins, before] = arrivals.map(|x| floats(&x));
        let [at, sent, end, delay] = packets.map(|x| floats(&x));
        let begin = words(index).map(|b| u64::from_le_bytes(b) as usize).collect();
        let delays = Delays { begins, before, begin, packets: Arc::new(Packets { at, sent, end, delay, windows }) };
        if delays.is_whole() {
            Ok(QueueResidual { delays, scratch: Scratch::default() })
        } else {
            Err(PyValueError::new_err("columns of different lengths, a place that there is not, or windows that do not cover the packets"))
        }
    }

    /// The same for rates up to this one, Mbit/s.
    fn up_to(&self, rate: f64) -> QueueResidual {
        QueueResidual { delays: self.delays.up_to(rate), scratch: Scratch::default() }
    }

    /// Mean absolute deviation of what the queue leaves, ms.
    #[pyo3(signature = (rate, burst, cap = f64::INFINITY))]
    fn deviation(&mut self, rate: f64, burst: f64, cap: f64) -> f64 {
        self.delays.deviation(rate, burst, cap, &mut self.scratch)
    }
}

fn floats(column: &[u8]) -> Vec<f64> {
    words(column).map(f64::from_le_bytes).collect()
}

fn words(column: &[u8]) -> impl Iterator<Item = [u8; 8]> + '_ {
    column.chunks_exact(8).filter_map(|word| word.try_into().ok())
}
