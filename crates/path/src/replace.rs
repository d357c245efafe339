//! From one path to another without building it anew, where the changes of a running queue suffice.
//!
//! What it is: `tc qdisc replace` with a discipline of the same kind changes the one that runs, and what waits keeps its due time.
//! Source: tc(8).
//! How it differs: only what a [`Patch`] can set counts as a change; with another distribution or another child the path is a new one.

use crate::discipline::Patch;
use crate::queue::QdiscSpec;
use crate::spec::PathSpec;
use serde_json::{Map, Value};
use tcpscape_base::Rate;

impl PathSpec {
    /// The changes (stage, depth, values) that make the queues of this path those of `other`, whatever changes they have had since; `None`
    /// where they differ in more than a change can set. The schedules are not compared.
    pub fn changes_to(&self, other: &PathSpec) -> Option<Vec<(usize, usize, Patch)>> {
        if self.stages.len() != other.stages.len() {
            return None;
        }
        let mut all = Vec::new();
        for (i, (old, new)) in self.stages.iter().zip(&other.stages).enumerate() {
            if old.at != new.at || old.qdisc.levels().count() != new.qdisc.levels().count() {
                return None;
            }
            for (depth, (old, new)) in old.qdisc.levels().zip(new.qdisc.levels()).enumerate() {
                all.extend(patch(old, new)?.map(|patch| (i, depth, patch)));
            }
        }
        Some(all)
    }
}

/// What sets the values of `new` in a queue that was built as `old`, `Some(None)` if there is nothing to set; children are left out.
fn patch(old: &QdiscSpec, new: &QdiscSpec) -> Option<Option<Patch>> {
    let (changes, name) = (old.changes(), new.name());
    let (mut old, mut new) = (fields(old)?, fields(new)?);
    let mut values = Map::new();
    let mut restore_loss = false;
    for &field in changes {
        let key = if (field, name) == ("rate", "cake") { "bandwidth" } else { field };
        match (field, old.remove(key), new.remove(key)) {
            ("loss", Some(before), Some(after)) => match plain_loss(&before, &after) {
                Some(p) => drop(values.insert(field.to_owned(), p)),
                None if before == after => restore_loss = true,
                None => return None,
            },
            (_, _, Some(value)) => drop(values.insert(field.to_owned(), value)),
            // netem has no rate until one is set, and 0 takes it away.
            ("rate", _, None) if name == "netem" => drop(values.insert(field.to_owned(), Value::from(Rate(0).0))),
            // Only a new queue has the default that its words leave out; where none was changed it is there already.
            (_, None, None) => {}
            (_, Some(_), None) => return None,
        }
    }
    if old != new {
        return None;
    }
    let nothing = values.is_empty() && !restore_loss;
    let patch: Patch = serde_json::from_value(Value::Object(values)).ok()?;
    Some((!nothing).then_some(Patch { restore_loss, ..patch }))
}

fn fields(queue: &QdiscSpec) -> Option<Map<String, Value>> {
    match serde_json::to_value(queue.without_child()).ok()? {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

/// The probability of `after` where both are random loss with the same correlation, or `after` is without one.
fn plain_loss(before: &Value, after: &Value) -> Option<Value> {
    let random = |v: &Value| v["model"] == "random";
    let same = if random(before) { before["correlation"] == after["correlation"] } else { after["correlation"] == 0 };
    (random(after) && same).then(|| after["p"].clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_tc, Pipe};
    use tcpscape_base::{Duration, Packet, Time};

    fn path(words: &str) -> PathSpec {
        PathSpec::of([parse_tc(words).expect("tc's words")])
    }
    fn set(from: &str, to: &str) -> Option<Vec<(usize, Patch)>> {
        Some(path(from).changes_to(&path(to))?.into_iter().map(|(_, depth, patch)| (depth, patch)).collect())
    }

    #[test]
    fn values_that_can_change_make_a_change() {
        let changes = set(
            "netem delay 25ms 5ms loss 1%; tbf rate 10mbit burst 3028 limit 9000",
            "netem delay 50ms 5ms; tbf rate 5mbit burst 3028 limit 9000",
        );
        let changes = changes.expect("changes");
        let (netem, tbf) = (changes[0].1, changes[1].1);
        assert_eq!((netem.delay, netem.loss.map(|p| p.0), netem.rate), (Some(Duration::millis(50)), Some(0), Some(Rate(0))));
        assert_eq!((changes[1].0, tbf.rate, tbf.limit), (1, Some(Rate(5_000_000)), Some(9_000)));
    }

    #[test]
    fn what_no_change_can_set_needs_a_new_path() {
        for (from, to) in [
            ("netem delay 25ms", "tbf rate 10mbit burst 3028 limit 9000"),
            ("netem delay 25ms 5ms", "netem delay 25ms 5ms distribution normal"),
            ("netem delay 25ms", "netem delay 25ms duplicate 1%"),
            ("netem delay 25ms", "netem delay 25ms; pfifo limit 5"),
            ("netem loss 1%", "netem loss gemodel 1% 10%"),
            ("netem loss 1% 25%", "netem loss 1% 30%"),
            ("netem loss 1% 25%", "netem loss 1%"),
        ] {
            assert_eq!(set(from, to), None, "{from} to {to}");
        }
        assert!(set("netem loss gemodel 1% 10%", "netem loss gemodel 1% 10% delay 1ms").is_some_and(|c| c[0].1.restore_loss));
        let faster = set("cake bandwidth 5mbit", "cake bandwidth 9mbit").expect("a change");
        assert_eq!(faster[0].1.rate, Some(Rate(9_000_000)));
    }

    /// Every discipline is its own replacement, and what was changed goes back.
    #[test]
    fn the_same_path_undoes_a_change() {
        for entry in crate::REGISTRY {
            assert!(set(entry.example, entry.example).is_some(), "{}", entry.example);
        }
        let spec = path("netem delay 10ms");
        let mut pipe: Pipe<()> = Pipe::new(&spec, 1, "forward");
        let far = Patch { delay: Some(Duration::millis(90)), rate: Some(Rate(8_000)), ..Patch::default() };
        pipe.change(Time(1), 0, 0, &far);
        for (stage, depth, patch) in spec.changes_to(&spec).expect("the same path") {
            pipe.change(Time(2), stage, depth, &patch);
        }
        pipe.push(Time(3), Packet { size: 1_514, segs: 1, ..Packet::default() });
        assert_eq!(pipe.next_event(), Some(Time(10_000_003)));
    }
}
