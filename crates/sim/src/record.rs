//! What the senders' congestion controls show of themselves over time, with columns that the controls name.
//!
//! A row for each change of a state or a count, and otherwise one in an interval. It is taken when a sender has processed an event and has not sent yet.

use std::collections::BTreeMap;
use tcpscape_base::{Duration, Time};
use tcpscape_tcp::cc::{Observation, Shown};

/// Most rows that are recorded: with 35 columns 0.3 GB.
const MOST_ROWS: usize = 1_000_000;

/// The record of a trial's controls.
#[derive(Clone, Debug, Default)]
pub struct ControlRecord {
    /// When, ns.
    pub t_ns: Vec<u64>,
    /// Flow number.
    pub flow: Vec<u32>,
    /// The variables by name: a value for each row, NaN where the flow's control has none of that name; of a state its place in `states`.
    pub columns: Vec<(String, Vec<f64>)>,
    /// The states of each variable that is one.
    pub states: BTreeMap<String, Vec<String>>,
}

impl ControlRecord {
    fn push(&mut self, t: Time, flow: usize, o: &Observation) {
        let rows = self.t_ns.len();
        self.t_ns.push(t.0);
        self.flow.push(flow as u32);
        for (i, (name, value)) in o.values.iter().enumerate() {
            let number = match value {
                Shown::Count(n) | Shown::Number(n) => *n,
                Shown::State(state) => self.place(name, state, o.states),
            };
            // The same control shows the same names in the same order.
            let known = self.columns.get(i).is_some_and(|(column, _)| column == name);
            let at = if known { Some(i) } else { self.columns.iter().position(|(column, _)| column == name) };
            let at = at.unwrap_or_else(|| {
                self.columns.push((name.to_string(), vec![f64::NAN; rows]));
                self.columns.len() - 1
            });
            self.columns[at].1.resize(rows, f64::NAN);
            self.columns[at].1.push(number);
        }
        self.columns.iter_mut().for_each(|(_, values)| values.resize(rows + 1, f64::NAN));
    }

    /// The place of a state among those of its variable.
    fn place(&mut self, name: &str, state: &str, all: &[&str]) -> f64 {
        let known = self.states.entry(name.to_owned()).or_insert_with(|| all.iter().map(|s| (*s).to_owned()).collect());
        let at = known.iter().position(|s| s == state).unwrap_or_else(|| {
            known.push(state.to_owned());
            known.len() - 1
        });
        at as f64
    }
}

/// Decides which moments become rows.
#[derive(Default)]
pub(crate) struct Recorder {
    interval: Duration,
    /// What each flow showed in its last row, and when.
    last: Vec<(Time, Observation)>,
    now: Observation,
}

impl Recorder {
    /// For so many flows; an interval of 0 records nothing.
    pub fn new(interval_ns: u64, flows: usize) -> Recorder {
        let flows = if interval_ns > 0 { flows } else { 0 };
        Recorder { interval: Duration(interval_ns), last: vec![Default::default(); flows], now: Observation::default() }
    }

    /// Flow `i` has processed an event: `observe` says what it shows.
    #[inline]
    pub fn saw(&mut self, now: Time, i: usize, observe: impl FnOnce(&mut Observation), record: &mut ControlRecord) {
        let Some((since, last)) = self.last.get_mut(i) else { return };
        if record.t_ns.len() >= MOST_ROWS {
            return;
        }
        observe(&mut self.now);
        let is_due = last.values.is_empty() || now >= *since + self.interval || changed(last, &self.now);
        if self.now.is_told && is_due {
            record.push(now, i, &self.now);
            *since = now;
            std::mem::swap(last, &mut self.now);
        }
    }
}

/// Whether a state or a count is another one.
fn changed(before: &Observation, now: &Observation) -> bool {
    before.values.len() != now.values.len()
        || before.values.iter().zip(&now.values).any(|(a, b)| !matches!(b.1, Shown::Number(_)) && a != b)
}

/// Whether no more is recorded.
pub(crate) fn is_full(record: &ControlRecord) -> bool {
    record.t_ns.len() >= MOST_ROWS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_change_and_one_in_an_interval() {
        let (mut recorder, mut record) = (Recorder::new(100, 1), ControlRecord::default());
        let mut see = |t, state: &'static str, x: f64| {
            let show = |o: &mut Observation| {
                o.values.clear();
                o.state(state, &["A", "B"]);
                o.number("x", x);
            };
            recorder.saw(Time(t), 0, show, &mut record);
        };
        for (t, s, x) in [(0, "A", 1.0), (50, "A", 2.0), (60, "B", 3.0), (100, "B", 4.0), (160, "B", 5.0)] {
            see(t, s, x);
        }
        assert_eq!(record.t_ns, [0, 60, 160]);
        assert_eq!(record.columns, [("state".into(), vec![0.0, 1.0, 1.0]), ("x".into(), vec![1.0, 3.0, 5.0])]);
        assert_eq!(record.states["state"], ["A", "B"]);
    }

    #[test]
    fn a_control_that_shows_nothing_has_no_rows() {
        let (mut recorder, mut record) = (Recorder::new(1, 1), ControlRecord::default());
        recorder.saw(Time(5), 0, |o| o.is_told = false, &mut record);
        assert!(record.t_ns.is_empty());
    }
}
