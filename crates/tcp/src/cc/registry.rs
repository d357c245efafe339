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

/// Every congestion control there is, in the order of their names.
pub const REGISTRY: &[Entry] = &[
    Entry {
        name: "bbr",
        about: "BBR version 1: model-based, paced",
        source: "draft-cardwell-iccrg-bbr-congestion-control-00",
        params: &[],
        new: |o| Box::new(bbr::Bbr::new(o.seed)),
    },
    Entry {
        name: "bbr3",
        about: "BBR version 3: as bbr, but bounded by the losses that its probes cause",
        source: "draft-ietf-ccwg-bbr-06",
        params: bbr3::PARAMS,
        new: |o| Box::new(Bbr3::new(o)),
    },
    Entry {
        name: "bic",
        about: "BIC: binary search for the window of the last loss",
        source: "Xu, Harfoush, Rhee: Binary increase congestion control, INFOCOM 2004",
        params: bic::PARAMS,
        new: |o| Box::new(bic::Bic::new(o)),
    },
    Entry {
        name: "cdg",
        about: "CAIA delay gradient: backs off at random when RTTs rise",
        source: "Hayes and Armitage, IFIP Networking 2011",
        params: cdg::PARAMS,
        new: |o| Box::new(cdg::Cdg::new(o)),
    },
    Entry {
        name: "cubic",
        about: "CUBIC with HyStart; Linux's default",
        source: "RFC 9438",
        params: cubic::PARAMS,
        new: |o| Box::new(cubic::Cubic::new(o)),
    },
    Entry {
        name: "dctcp",
        about: "DCTCP: shrinks by the share of packets that were marked; needs ECN, falls back to Reno without",
        source: "RFC 8257",
        params: dctcp::PARAMS,
        new: |o| Box::new(dctcp::Dctcp::new(o)),
    },
    Entry {
        name: "fixed",
        about: "a constant window or rate that reacts to nothing; a baseline",
        source: "none; RFC 8085 §3.1 says why not to",
        params: fixed::PARAMS,
        new: |o| Box::new(fixed::Fixed::new(o)),
    },
    Entry {
        name: "highspeed",
        about: "HighSpeed TCP: Reno with steps that grow with the window",
        source: "RFC 3649",
        params: &[],
        new: |_| Box::new(highspeed::HighSpeed::new()),
    },
    Entry {
        name: "htcp",
        about: "H-TCP: growth by the time since the last loss, backoff by the queueing delay",
        source: "draft-leith-tcp-htcp-06",
        params: htcp::PARAMS,
        new: |o| Box::new(htcp::Htcp::new(o)),
    },
    Entry {
        name: "hybla",
        about: "Hybla: a long path's flow grows as one over 25 ms does",
        source: "Caini, Firrincieli: TCP Hybla, Int. J. Satellite Communications 22, 2004",
        params: hybla::PARAMS,
        new: |o| Box::new(hybla::Hybla::new(o)),
    },
    Entry {
        name: "illinois",
        about: "Illinois: reacts to loss, growth and backoff by the queueing delay",
        source: "Liu, Başar, Srikant: TCP-Illinois, Performance Evaluation 65, 2008",
        params: illinois::PARAMS,
        new: |o| Box::new(illinois::Illinois::new(o)),
    },
    Entry {
        name: "lp",
        about: "TCP-LP: low priority, halves the window when the one-way delay rises",
        source: "Kuzmanovic and Knightly, IEEE INFOCOM 2003",
        params: &[],
        new: |o| Box::new(lp::Lp::new(o)),
    },
    Entry {
        name: "nv",
        about: "NV, new Vegas: no larger a window than the best rate needs, for data centres",
        source: "Brakmo, Linux Plumbers Conference 2010",
        params: nv::PARAMS,
        new: |o| Box::new(nv::Nv::new(o)),
    },
    Entry {
        name: "prague",
        about: "TCP Prague for L4S: DCTCP for the internet, paced, independent of the RTT; needs accurate ECN, falls back to Reno without",
        source: "draft-briscoe-iccrg-prague-congestion-control-04, RFC 9331",
        params: prague::PARAMS,
        new: |o| Box::new(prague::Prague::new(o)),
    },
    Entry {
        name: "reno",
        about: "NewReno: one packet a round trip, half the window after a loss",
        source: "RFC 5681",
        params: &[],
        new: |_| Box::new(Reno),
    },
    Entry {
        name: "scalable",
        about: "Scalable TCP: grows by 1 % a round trip, falls by an eighth",
        source: "Kelly: Scalable TCP, Computer Communication Review 33(2), 2003",
        params: &[],
        new: |_| Box::new(scalable::Scalable),
    },
    Entry {
        name: "vegas",
        about: "Vegas: two to four packets in the queue, seen by the RTT",
        source: "Brakmo and Peterson, IEEE JSAC 13(8), 1995",
        params: vegas::PARAMS,
        new: |o| Box::new(vegas::Vegas::new(o)),
    },
    Entry {
        name: "veno",
        about: "Veno: Reno that halves the window only when packets are in the queue",
        source: "Fu and Liew, IEEE JSAC 21(2), 2003",
        params: &[],
        new: |_| Box::new(veno::Veno::default()),
    },
    Entry {
        name: "westwood",
        about: "Westwood+: Reno that falls to the bandwidth it measured",
        source: "Grieco, Mascolo: New Reno, Vegas and Westwood+ TCP, Computer Communication Review 34(2), 2004",
        params: &[],
        new: |_| Box::new(westwood::Westwood::default()),
    },
    Entry {
        name: "yeah",
        about: "YeAH: fast while the queue is short, Reno when it is not",
        source: "Baiocchi, Castellani and Vacirca, PFLDnet 2007",
        params: &[],
        new: |_| Box::new(yeah::Yeah::default()),
    },
];

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
