//! Changes while a path runs.

use tcpscape_base::{Duration, Packet, Rate, Time};
use tcpscape_path::schedule::Change;
use tcpscape_path::{parse_tc, Patch, PathSpec, Pipe, ScheduledChange};

const MS: u64 = 1_000_000;

fn path(words: &str, changes: Vec<Change>) -> PathSpec {
    let mut spec = PathSpec::of([parse_tc(words).unwrap()]);
    spec.schedule = changes.into_iter().map(|change| ScheduledChange { stage: 0, depth: 0, change }).collect();
    spec.validate().unwrap();
    let json = serde_json::to_string(&spec).unwrap();
    assert_eq!(PathSpec::from_json(&json).unwrap(), spec, "{json}");
    spec
}

/// Departure time of each packet (`None` if it was lost), sent `gap` ms apart until `until` ms.
fn departures(spec: &PathSpec, gap: u64, until: u64) -> Vec<Option<u64>> {
    let mut pipe: Pipe<usize> = Pipe::new(spec, 2, "forward");
    let mut out = vec![None; (until / gap) as usize];
    let mut take = |pipe: &mut Pipe<usize>, now: u64| {
        while let Some(p) = pipe.pop(Time(now)) {
            out[p.body] = Some(now);
        }
    };
    for now in (0..(until + 1000) * MS).step_by(MS as usize / 10) {
        take(&mut pipe, now);
        if now % (gap * MS) == 0 && now < until * MS {
            pipe.push(Time(now), Packet { size: 1514, segs: 1, body: (now / (gap * MS)) as usize, ..Default::default() });
            take(&mut pipe, now);
        }
    }
    out
}

fn delay_ms(out: &[Option<u64>], gap: u64, i: usize) -> f64 {
    (out[i].expect("not lost") - i as u64 * gap * MS) as f64 / MS as f64
}

#[test]
fn a_step_of_delay() {
    let set = Patch { delay: Some(Duration::millis(5)), ..Default::default() };
    let out = departures(&path("netem delay 20ms", vec![Change::Set { at: Time(100 * MS), set }]), 10, 200);
    assert_eq!((delay_ms(&out, 10, 9), delay_ms(&out, 10, 10)), (20.0, 5.0));
}

#[test]
fn a_ramp_goes_in_steps_and_stops_at_its_end() {
    let at = |ms| Patch { delay: Some(Duration::millis(ms)), ..Default::default() };
    let ramp = Change::Ramp { from: Time(100 * MS), until: Time(200 * MS), every: Duration::millis(10), start: at(10), end: at(30) };
    let out = departures(&path("netem delay 10ms", vec![ramp]), 10, 400);
    let d: Vec<f64> = [5, 10, 11, 15, 20, 35].iter().map(|&i| delay_ms(&out, 10, i)).collect();
    assert_eq!(d, [10.0, 10.0, 12.0, 20.0, 30.0, 30.0]);
}

#[test]
fn a_handover_comes_back_every_period_and_goes_away_again() {
    // Every 100 ms: 20 ms of outage, and a delay that is 30 ms longer for 50 ms.
    let outage = Patch { outage: Some(true), ..Default::default() };
    let far = Patch { delay: Some(Duration::millis(40)), ..Default::default() };
    let spec = path(
        "netem delay 10ms",
        vec![
            Change::Periodic { first: Time(50 * MS), period: Duration::millis(100), hold: Duration::millis(20), set: outage },
            Change::Periodic { first: Time(50 * MS), period: Duration::millis(100), hold: Duration::millis(50), set: far },
        ],
    );
    let out = departures(&spec, 1, 1000);
    for round in 0..9 {
        let at = |ms: usize| delay_ms(&out, 1, round * 100 + ms);
        assert_eq!(at(30), 10.0);
        assert_eq!(at(45), 25.0, "due at 55, held until the outage ends at 70");
        assert_eq!(at(50), 40.0);
        assert_eq!(at(99), 40.0);
        assert_eq!(at(100), 10.0);
    }
}

#[test]
fn a_loss_burst_of_a_chain_puts_the_chain_back() {
    let all = Patch { loss: Some(tcpscape_path::Prob::ONE), ..Default::default() };
    let spec = path(
        "netem loss gemodel 50% 50% 100% 0%",
        vec![Change::Periodic { first: Time(100 * MS), period: Duration::secs(10), hold: Duration::millis(100), set: all }],
    );
    let out = departures(&spec, 1, 1200);
    assert!(out[100..200].iter().all(Option::is_none), "everything is lost in the burst");
    let lost = out[200..].iter().filter(|d| d.is_none()).count();
    assert!((400..600).contains(&lost), "half before and after: {lost}");
}

