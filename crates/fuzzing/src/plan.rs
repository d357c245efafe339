//! Target `plan`: a plan, run for a short time.
//!
//! Bytes that begin with `{` are a plan's JSON, all others are choices. What must hold is in [`crate::trial`].

use crate::choices::Choices;
use crate::control::parameters;
use crate::{schedule, trial};
use tcpscape_path::{Host, PathSpec};
use tcpscape_plan::player::{Abr, PlayerPlan};
use tcpscape_plan::{App, FlowPlan, LinkPlan, PlacePlan, Plan, ProbeKind, ProbePlan, Read, TransfersPlan};
use tcpscape_tcp::cc;

/// Longest trial, ns: a longer one is shortened.
const LONGEST: u64 = 3_000_000_000;
/// Most flows.
const FLOWS: usize = 6;

/// The target.
pub fn check(data: &[u8]) {
    if let Some((plan, seed)) = read(data) {
        trial::check(plan, seed);
    }
}

/// The plan that bytes are, and its seed; `None` where its form is wrong.
pub fn read(data: &[u8]) -> Option<(Plan, u64)> {
    if data.first() != Some(&b'{') {
        let mut c = Choices::new(data);
        return Some((any(&mut c)?, u64::from(c.below(256))));
    }
    let mut plan = Plan::from_json(std::str::from_utf8(data).ok()?).ok()?;
    plan.duration_ns = plan.duration_ns.min(LONGEST);
    plan.flows.truncate(FLOWS);
    plan.probes.truncate(FLOWS);
    plan.transfers.truncate(FLOWS);
    Some((plan, 1))
}

