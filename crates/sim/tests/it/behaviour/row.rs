//! One trial as a row of numbers.

use super::cases::Case;
use tcpscape_path::StageStats;

/// What the columns are.
pub const HEAD: &str = "case,seed,hash,events,bytes,goodput_kbps,data_segs_out,segs_in,retransmits,spurious,rtos,fast_recoveries,undos,tlps,reordering,delivered_ce,acks,queue_drops,queue_marks,queue_peak_bytes,summary";

/// The case's row: sums over its flows and queues.
pub fn row(case: &Case) -> String {
    let t = match case.plan() {
        Ok(plan) => plan.run(case.seed),
        Err(why) => return format!("{},{},refused: {}", case.name, case.seed, why.replace(',', ";")),
    };
    let sum = |f: &dyn Fn(&tcpscape_plan::results::FlowSummary) -> u64| t.flows.iter().map(f).sum::<u64>();
    let queues = |f: &dyn Fn(&StageStats) -> u64| t.queues.iter().map(|q| f(&q.stats)).sum::<u64>();
    format!(
        "{},{},{:016x},{},{},{:.0},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:016x}",
        case.name,
        case.seed,
        t.hash,
        t.events,
        sum(&|f| f.bytes_received),
        t.flows.iter().map(|f| f.goodput_mbps * 1e3).sum::<f64>(),
        sum(&|f| f.data_segs_out),
        sum(&|f| f.segs_in),
        sum(&|f| f.retransmits),
        sum(&|f| f.spurious_retransmits),
        sum(&|f| f.rtos.unwrap()),
        sum(&|f| f.fast_recoveries.unwrap()),
        sum(&|f| f.undos.unwrap()),
        sum(&|f| f.tlps.unwrap()),
        sum(&|f| u64::from(f.reordering)),
        sum(&|f| f.delivered_ce),
        sum(&|f| f.receiver.unwrap().acks),
        queues(&|q| q.drops.total()),
        queues(&|q| q.marked),
        queues(&|q| q.peak_bytes),
        fnv(&serde_json::to_string(&t.flows).expect("numbers")),
    )
}

/// FNV-1a over a text.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}