#[test]
fn a_rate_trace_is_followed_without_gifts() {
    // 10, 0, 20 Mbit/s for 100 ms each, round and round: 10 Mbit/s in the mean.
    let points = vec![(Duration(0), Rate(10_000_000)), (Duration::millis(100), Rate(0)), (Duration::millis(200), Rate(20_000_000))];
    let trace = Change::RateTrace { start: Time::ZERO, points, repeat: Some(Duration::millis(300)) };
    let mut pipe: Pipe<usize> = Pipe::new(&path("tbf rate 10mbit burst 3028 limit 100000", vec![trace]), 1, "forward");
    let mut bytes = [0u64; 300];
    for i in 0..60_000usize {
        let now = i as u64 * 500_000;
        pipe.push(Time(now), Packet { size: 1514, segs: 1, ..Default::default() });
        while let Some(p) = pipe.pop(Time(now)) {
            bytes[(now / (100 * MS)) as usize] += u64::from(p.size);
        }
    }
    for (phase, want) in [(0, 125_000.0), (1, 0.0), (2, 250_000.0)] {
        let mean = bytes[3..].iter().skip(phase).step_by(3).sum::<u64>() as f64 / 99.0;
        assert!((mean - want).abs() < 4000.0, "phase {phase}: {mean} for {want}");
    }
}

#[test]
fn nonsense_is_refused_with_its_field() {
    let json = |change: &str| {
        format!(r#"{{"stages":[{{"qdisc":{{"kind":"tbf","rate":8000,"burst":1514,"limit":9000}}}}],"schedule":[{change}]}}"#)
    };
    for (change, word) in [
        (r#"{"stage":1,"change":{"kind":"set","at":0,"set":{"rate":8000}}}"#, "stage"),
        (r#"{"stage":0,"depth":1,"change":{"kind":"set","at":0,"set":{"rate":8000}}}"#, "child"),
        (r#"{"stage":0,"change":{"kind":"set","at":0,"set":{"delay":8000}}}"#, "delay"),
        (r#"{"stage":0,"change":{"kind":"set","at":0,"set":{"rate":0}}}"#, "outage"),
        (r#"{"stage":0,"change":{"kind":"set","at":0,"set":{}}}"#, "names no value"),
        (r#"{"stage":0,"change":{"kind":"periodic","first":0,"period":5,"hold":5,"set":{"rate":8000}}}"#, "hold"),
        (r#"{"stage":0,"change":{"kind":"ramp","from":0,"until":5,"every":0,"start":{"rate":8000},"end":{"rate":9000}}}"#, "every"),
        (r#"{"stage":0,"change":{"kind":"rate_trace","points":[]}}"#, "points"),
        (
            r#"{"stage":0,"change":{"kind":"ramp","from":0,"until":5,"every":1,"start":{"rate":8000},"end":{"limit":9000}}}"#,
            "ramp from 0ns: ramp: goes from rate to limit; name the same fields in start and end",
        ),
        (r#"{"stage":0,"change":{"kind":"ramp","from":0,"until":5,"every":1,"start":{},"end":{}}}"#, "names no value"),
        (
            r#"{"stage":0,"change":{"kind":"ramp","from":7,"until":9,"every":1,"start":{"outage":true},"end":{"outage":true}}}"#,
            "ramp from 7ns: outage: is either on or off",
        ),
        (
            r#"{"stage":0,"change":{"kind":"rate_trace","points":[[7000000,8000],[2000,8000]]}}"#,
            "rate trace from 7ms: trace: goes from 7ms to 2us",
        ),
        (r#"{"stage":0,"change":{"kind":"rate_trace","points":[[0,8000]],"repeat":0}}"#, "repeat: is not longer than the trace"),
        (
            r#"{"stage":0,"depth":99,"change":{"kind":"set","at":1000000000,"set":{"rate":8000}}}"#,
            "change at 1s: child: tbf has no child queue",
        ),
        (r#"{"stage":0,"change":{"kind":"jump","at":0}}"#, "jump"),
    ] {
        let e = PathSpec::from_json(&json(change)).unwrap_err().to_string();
        assert!(e.contains(word) && !e.contains('\n'), "{change}: {e}");
    }
}
