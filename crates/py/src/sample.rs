//! What a Python congestion control reads and writes: `Sample` and `Window`, with the units of `tcpscape.controls.hooks`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::GILOnceCell;
use tcpscape_base::CaState;
use tcpscape_tcp::cc::{AckSample, CaEvent, InAck, LostPacket, PktsAcked, View, Window};

/// The connection at the moment of a hook, and what the hook is about.
#[pyclass(frozen, module = "tcpscape._core")]
#[derive(Clone, Copy)]
pub struct Sample {
    pub v: View,
    pub s: AckSample,
    pub a: InAck,
    /// Packets newly reported with a congestion mark since the last `on_ack`.
    pub ce: u32,
    /// Bytes delivered since the last acknowledged packet was sent.
    pub flight_bytes: u32,
    /// Sequence numbers of a lost packet: its first, and the one after its last.
    pub lost_range: (u64, u64),
}

impl Sample {
    /// The connection, nothing acknowledged.
    pub fn at(v: &View) -> Sample {
        let s = AckSample { ack: v.snd_una, ..AckSample::default() };
        let mut x = Sample { v: *v, s, a: InAck::default(), ce: 0, flight_bytes: 0, lost_range: (0, 0) };
        (x.s.rate.rtt_us, x.s.rate.delivered, x.s.rate.interval_us) = (-1, -1, -1);
        x
    }

    /// For the hook `pkts_acked`.
    pub fn pkts_acked(v: &View, a: &PktsAcked) -> Sample {
        let mut x = Sample { flight_bytes: a.in_flight, ..Sample::at(v) };
        (x.s.acked, x.s.rate.rtt_us) = (a.pkts_acked, a.rtt_us);
        x
    }

    /// For the hook `on_lost`.
    pub fn on_lost(v: &View, p: &LostPacket) -> Sample {
        let mut x = Sample { lost_range: (p.seq, p.end), ..Sample::at(v) };
        let r = &mut x.s.rate;
        (r.tx_in_flight, r.lost, r.is_app_limited) = (p.tx_in_flight, p.lost, p.is_app_limited);
        x
    }

    /// Whether the delivery-rate sample is valid.
    fn has_rate(&self) -> bool {
        self.s.rate.delivered >= 0 && self.s.rate.interval_us > 0
    }
}

/// Makes a class's methods: an attribute for each row `name: type = expression`, then methods as they are.
macro_rules! attributes {
    ($class:ident, |$me:ident| { $($name:ident: $type:ty = $value:expr;)* } $($method:tt)*) => {
        #[pymethods]
        impl $class {
            $(#[getter]
            fn $name(&$me) -> $type {
                $value
            })*
            $($method)*
        }
    };
}

attributes! {
    Sample, |self| {
        // ---- this ACK ----
        acked: u32 = self.s.acked;
        ce: u32 = self.ce;
        rtt_us: Option<i64> = Some(self.s.rate.rtt_us).filter(|&t| t >= 0);
        may_raise: bool = self.s.may_raise;
        ack: u64 = self.s.ack;
        prior_in_flight: u32 = self.s.rate.prior_in_flight;
        flight_bytes: u32 = self.flight_bytes;
        tx_in_flight: u32 = self.s.rate.tx_in_flight;
        lost_since: u32 = self.s.rate.lost;
        lost_range: (u64, u64) = self.lost_range;
        is_retrans: bool = self.s.rate.is_retrans;
        is_ack_delayed: bool = self.s.rate.is_ack_delayed;
        slow_path: bool = self.a.slow_path;
        win_update: bool = self.a.win_update;
        ece: bool = self.a.ece;
        // ---- delivery rate ----
        delivery_rate: Option<f64> = {
            let r = &self.s.rate;
            self.has_rate().then(|| f64::from(r.delivered) * f64::from(self.v.mss) * 1e6 / r.interval_us as f64)
        };
        rate_delivered: Option<i32> = self.has_rate().then_some(self.s.rate.delivered);
        rate_interval_us: Option<i64> = self.has_rate().then_some(self.s.rate.interval_us);
        prior_delivered: u32 = self.s.rate.prior_delivered;
        prior_us: u64 = self.s.rate.prior_mstamp;
        app_limited: bool = self.s.rate.is_app_limited;
        // ---- the connection ----
        now_ns: u64 = self.v.now.0;
        now_us: u64 = self.v.now.micros();
        jiffies: u32 = self.v.jiffies;
        hz: u32 = self.v.hz;
        mss: u32 = self.v.mss;
        snd_una: u64 = self.v.snd_una;
        snd_nxt: u64 = self.v.snd_nxt;
        srtt_us: Option<f64> = (self.v.srtt_us > 0).then(|| f64::from(self.v.srtt_us) / 8.0);
        min_rtt_us: Option<u32> = Some(self.v.min_rtt_us).filter(|&t| t != u32::MAX);
        in_flight: u32 = self.v.in_flight;
        packets_out: u32 = self.v.packets_out;
        sacked_out: u32 = self.v.sacked_out;
        delivered: u32 = self.v.counts.delivered;
        delivered_ce: u32 = self.v.counts.delivered_ce;
        delivered_us: u64 = self.v.counts.delivered_us;
        lost_total: u32 = self.v.counts.lost;
        app_limited_until: u32 = self.v.counts.app_limited;
        is_cwnd_limited: bool = self.v.is_cwnd_limited;
        max_packets_out: u32 = self.v.most_packets_out;
        lsndtime: u32 = self.v.last_sent;
        has_unsent: bool = self.v.has_unsent;
        wstamp_ns: u64 = self.v.pacing_next_ns;
        rcv_tsval: u32 = self.v.timestamps.value;
        rcv_tsecr: u32 = self.v.timestamps.echo;
        ecn_ok: bool = self.v.ecn.is_on();
    }

    #[getter(lost)]
    fn newly_lost(&self) -> u32 {
        self.s.rate.losses
    }
    #[getter]
    fn ca_state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        state(py, self.v.ca_state)
    }
}