fn any(c: &mut Choices<'_>) -> Option<Plan> {
    let mut plan = Plan::from_json(r#"{"duration_ns": 1, "flows": []}"#).ok()?;
    plan.duration_ns = c.pick(&[1_000_000_000, LONGEST, 200_000_000, 20_000_000, 1]);
    plan.mtu = c.pick(&[1500, 1500, 9000, 576, 128, 65_535]);
    (plan.ecn, plan.arp, plan.offload) = (c.one_in(2), c.one_in(2), c.one_in(3));
    plan.gso = !c.one_in(4);
    if !c.one_in(8) {
        plan.forward = schedule::path(c, Host::Sender, 3)?;
        plan.reverse = schedule::path(c, Host::Receiver, 2)?;
    }
    for _ in 0..1 + c.pick(&[0, 0, 1, 2]) {
        let flow = flow(c, plan.duration_ns);
        plan.flows.push(flow);
    }
    plan.kernel = kernel(c);
    if c.one_in(4) {
        plan.sample_interval_ns = u64::from(c.size(1 << 30));
        plan.queue_sample_interval_ns = u64::from(c.size(1 << 30));
        plan.trace_packets = c.one_in(2);
        plan.trace_events = plan.trace_packets;
    }
    if c.one_in(8) {
        plan.timer_slack_ns = u64::from(c.size(1 << 30));
        plan.wake_noise_ns = u64::from(c.size(1 << 30));
        plan.write_cost_ns = u64::from(c.size(1 << 20));
        plan.read_cost_ns = u64::from(c.size(1 << 20));
    }
    // Last of all, so that older findings are still the plans that they were.
    if c.one_in(3) {
        traffic(c, &mut plan);
    }
    if c.one_in(3) {
        network(c, &mut plan);
    }
    Some(plan)
}

fn kernel(c: &mut Choices<'_>) -> serde_json::Value {
    let profile = c.pick(&["6.1", "6.12"]);
    match c.below(4) {
        0 => serde_json::json!({"profile": profile, "hz": c.pick(&[100, 250, 1000, 24, 10_000])}),
        1 => serde_json::json!({"profile": profile, "rmem_max": c.size(u32::MAX), "wmem_max": c.size(u32::MAX)}),
        _ => profile.into(),
    }
}

fn flow(c: &mut Choices<'_>, duration_ns: u64) -> FlowPlan {
    let entry = &cc::REGISTRY[c.below(cc::REGISTRY.len() as u32) as usize];
    let latest = u32::try_from(duration_ns - 1).unwrap_or(u32::MAX);
    let start_ns = if c.one_in(4) { u64::from(c.size(latest)) } else { 0 };
    let stop_ns = if c.one_in(6) { start_ns + 1 + u64::from(c.size(latest)) } else { 0 };
    let chunk = 1 + u64::from(c.size(1 << 20));
    let mut app = match c.below(4) {
        0 => App::Paced { chunk, rate: f64::from(1 + c.size(100_000_000)) },
        1 => App::Finite { chunk, bytes: 1 + u64::from(c.size(10_000_000)) },
        _ => App::Bulk { chunk },
    };
    let mut read = Read::default();
    if c.one_in(4) {
        read = Read { size: 1 + u64::from(c.size(1 << 20)), delay_ns: u64::from(c.size(1 << 28)) };
    }
    let player = c.one_in(10).then(|| player(c));
    if player.is_some() {
        (app, read.delay_ns) = (App::Bulk { chunk }, 0);
    }
    let rcvbuf = if c.one_in(4) { c.size(10_000_000) } else { 0 };
    let sndbuf = if c.one_in(4) { c.size(10_000_000) } else { 0 };
    FlowPlan {
        cca: entry.name.to_owned(),
        cca_params: parameters(c, entry),
        listener: c.one_in(8).then(|| c.pick(&["cubic", "dctcp", "prague"]).to_owned()),
        start_ns,
        stop_ns,
        app,
        read,
        player,
        rcvbuf,
        sndbuf,
        nodelay: !c.one_in(4),
        misbehaves: None,
        place: 0,
        up: false,
    }
}

/// Requests, pauses, probes and transfers; probes perhaps in place of the flows.
fn traffic(c: &mut Choices<'_>, plan: &mut Plan) {
    for flow in plan.flows.iter_mut().filter(|flow| flow.player.is_none()) {
        let chunk = 1 + u64::from(c.size(1 << 20));
        match c.below(3) {
            0 => flow.app = App::OnOff { chunk, on_ns: 1 + pause(c), off_ns: pause(c), rate: f64::from(c.size(100_000_000)) },
            1 => {
                flow.app = App::Respond { chunk, response: 1 + u64::from(c.size(10_000_000)), think_ns: pause(c), every_ns: pause(c) };
                flow.read.delay_ns = 0;
            }
            _ => {}
        }
    }
    let latest = u32::try_from(plan.duration_ns - 1).unwrap_or(u32::MAX);
    for _ in 0..c.below(3) {
        plan.probes.push(ProbePlan {
            kind: c.pick(&[ProbeKind::Udp, ProbeKind::UdpEcho, ProbeKind::IcmpEcho]),
            size: c.size(plan.mtu - 28),
            interval_ns: 100_000 + u64::from(c.size(1 << 30)),
            start_ns: u64::from(c.size(latest)),
            stop_ns: 0,
            place: 0,
            up: c.one_in(2),
            media: None,
        });
    }
    for _ in 0..c.below(3) {
        let least = 1 + u64::from(c.size(100_000));
        let mut flow = flow(c, plan.duration_ns);
        (flow.app, flow.player) = (App::Bulk { chunk: 1 + u64::from(c.size(1 << 20)) }, None);
        let most = least + u64::from(c.size(10_000_000));
        let per_second = f64::from(1 + c.size(500));
        plan.transfers.push(TransfersPlan { flow, per_second, least, most, shape: f64::from(1 + c.below(40)) / 10.0 });
    }
    if !plan.probes.is_empty() && c.one_in(4) {
        plan.flows.clear();
    }
}

/// Data both ways between the two hosts, or a chain of links with hosts behind links of their own.
fn network(c: &mut Choices<'_>, plan: &mut Plan) {
    let places = c.below(4) as usize;
    for _ in 0..c.below(3).min(places as u32) {
        plan.links.push(link(c));
    }
    let last = plan.links.len() as u32 + 1;
    for _ in 0..places {
        let enter = c.below(last);
        let leave = (enter + 1 + c.below(last - enter)) as usize;
        let (near, far) = (link(c), if c.one_in(2) { link(c) } else { LinkPlan::default() });
        plan.places.push(PlacePlan { enter: enter as usize, leave, near, far });
    }
    if places > 0 {
        plan.forward.stages.iter_mut().chain(&mut plan.reverse.stages).for_each(|stage| stage.at = Host::Router);
    }
    let mut place = || (c.below(places as u32) as usize, c.one_in(2));
    for flow in plan.flows.iter_mut().chain(plan.transfers.iter_mut().map(|t| &mut t.flow)) {
        (flow.place, flow.up) = place();
    }
    plan.probes.iter_mut().for_each(|probe| (probe.place, probe.up) = place());
}

/// Both directions of a link at routers; one without a queue where the choices make no path.
fn link(c: &mut Choices<'_>) -> LinkPlan {
    let mut direction = || if c.one_in(4) { PathSpec::default() } else { schedule::path(c, Host::Router, 2).unwrap_or_default() };
    LinkPlan { forward: direction(), reverse: direction() }
}

/// A time of an application, ns; in one of four cases none.
fn pause(c: &mut Choices<'_>) -> u64 {
    if c.one_in(4) {
        0
    } else {
        u64::from(c.size(1 << 31))
    }
}

fn player(c: &mut Choices<'_>) -> PlayerPlan {
    let mut rate = 0;
    let ladder = (0..1 + c.below(6)).map(|_| {
        rate += 1 + u64::from(c.size(10_000_000));
        rate
    });
    let ladder = ladder.collect();
    let segment_ns = 100_000_000 + u64::from(c.size(4_000_000_000));
    let abr = c.pick(&[Abr::Throughput, Abr::Bola]);
    PlayerPlan { ladder, segment_ns, buffer_ns: 2 * segment_ns + u64::from(c.any()), abr }
}
