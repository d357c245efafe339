//! A plan drawn from a number, for comparing two builds on conditions that nobody chose.

use super::cases::Case;
use std::fmt::Write as _;
use tcpscape_base::Stream;
use tcpscape_tcp::cc;

fn pick<'a>(s: &mut Stream, of: &[&'a str]) -> &'a str {
    of[s.below(of.len() as u32) as usize]
}

/// Case number `n` of the random ones.
pub fn random(n: u64) -> Case {
    let s = &mut Stream::new(n, "behaviour");
    let mut c = Case { name: format!("random/{n}"), seed: n, ms: u64::from(500 + s.below(3_500)), ..Case::default() };
    let delay = |s: &mut Stream| {
        let d = [1, 5, 20, 50, 120][s.below(5) as usize];
        let jitter = if s.below(3) == 0 { format!(" {}ms", 1 + s.below(d)) } else { String::new() };
        let normal = if jitter.is_empty() { "" } else { pick(s, &["", " distribution normal", " distribution pareto"]) };
        let loss = pick(s, &["", "", " loss 0.1%", " loss 1%", " loss 6%", " loss 30%", " loss gemodel 1% 20%"]);
        let more = pick(s, &["", "", "", "", " duplicate 2%", " corrupt 1%", " reorder 10% 50%"]);
        let limit = pick(s, &[" limit 100000", " limit 100000", " limit 1000", " limit 20", " limit 4"]);
        format!("netem delay {d}ms{jitter}{normal}{loss}{more}{limit}")
    };
    let rate = |s: &mut Stream| pick(s, &["1mbit", "5mbit", "20mbit", "60mbit"]);
    let queue = |s: &mut Stream| {
        let child = pick(
            s,
            &[
                "",
                "",
                "; pfifo limit 20",
                "; codel limit 100 ecn",
                "; fq_codel ecn",
                "; pie limit 80 ecn",
                "; fq_pie",
                "; sfq",
                "; fq",
                "; red limit 60000 min 5000 max 25000 avpkt 1000 probability 0.1 ecn",
                "; dualpi2",
                "; pfifo_head_drop limit 30",
            ],
        );
        match s.below(4) {
            0 => format!("cake bandwidth {} {}", rate(s), pick(s, &["", "besteffort", "rtt 30ms ack-filter", "diffserv4 memlimit 80kb"])),
            1 => format!("htb rate {}{child}", rate(s)),
            2 => format!("tbf rate {} burst 6056 limit {}{child}", rate(s), [9_000, 30_000, 150_000][s.below(3) as usize]),
            _ => String::new(),
        }
    };
    match s.below(5) {
        0 => (c.sender, c.router) = (queue(s), delay(s)),
        1 => (c.sender, c.router) = (String::new(), delay(s)),
        2 => (c.sender, c.router) = ("fq".into(), delay(s)),
        _ => (c.sender, c.router) = (delay(s), queue(s)),
    }
    c.reverse = delay(s);
    let names: Vec<&str> = cc::REGISTRY.iter().map(|e| e.name).collect();
    for _ in 0..[1, 1, 1, 2, 3][s.below(5) as usize] {
        let app = match s.below(5) {
            0 => format!(r#""app":{{"kind":"paced","chunk":{},"rate_Bps":{}.0}},"#, 100 + s.below(60_000), 20_000 + s.below(2_000_000)),
            1 => format!(r#""app":{{"kind":"finite","chunk":{},"bytes":{}}},"#, 100 + s.below(30_000), 1 + s.below(900_000)),
            2 => format!(r#""app":{{"kind":"bulk","chunk":{}}},"#, 100 + s.below(130_000)),
            _ => String::new(),
        };
        let buffers = match s.below(5) {
            0 => format!(r#""rcvbuf":{},"#, 2_500 + s.below(300_000)),
            1 => format!(r#""sndbuf":{},"#, 2_500 + s.below(300_000)),
            2 => format!(r#""read":{{"size":{},"delay_ns":{}}},"#, 300 + s.below(60_000), s.below(60_000_000)),
            _ => String::new(),
        };
        let nodelay = s.below(4) != 0;
        let start = u64::from(s.below(400)) * 1_000_000;
        let fields = format!(r#"{app}{buffers}"nodelay":{nodelay},"start_ns":{start}"#);
        let cca = pick(s, &names);
        c.flows.push(format!(r#"{{"cca":"{cca}",{fields}}}"#));
    }
    let profile = pick(s, &["6.1", "6.12"]);
    let hz = [100, 250, 1000][s.below(3) as usize];
    let mtu = [1500, 1500, 1500, 576, 9000][s.below(5) as usize];
    write!(
        c.options,
        r#""kernel":{{"profile":"{profile}","hz":{hz}}},"ecn":{},"offload":{},"gso":{},"arp":{},"mtu":{mtu},"#,
        s.below(2) == 0,
        s.below(3) == 0,
        s.below(6) != 0,
        s.below(2) == 0
    )
    .unwrap();
    if s.below(4) == 0 && !c.sender.is_empty() && !c.router.is_empty() {
        let (from, ms) = (200 + u64::from(s.below(800)), 50 + u64::from(s.below(900)));
        let set = |at: u64, on| format!(r#"{{"stage":1,"change":{{"kind":"set","at":{},"set":{{"outage":{on}}}}}}}"#, at * 1_000_000);
        c.schedule = format!("{},{}", set(from, true), set(from + ms, false));
    }
    c
}
