//! Whether the chain of a plan has the links and places that it names.

use crate::plan::{refuse, FlowPlan, Plan, PlanError};
use crate::topology::Topology;
use tcpscape_path::{Host, PathSpec};

/// Most links behind the first one, and most places: one for each flow that a plan may have, and some for probes and transfers.
const MAX_LINKS: usize = 100;
/// Most places of a plan.
pub const MAX_PLACES: usize = 101_000;

impl Plan {
    /// Both directions of the first link: of a plan without places, the path.
    pub fn paths(&self) -> [&PathSpec; 2] {
        [&self.forward, &self.reverse]
    }

    /// What says how connections are: each flow, and each entry of the transfers.
    pub fn connections(&self) -> impl Iterator<Item = &FlowPlan> {
        self.flows.iter().chain(self.transfers.iter().map(|t| &t.flow))
    }

    /// Whether data travel against the chain.
    pub fn has_data_up(&self) -> bool {
        self.connections().any(|f| f.up)
    }

    /// Refuses places that the chain does not have, and what is at no place or at a wrong one.
    pub(crate) fn check_places(&self) -> Result<(), PlanError> {
        for (field, number, most) in [("links", self.links.len(), MAX_LINKS), ("places", self.places.len(), MAX_PLACES)] {
            if number > most {
                return refuse(field, format!("{number} cannot run; give at most {most}"));
            }
        }
        if self.places.is_empty() {
            if !self.links.is_empty() {
                return refuse("links", "need places; say at which routers the hosts are");
            }
            return self.check_users(1);
        }
        let last = self.links.len() + 1;
        for (k, place) in self.places.iter().enumerate() {
            let field = || format!("places[{k}].leave");
            if place.leave > last {
                return refuse(field(), format!("is router {}; the chain's are 0 to {last}", place.leave));
            }
            if place.enter >= place.leave {
                return refuse(field(), format!("is router {}, which is not behind router {}; name one that is", place.leave, place.enter));
            }
        }
        for way in Topology::of(self).ways() {
            if way.path.stages.iter().any(|stage| stage.at != Host::Router) {
                return refuse(
                    format!("{}: at", way.field()),
                    "must be router where there are places, whose hosts have no queue of their own",
                );
            }
        }
        self.check_users(self.places.len())
    }

    /// Refuses flows, transfers and probes at places that do not exist.
    fn check_users(&self, places: usize) -> Result<(), PlanError> {
        let flows = self.flows.iter().map(|f| ("flows", f.place));
        let transfers = self.transfers.iter().map(|t| ("transfers", t.flow.place));
        let probes = self.probes.iter().map(|p| ("probes", p.place));
        match flows.chain(transfers).chain(probes).find(|(_, place)| *place >= places) {
            Some((name, place)) => refuse(format!("{name}.place"), format!("there is no place {place}; choose 0 to {}", places - 1)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_path::parse_tc;

    fn refused(flow: &str, rest: &str) -> String {
        let stage =
            |words: &str, at| format!(r#"{{"qdisc": {}, "at": "{at}"}}"#, serde_json::to_string(&parse_tc(words).unwrap()).unwrap());
        let (router, rest) = (stage("netem delay 1ms", "router"), rest.replace("PFIFO", &stage("pfifo", "sender")));
        let json = format!(r#"{{"duration_ns": 1000, "forward": {{"stages": [{router}]}}, "flows": [{{"cca": "cubic" {flow}}}] {rest}}}"#);
        Plan::from_json(&json).unwrap().check().err().map_or_else(String::new, |e| e.to_string())
    }

    #[test]
    fn more_links_or_places_than_a_trial_can_have_are_refused() {
        let many = |entry: &str, n: usize| vec![entry; n].join(",");
        let whole = r#""places": [{"enter": 0, "leave": 1}]"#;
        let links = format!(r#", {whole}, "links": [{}]"#, many("{}", MAX_LINKS + 1));
        assert_eq!(refused("", &links), "links: 101 cannot run; give at most 100");
        let places = format!(r#", "places": [{}]"#, many(r#"{"enter": 0, "leave": 1}"#, MAX_PLACES + 1));
        assert_eq!(refused("", &places), "places: 101001 cannot run; give at most 101000");
    }

    #[test]
    fn a_place_that_the_chain_does_not_have_is_refused_by_its_field() {
        let whole = r#", "links": [{}], "places": [{"enter": 0, "leave": 2}]"#;
        assert_eq!(refused("", whole), "");
        for (flow, rest, problem) in [
            ("", r#", "links": [{}]"#, "links: need places; say at which routers the hosts are"),
            (r#", "place": 1"#, whole, "flows.place: there is no place 1; choose 0 to 0"),
            (r#", "place": 1"#, "", "flows.place: there is no place 1; choose 0 to 0"),
            ("", r#", "places": [{"enter": 0, "leave": 2}]"#, "places[0].leave: is router 2; the chain's are 0 to 1"),
            (
                "",
                r#", "places": [{"enter": 1, "leave": 1}]"#,
                "places[0].leave: is router 1, which is not behind router 1; name one that is",
            ),
            (
                "",
                r#", "places": [{"enter": 0, "leave": 1, "far": {"reverse": {"stages": [PFIFO]}}}]"#,
                "places[0].far.reverse: at: must be router where there are places, whose hosts have no queue of their own",
            ),
        ] {
            assert_eq!(refused(flow, rest), problem);
        }
    }
}