/// The window, which lives as long as the connection.
#[pyclass(name = "Window", module = "tcpscape._core")]
pub struct PyWindow {
    pub w: Window,
}

/// A number of packets from `least`.
fn packets(value: &Bound<'_, PyAny>, name: &str, least: u32) -> PyResult<u32> {
    let mend = if value.extract::<f64>().is_ok() && value.extract::<i128>().is_err() {
        "; keep the fraction elsewhere, or use cwnd_cnt"
    } else {
        ""
    };
    match value.extract::<u32>() {
        Ok(n) if n >= least => Ok(n),
        _ => Err(PyTypeError::new_err(format!("window.{name} = {value} is not a whole number of packets from {least}{mend}"))),
    }
}

attributes! {
    PyWindow, |self| {
        cwnd: u32 = self.w.cwnd;
        ssthresh: u32 = self.w.ssthresh;
        cwnd_cnt: u32 = self.w.cwnd_cnt;
        prior_cwnd: u32 = self.w.prior_cwnd;
        clamp: u32 = self.w.clamp;
        pacing_rate: f64 = if self.w.pacing_rate == u64::MAX { f64::INFINITY } else { self.w.pacing_rate as f64 };
        paced: bool = self.w.paced;
        enter_cwr: bool = self.w.enter_cwr;
        in_slow_start: bool = self.w.in_slow_start();
    }

    #[setter]
    fn set_cwnd(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.w.cwnd = packets(value, "cwnd", 1)?.min(self.w.clamp);
        Ok(())
    }
    #[setter]
    fn set_ssthresh(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.w.ssthresh = packets(value, "ssthresh", 1)?;
        Ok(())
    }
    #[setter]
    fn set_cwnd_cnt(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.w.cwnd_cnt = packets(value, "cwnd_cnt", 0)?;
        Ok(())
    }
    #[setter]
    fn set_prior_cwnd(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.w.prior_cwnd = packets(value, "prior_cwnd", 0)?;
        Ok(())
    }
    #[setter]
    fn set_pacing_rate(&mut self, value: f64) -> PyResult<()> {
        // NaN and what is below a byte a second would stop the connection for good.
        if value.is_nan() || value < 1.0 {
            return Err(PyValueError::new_err(format!("window.pacing_rate = {value} is not a rate from 1 byte/s")));
        }
        self.w.pacing_rate = value as u64;
        Ok(())
    }
    #[setter]
    fn set_paced(&mut self, value: bool) {
        self.w.paced = value;
    }
    #[setter]
    fn set_enter_cwr(&mut self, value: bool) {
        self.w.enter_cwr = value;
    }
    fn slow_start(&mut self, acked: u32) -> u32 {
        self.w.slow_start(acked)
    }
    fn additive_increase(&mut self, w: u32, acked: u32) {
        self.w.additive_increase(w, acked);
    }
}

/// Members of an enumeration of `tcpscape.controls.hooks`, in the order of their definition.
fn members(py: Python<'_>, cell: &'static GILOnceCell<Vec<Py<PyAny>>>, name: &str, index: usize) -> PyResult<Py<PyAny>> {
    let all = cell.get_or_try_init(py, || -> PyResult<Vec<Py<PyAny>>> {
        py.import("tcpscape.controls.hooks")?.getattr(name)?.try_iter()?.map(|m| Ok(m?.unbind())).collect()
    })?;
    all.get(index)
        .map(|m| m.clone_ref(py))
        .ok_or_else(|| PyValueError::new_err(format!("tcpscape.controls.hooks.{name} has no member {index}")))
}

/// A congestion-avoidance state as Python knows it.
pub fn state(py: Python<'_>, s: CaState) -> PyResult<Py<PyAny>> {
    static STATES: GILOnceCell<Vec<Py<PyAny>>> = GILOnceCell::new();
    members(py, &STATES, "CaState", s as usize)
}

/// An event as Python knows it.
pub fn event(py: Python<'_>, e: CaEvent) -> PyResult<Py<PyAny>> {
    static EVENTS: GILOnceCell<Vec<Py<PyAny>>> = GILOnceCell::new();
    let index = match e {
        CaEvent::TxStart => 0,
        CaEvent::CwndRestart => 1,
        CaEvent::CompleteCwr => 2,
        CaEvent::Loss => 3,
    };
    members(py, &EVENTS, "CaEvent", index)
}
