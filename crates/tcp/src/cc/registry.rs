//! The registry of congestion controls: one line each, with what it is, where it is described and its parameters.

use super::*;
use std::collections::BTreeMap;

/// A parameter of a congestion control: a module parameter of Linux where it has one of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it does, with its unit.
    pub about: &'static str,
    /// Value when nothing is said; booleans are 0 and 1.
    pub default: i64,
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
}

/// What a new controller is made from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// For controllers that draw random numbers.
    pub seed: u64,
    /// Parameters that differ from their defaults, by name.
    pub set: Option<&'a BTreeMap<String, i64>>,
}

impl Options<'_> {
    /// The value of `p`.
    pub fn get(&self, p: &Param) -> i64 {
        self.set.and_then(|m| m.get(p.name)).copied().unwrap_or(p.default)
    }
    /// Whether `p` is on.
    pub fn is_on(&self, p: &Param) -> bool {
        self.get(p) != 0
    }
}

/// One line of the registry.
pub struct Entry {
    /// Linux's name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Where it is described: RFC, draft or paper.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Makes one.
    pub new: fn(&Options<'_>) -> Box<dyn CongestionController>,
}

/// Makes [`REGISTRY`] from rows: a name, how one is made of its options, a line about it, its source, and its parameters where it has any.
macro_rules! registry {
    ($($name:literal: |$options:pat_param| $new:expr, $about:literal, $source:literal $(, $params:expr)?;)*) => {
        /// Every congestion control there is, in the order of their names.
        pub const REGISTRY: &[Entry] = &[$(Entry {
            name: $name,
            about: $about,
            source: $source,
            params: registry!(@parameters $($params)?),
            new: |$options| Box::new($new),
        },)*];
    };
    (@parameters) => { &[] };
    (@parameters $params:expr) => { $params };
}

registry! {
    "bbr": |o| bbr::Bbr::new(o.seed), "BBR version 1: model-based, paced",
        "draft-cardwell-iccrg-bbr-congestion-control-00";
    "bbr3": |o| Bbr3::new(o), "BBR version 3: as bbr, but bounded by the losses that its probes cause",
        "draft-ietf-ccwg-bbr-06", bbr3::PARAMS;
    "bic": |o| bic::Bic::new(o), "BIC: binary search for the window of the last loss",
        "Xu, Harfoush, Rhee: Binary increase congestion control, INFOCOM 2004", bic::PARAMS;
    "cdg": |o| cdg::Cdg::new(o), "CAIA delay gradient: backs off at random when RTTs rise",
        "Hayes and Armitage, IFIP Networking 2011", cdg::PARAMS;
    "cubic": |o| cubic::Cubic::new(o), "CUBIC with HyStart; Linux's default",
        "RFC 9438", cubic::PARAMS;
    "dctcp": |o| dctcp::Dctcp::new(o), "DCTCP: shrinks by the share of packets that were marked; needs ECN, falls back to Reno without",
        "RFC 8257", dctcp::PARAMS;
    "fixed": |o| fixed::Fixed::new(o), "a constant window or rate that reacts to nothing; a baseline",
        "none; RFC 8085 §3.1 says why not to", fixed::PARAMS;
    "highspeed": |_| highspeed::HighSpeed::new(), "HighSpeed TCP: Reno with steps that grow with the window",
        "RFC 3649";
    "htcp": |o| htcp::Htcp::new(o), "H-TCP: growth by the time since the last loss, backoff by the queueing delay",
        "draft-leith-tcp-htcp-06", htcp::PARAMS;
    "hybla": |o| hybla::Hybla::new(o), "Hybla: a long path's flow grows as one over 25 ms does",
        "Caini, Firrincieli: TCP Hybla, Int. J. Satellite Communications 22, 2004", hybla::PARAMS;
    "illinois": |o| illinois::Illinois::new(o), "Illinois: reacts to loss, growth and backoff by the queueing delay",
        "Liu, Başar, Srikant: TCP-Illinois, Performance Evaluation 65, 2008", illinois::PARAMS;
    "lp": |o| lp::Lp::new(o), "TCP-LP: low priority, halves the window when the one-way delay rises",
        "Kuzmanovic and Knightly, IEEE INFOCOM 2003";
    "nv": |o| nv::Nv::new(o), "NV, new Vegas: no larger a window than the best rate needs, for data centres",
        "Brakmo, Linux Plumbers Conference 2010", nv::PARAMS;
    "prague": |o| prague::Prague::new(o), "TCP Prague for L4S: DCTCP for the internet, paced, independent of the RTT; needs accurate ECN, falls back to Reno without",
        "draft-briscoe-iccrg-prague-congestion-control-04, RFC 9331", prague::PARAMS;
    "reno": |_| Reno, "NewReno: one packet a round trip, half the window after a loss",
        "RFC 5681";
    "scalable": |_| scalable::Scalable, "Scalable TCP: grows by 1 % a round trip, falls by an eighth",
        "Kelly: Scalable TCP, Computer Communication Review 33(2), 2003";
    "vegas": |o| vegas::Vegas::new(o), "Vegas: two to four packets in the queue, seen by the RTT",
        "Brakmo and Peterson, IEEE JSAC 13(8), 1995", vegas::PARAMS;
    "veno": |_| veno::Veno::default(), "Veno: Reno that halves the window only when packets are in the queue",
        "Fu and Liew, IEEE JSAC 21(2), 2003";
    "westwood": |_| westwood::Westwood::default(), "Westwood+: Reno that falls to the bandwidth it measured",
        "Grieco, Mascolo: New Reno, Vegas and Westwood+ TCP, Computer Communication Review 34(2), 2004";
    "yeah": |_| yeah::Yeah::default(), "YeAH: fast while the queue is short, Reno when it is not",
        "Baiocchi, Castellani and Vacirca, PFLDnet 2007";
}

/// The line of the registry called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|e| e.name == name)
}

/// Makes the congestion control called `name` with default parameters.
pub fn make(name: &str, seed: u64) -> Option<Box<dyn CongestionController>> {
    find(name).map(|e| (e.new)(&Options { seed, set: None }))
}

/// What is wrong with parameters for the congestion control called `name`: the parameter's name and the fix.
pub fn check(name: &str, set: &BTreeMap<String, i64>) -> Result<(), (String, String)> {
    let params = find(name).map_or(&[][..], |e| e.params);
    for (key, value) in set {
        let Some(p) = params.iter().find(|p| p.name == key) else {
            let known: Vec<&str> = params.iter().map(|p| p.name).collect();
            let fix = if known.is_empty() {
                format!("{name} has no parameters")
            } else {
                format!("is no parameter of {name}; there are {}", known.join(", "))
            };
            return Err((key.clone(), fix));
        };
        if !(p.min..=p.max).contains(value) {
            return Err((key.clone(), format!("must be from {} to {}", p.min, p.max)));
        }
    }
    Ok(())
}
