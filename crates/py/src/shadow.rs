//! A congestion control that watches a captured connection, for Python: columns in, columns out.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tcpscape_base::{CaState, Time};
use tcpscape_shadow::{Ack, Growth, Shadow, Watched};
use tcpscape_tcp::cc::{self, EcnMode, Timestamps};

/// Numbers of an ACK, in the order of the fields of [`Ack`].
const FIELDS: usize = 16;

/// Windows after each ACK (`<u4`), and of each reduction its ACK, the window before and the threshold after.
type Answer<'py> = (Bound<'py, PyBytes>, Vec<(usize, u32, u32)>);

/// ACKs that were captured, which controls watch one after the other.
#[pyclass(frozen)]
pub struct WatchedAcks(Vec<Ack>);

#[pymethods]
impl WatchedAcks {
    /// `rows` holds 16 numbers (`<i8`) for each ACK, `_core.pyi` says which.
    #[new]
    fn new(rows: &[u8]) -> PyResult<WatchedAcks> {
        if rows.len() % (8 * FIELDS) != 0 {
            return Err(PyValueError::new_err("rows: not whole ones"));
        }
        Ok(WatchedAcks(rows.chunks_exact(8 * FIELDS).map(row).collect()))
    }

    /// What the control `name` makes of them.
    fn watch<'py>(&self, py: Python<'py>, name: &str, mss: u32, hz: u32, ecn: bool) -> PyResult<Answer<'py>> {
        let control = cc::make(name, 1).ok_or_else(|| PyValueError::new_err(format!("no congestion control '{name}'")))?;
        if control.owns_window() {
            return Err(PyValueError::new_err(format!("{name} sets its window by rate samples, which a capture does not have")));
        }
        if mss == 0 || hz == 0 {
            return Err(PyValueError::new_err("no MSS, or no ticks"));
        }
        let watched = Watched { mss, hz, ecn: if ecn { EcnMode::Classic } else { EcnMode::Off } };
        let (windows, reductions) = py.allow_threads(|| Shadow::new(control, watched).watch(&self.0));
        let bytes: Vec<u8> = windows.iter().flat_map(|w| w.to_le_bytes()).collect();
        Ok((PyBytes::new(py, &bytes), reductions.iter().map(|r| (r.ack, r.before, r.after)).collect()))
    }
}

fn row(bytes: &[u8]) -> Ack {
    let value = |i: usize| bytes[8 * i..8 * i + 8].try_into().map_or(0, i64::from_le_bytes);
    let (long, short) = (|i| value(i).max(0) as u64, |i| value(i).clamp(0, i64::from(u32::MAX)) as u32);
    Ack {
        now: Time(long(0)),
        una: long(1),
        nxt: long(2),
        acked: short(3),
        delivered: short(4),
        rtt_us: short(5),
        in_flight: short(6),
        since_sent: short(7),
        state: match value(8) {
            0 => CaState::Open,
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            _ => CaState::Loss,
        },
        ece: value(9) != 0,
        slow_path: value(10) != 0,
        timestamps: Timestamps { now: (long(0) / 1_000_000) as u32 + 1, value: short(11), echo: short(12) },
        window: short(13),
        growth: match value(14) {
            1 => Growth::SlowStart,
            2 => Growth::Avoidance,
            _ => Growth::Unknown,
        },
        reordered: value(15) != 0,
    }
}
