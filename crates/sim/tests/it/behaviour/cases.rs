//! Short trials over everything that the model does, as plans: a fixed list with a name for each.

use std::fmt::Write as _;
use tcpscape_path::{parse_tc, Host, PathSpec, StageSpec};
use tcpscape_plan::Plan;
use tcpscape_sim::CheckedPlan;
use tcpscape_tcp::cc;

/// A trial in words.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Its name in the table.
    pub name: String,
    /// Seed of its random streams.
    pub seed: u64,
    /// Length, ms.
    pub ms: u64,
    /// tc's words at the sender's egress, empty for none.
    pub sender: String,
    /// tc's words at a router towards the receiver, empty for none.
    pub router: String,
    /// tc's words at the receiver's egress.
    pub reverse: String,
    /// JSON of each flow.
    pub flows: Vec<String>,
    /// More fields of the plan's JSON, each followed by a comma.
    pub options: String,
    /// JSON of changes to the path forward.
    pub schedule: String,
}

impl Case {
    fn new(name: impl Into<String>, ms: u64) -> Case {
        let reverse = "netem delay 20ms limit 100000".into();
        Case { name: name.into(), seed: 1, ms, reverse, ..Case::default() }
    }
    fn sender(mut self, words: &str) -> Case {
        self.sender = words.into();
        self
    }
    fn router(mut self, words: &str) -> Case {
        self.router = words.into();
        self
    }
    fn reverse(mut self, words: &str) -> Case {
        self.reverse = words.into();
        self
    }
    fn flow(mut self, cca: &str, fields: &str) -> Case {
        let comma = if fields.is_empty() { "" } else { "," };
        self.flows.push(format!(r#"{{"cca":"{cca}"{comma}{fields}}}"#));
        self
    }
    fn option(mut self, field: &str) -> Case {
        write!(self.options, "{field},").unwrap();
        self
    }
    fn change(mut self, change: &str) -> Case {
        let comma = if self.schedule.is_empty() { "" } else { "," };
        write!(self.schedule, "{comma}{change}").unwrap();
        self
    }

    /// The plan, or why the words are refused.
    pub fn plan(&self) -> Result<CheckedPlan<'static>, String> {
        let json = format!(r#"{{"duration_ns":{},{}"flows":[{}]}}"#, self.ms * 1_000_000, self.options, self.flows.join(","));
        let mut plan = Plan::from_json(&json).map_err(|e| format!("{json}: {e}"))?;
        let hop = |words: &str, at| -> Result<Vec<StageSpec>, String> {
            match words {
                "" => Ok(Vec::new()),
                _ => Ok(vec![StageSpec { qdisc: parse_tc(words).map_err(|e| format!("{words}: {e}"))?, at }]),
            }
        };
        plan.forward = serde_json::from_str(&format!(r#"{{"schedule":[{}]}}"#, self.schedule)).map_err(|e| e.to_string())?;
        plan.forward.stages = hop(&self.sender, Host::Sender)?;
        plan.forward.stages.extend(hop(&self.router, Host::Router)?);
        plan.reverse = PathSpec { stages: hop(&self.reverse, Host::Receiver)?, ..PathSpec::default() };
        CheckedPlan::new(plan).map_err(|e| format!("{}: {e}", self.name))
    }
}

const DELAY: &str = "netem delay 20ms limit 100000";
const BOTTLENECK: &str = "tbf rate 10mbit burst 6056 limit 50000";

/// A profile's name in JSON.
fn kernel(i: usize) -> &'static str {
    ["\"kernel\":\"6.1\"", "\"kernel\":\"6.12\""][i % 2]
}

/// Paths and applications that every control meets, each with the words that differ.
fn families(cca: &str) -> Vec<Case> {
    let case = |family: &str, ms| Case::new(format!("{cca}/{family}"), ms);
    let loss = |p| format!("netem delay 20ms loss {p} limit 100000");
    let step = |at: u64, rate: u64| format!(r#"{{"stage":1,"change":{{"kind":"set","at":{},"set":{{"rate":{rate}}}}}}}"#, at * 1_000_000);
    let outage = |from: u64, ms: u64| {
        let set = |at: u64, on| format!(r#"{{"stage":1,"change":{{"kind":"set","at":{},"set":{{"outage":{on}}}}}}}"#, at * 1_000_000);
        format!("{},{}", set(from, true), set(from + ms, false))
    };
    vec![
        case("loss", 3000).sender(&loss("1%")).router(BOTTLENECK).flow(cca, ""),
        case("heavy-loss", 3000).sender(&loss("15%")).flow(cca, ""),
        case("bursty-loss", 3000)
            .router("netem delay 20ms loss gemodel 1% 30% limit 100000; tbf rate 20mbit burst 6056 limit 100000")
            .flow(cca, ""),
        case("reordering", 3000)
            .sender("netem delay 20ms 6ms distribution normal limit 100000")
            .reverse("netem delay 20ms 6ms distribution normal limit 100000")
            .flow(cca, ""),
        case("reordering-loss", 3000)
            .sender("netem delay 20ms 9ms loss 0.5% limit 100000")
            .router(BOTTLENECK)
            .flow(cca, "")
            .option("\"arp\":false"),
        case("ordered", 3000).router("jitter delay 20ms 8ms distribution normal order clamp").flow(cca, ""),
        case("outage", 4000).sender(DELAY).router(BOTTLENECK).flow(cca, "").change(&outage(1200, 900)),
        case("rate-step", 4000)
            .sender(DELAY)
            .router(BOTTLENECK)
            .flow(cca, "")
            .change(&step(1000, 2_000_000))
            .change(&step(2500, 20_000_000)),
        case("ecn", 3000)
            .sender(DELAY)
            .router("tbf rate 10mbit burst 6056 limit 200000; codel limit 200 target 3ms interval 50ms ecn")
            .flow(cca, "")
            .option("\"ecn\":true"),
        case("application", 3000).sender(DELAY).router(BOTTLENECK).flow(cca, r#""app":{"kind":"paced","chunk":20000,"rate_Bps":400000.0}"#),
        case("receive-window", 3000).sender(&loss("0.3%")).flow(cca, r#""rcvbuf":30000,"read":{"size":4096,"delay_ns":2000000}"#),
        case("send-buffer", 3000).router(DELAY).flow(cca, r#""sndbuf":20000,"nodelay":false"#),
        case("finite", 5000).sender(&loss("2%")).router(BOTTLENECK).flow(cca, r#""app":{"kind":"finite","chunk":5000,"bytes":700000}"#),
        case("tiny-buffer", 3000).sender(DELAY).router("tbf rate 10mbit burst 3028 limit 7000").flow(cca, ""),
        case("offload", 2000).router("netem delay 10ms loss 0.2% rate 40mbit limit 60").flow(cca, "").option("\"offload\":true"),
        case("shared", 4000)
            .sender(DELAY)
            .router(BOTTLENECK)
            .flow(cca, "")
            .flow("cubic", r#""start_ns":700000000"#)
            .flow(cca, r#""start_ns":300000000,"stop_ns":2500000000"#),
    ]
}

/// Words of every queue; those of netem are in the families.
const QUEUES: [&str; 16] = [
    "tbf rate 8mbit burst 6056 limit 30000",
    "htb rate 8mbit; pfifo limit 30",
    "netem rate 8mbit delay 5ms duplicate 1% corrupt 0.5% reorder 5% gap 3 limit 50",
    "tbf rate 8mbit burst 6056 limit 60000; bfifo limit 40000",
    "tbf rate 8mbit burst 6056 limit 60000; pfifo_head_drop limit 25",
    "tbf rate 8mbit burst 6056 limit 60000; red limit 60000 min 5000 max 25000 avpkt 1000 probability 0.1 ecn adaptive",
    "tbf rate 8mbit burst 6056 limit 60000; codel limit 60 ecn",
    "tbf rate 8mbit burst 6056 limit 60000; fq_codel limit 60 flows 16 memory_limit 90kb ecn",
    "tbf rate 8mbit burst 6056 limit 60000; pie limit 60 ecn",
    "tbf rate 8mbit burst 6056 limit 60000; fq_pie limit 60 flows 16 ecn",
    "cake bandwidth 8mbit rtt 50ms ack-filter",
    "cake bandwidth 8mbit diffserv3 memlimit 60kb overhead 18 atm",
    "tbf rate 8mbit burst 6056 limit 60000; dualpi2 limit 60",
    "fq maxrate 8mbit flow_limit 60 ce_threshold 8ms",
    "tbf rate 8mbit burst 6056 limit 60000; sfq perturb 1 limit 40",
    "jitter delay 5ms 4ms order correlated",
];

fn queues() -> Vec<Case> {
    let mut cases = Vec::new();
    for (q, words) in QUEUES.iter().enumerate() {
        for (k, cca) in ["cubic", "bbr", "dctcp", "reno"].into_iter().enumerate() {
            let at_sender = k % 2 == q % 2;
            let place = if at_sender { "sender" } else { "router" };
            let mut c = Case::new(format!("queue{q}/{cca}/{place}"), 2500).option("\"ecn\":true");
            c = if at_sender { c.sender(words).router(DELAY) } else { c.sender(DELAY).router(words) };
            c = c.flow(cca, "").flow(["bbr", "cubic", "prague", "dctcp"][k], r#""start_ns":400000000"#);
            cases.push(if q % 3 == 0 { c.option("\"offload\":true") } else { c });
        }
    }
    cases
}

/// What only one kind of set-up shows.
fn corners() -> Vec<Case> {
    let mut cases = Vec::new();
    for (k, cca) in ["cubic", "bbr", "reno"].into_iter().enumerate() {
        let case = |name: &str, ms| Case::new(format!("corner/{name}/{cca}"), ms);
        cases.extend([
            case("bare-host", 2000).router("netem delay 20ms limit 200; tbf rate 10mbit burst 6056 limit 30000").flow(cca, ""),
            case("refused", 3000).sender("netem delay 20ms limit 6").flow(cca, ""),
            case("refused-small-queues", 3000).sender("tbf rate 30mbit burst 6056 limit 9000").router(DELAY).flow(cca, ""),
            case("small-queues", 2000).sender("tbf rate 30mbit burst 6056 limit 300000").router(DELAY).flow(cca, ""),
            case("fq-paces", 2000).sender("fq").router("netem delay 20ms loss 0.5% limit 10000").flow(cca, ""),
            case("zero-window", 5000).sender(DELAY).flow(cca, r#""rcvbuf":8000,"read":{"size":65536,"delay_ns":700000000}"#),
            case("silly-window", 3000).sender(DELAY).flow(cca, r#""rcvbuf":2500,"read":{"size":500,"delay_ns":3000000},"app":{"kind":"bulk","chunk":700}"#),
            case("nagle", 3000).sender(DELAY).flow(cca, r#""nodelay":false,"app":{"kind":"paced","chunk":300,"rate_Bps":30000.0}"#),
            case("short-writes", 3000).sender("netem delay 20ms loss 3% limit 1000").flow(cca, r#""app":{"kind":"paced","chunk":300,"rate_Bps":60000.0}"#),
            case("one-segment", 8000).sender("netem delay 20ms loss 30% limit 1000").flow(cca, r#""app":{"kind":"finite","chunk":1000,"bytes":1000}"#),
            case("syn-lost", 9000).sender("netem delay 20ms loss 60% limit 1000").reverse("netem delay 20ms loss 50%").flow(cca, r#""app":{"kind":"finite","chunk":3000,"bytes":30000}"#),
            case("idle", 6000).sender(DELAY).flow(cca, r#""app":{"kind":"paced","chunk":300000,"rate_Bps":200000.0}"#),
            case("no-gso", 2000).sender("netem delay 20ms loss 0.5% limit 10000").flow(cca, "").option("\"gso\":false"),
            case("small-packets", 2000).sender(DELAY).router(BOTTLENECK).flow(cca, "").option("\"mtu\":576"),
            case("large-packets", 2000).sender(DELAY).router("tbf rate 30mbit burst 20000 limit 90000").flow(cca, "").option("\"mtu\":9000"),
            case("ticks", 3000).sender("netem delay 3ms loss 1% limit 10000").flow(cca, r#""app":{"kind":"paced","chunk":9000,"rate_Bps":500000.0}"#)
                .option(["\"kernel\":{\"profile\":\"6.1\",\"hz\":250}", "\"kernel\":{\"profile\":\"6.12\",\"hz\":1000}", "\"kernel\":{\"hz\":24}"][k]),
            case("memory", 3000).sender("netem delay 20ms 10ms loss 4% limit 10000").flow(cca, r#""rcvbuf":12000,"app":{"kind":"bulk","chunk":900}"#),
            case("lost-acks", 3000).sender("netem delay 20ms loss 1% limit 10000").reverse("netem delay 20ms 5ms loss 25%").flow(cca, ""),
            case("duplicates", 3000).sender("netem delay 20ms 4ms duplicate 4% limit 10000").flow(cca, ""),
            case("deep-reordering", 3000).sender("netem delay 40ms reorder 40% 25% limit 10000").flow(cca, ""),
            case("handover", 5000).sender(DELAY).router(BOTTLENECK).flow(cca, "").change(
                r#"{"stage":0,"change":{"kind":"periodic","first":900000000,"period":1100000000,"hold":300000000,"set":{"delay":90000000}}}"#),
            case("ramp", 4000).sender(DELAY).router(BOTTLENECK).flow(cca, "").change(
                r#"{"stage":1,"change":{"kind":"ramp","from":500000000,"until":3000000000,"every":100000000,"start":{"rate":10000000},"end":{"rate":1000000}}}"#),
            case("trace", 4000).sender(DELAY).router(BOTTLENECK).flow(cca, "").change(
                r#"{"stage":1,"change":{"kind":"rate_trace","points":[[0,9000000],[400000000,3000000],[700000000,0],[1000000000,15000000]],"repeat":1500000000}}"#),
            case("many", 3000).sender(DELAY).router("tbf rate 20mbit burst 6056 limit 40000; sfq").flow(cca, "").flow("cubic", "").flow("bbr", "").flow("reno", "").flow(cca, "").flow("vegas", ""),
            case("one-cpu", 1500).router("netem delay 2ms limit 10000").flow(cca, r#""app":{"kind":"bulk","chunk":131072}"#).flow(cca, r#""app":{"kind":"bulk","chunk":131072}"#).option("\"write_cost_ns\":4000,\"read_cost_ns\":3000"),
        ]);
    }
    cases
}

/// What came after the table was first written: at the end, where it moves no other case's seed and kernel.
fn later() -> Vec<Case> {
    let choke =
        "tbf rate 8mbit burst 6056 limit 60000; choke limit 60 min 5 max 20 avpkt 1500 burst 10 bandwidth 8mbit probability 0.1 ecn";
    let choked = ["cubic", "bbr"].map(|cca| {
        Case::new(format!("later/choke/{cca}"), 2500).option("\"ecn\":true").sender(DELAY).router(choke).flow(cca, "").flow("reno", "")
    });
    let players = [("cubic", "bola"), ("bbr", "throughput")].map(|(cca, abr)| {
        let player = r#""player":{"ladder_bps":[400000,2000000,6000000],"segment_ns":1000000000,"buffer_ns":4000000000,"abr":"ABR"}"#;
        Case::new(format!("later/player/{abr}"), 12_000)
            .sender("netem delay 20ms loss 0.5% limit 1000")
            .router(BOTTLENECK)
            .reverse("netem delay 20ms loss 5%")
            .flow(cca, &player.replace("ABR", abr))
    });
    choked.into_iter().chain(players).collect()
}

/// The fixed list: every control over the families, every queue, the corners; profiles and seeds alternate.
pub fn corpus() -> Vec<Case> {
    let first = cc::REGISTRY.iter().flat_map(|e| families(e.name));
    let mut cases: Vec<Case> = first.chain(queues()).chain(corners()).chain(later()).collect();
    for (i, c) in cases.iter_mut().enumerate() {
        c.seed = 1 + i as u64 % 7;
        if !c.options.contains("kernel") {
            // Neither the families' number nor the queues' is odd, so that both profiles meet each.
            c.options.push_str(kernel(i + i / 16 + i / 64));
            c.options.push(',');
        }
    }
    cases
}
