//! The links and places of a plan: whether the chain has them, and what users call their directions.

use crate::plan::{refuse, LinkPlan, PlacePlan, Plan, PlanError};
use tcpscape_path::{Host, PathSpec};

/// Most links behind the first one, and most places: one for each flow that a plan may have, and some for probes and transfers.
const MAX_LINKS: usize = 100;
pub(crate) const MAX_PLACES: usize = 101_000;

impl Plan {
    /// Every direction of every link, with what users call it.
    pub(crate) fn paths(&self) -> Vec<(String, &PathSpec)> {
        let mut paths = vec![("forward".to_string(), &self.forward), ("reverse".to_string(), &self.reverse)];
        for (k, link) in self.links.iter().enumerate() {
            paths.extend(both(&format!("links[{k}]"), link));
        }
        for (k, place) in self.places.iter().enumerate() {
            paths.extend(both(&format!("places[{k}].near"), &place.near));
            paths.extend(both(&format!("places[{k}].far"), &place.far));
        }
        paths
    }

    /// The directions of links that data of a flow between the hosts of a place pass, and those of their ACKs, by their numbers in [`Plan::paths`].
    pub(crate) fn way(&self, place: usize, up: bool) -> [Vec<usize>; 2] {
        let (down, against) = match self.places.get(place) {
            None => (vec![0], vec![1]),
            Some(PlacePlan { enter, leave, .. }) => {
                let near = 2 * (self.links.len() + 1) + 4 * place;
                let down = [near].into_iter().chain((*enter..*leave).map(|i| 2 * i)).chain([near + 2]).collect();
                let against = [near + 3].into_iter().chain((*enter..*leave).rev().map(|i| 2 * i + 1)).chain([near + 1]).collect();
                (down, against)
            }
        };
        if up {
            [against, down]
        } else {
            [down, against]
        }
    }

    /// Whether data travel against the chain.
    pub fn has_data_up(&self) -> bool {
        self.flows.iter().chain(self.transfers.iter().map(|t| &t.flow)).any(|f| f.up)
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
        for (name, path) in self.paths() {
            if path.stages.iter().any(|stage| stage.at != Host::Router) {
                return refuse(format!("{name}: at"), "must be router where there are places, whose hosts have no queue of their own");
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

/// Both directions of a link, with their names.
fn both<'a>(name: &str, link: &'a LinkPlan) -> [(String, &'a PathSpec); 2] {
    [(format!("{name}.forward"), &link.forward), (format!("{name}.reverse"), &link.reverse)]
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

    /// Links 0 and 1 and two places: data of the second one travel over link 1 alone.
    #[test]
    fn a_way_passes_the_near_link_the_chain_and_the_far_link() {
        let json = r#"{"duration_ns": 1, "flows": [], "links": [{}], "places": [{"enter": 0, "leave": 2}, {"enter": 1, "leave": 2}]}"#;
        let plan = Plan::from_json(json).unwrap();
        let paths = plan.paths();
        let names = |place, up| plan.way(place, up).map(|way| way.iter().map(|i| paths[*i].0.as_str()).collect::<Vec<_>>());
        let down = ["places[0].near.forward", "forward", "links[0].forward", "places[0].far.forward"];
        let back = ["places[0].far.reverse", "links[0].reverse", "reverse", "places[0].near.reverse"];
        assert_eq!(names(0, false), [down.to_vec(), back.to_vec()]);
        assert_eq!(names(0, true), [back.to_vec(), down.to_vec()]);
        assert_eq!(names(1, false)[0], ["places[1].near.forward", "links[0].forward", "places[1].far.forward"]);
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
