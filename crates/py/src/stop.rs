//! A flag by which a thread ends the trials of others.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether trials that look at it are to end.
#[pyclass(frozen, module = "tcpscape._core")]
#[derive(Default)]
pub struct Stop(AtomicBool);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Stop {
        Stop::default()
    }

    /// Ends every trial that looks at it, for good.
    fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}
