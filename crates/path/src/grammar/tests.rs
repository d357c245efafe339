//! What tc takes and refuses. The tables were checked against tc 6.1's own parser.

use super::*;
use crate::Dist;

fn err(words: &str) -> String {
    parse_tc(words).expect_err(words).to_string()
}
fn prob(words: &str) -> u32 {
    match parse_tc(&format!("netem loss {words}")).unwrap() {
        QdiscSpec::Netem(s) => match s.loss {
            crate::Loss::Random { p, .. } => p.0,
            _ => unreachable!(),
        },
        _ => unreachable!(),
    }
}

#[test]
fn the_words_that_tc_takes() {
    for (words, canonical) in [
        ("netem", "netem limit 1000"),
        ("netem delay 25ms", "netem limit 1000 delay 25ms"),
        ("netem delay 25", "netem limit 1000 delay 25us"),
        ("netem delay 1e3ms", "netem limit 1000 delay 1s"),
        ("netem delay .5ms", "netem limit 1000 delay 500us"),
        ("netem delay 10MS", "netem limit 1000 delay 10ms"),
        ("netem lat 10msecs", "netem limit 1000 delay 10ms"),
        ("netem d 5ms", "netem limit 1000 delay 5ms"),
        ("netem delay 10ms delay 5ms", "netem limit 1000 delay 5ms"),
        ("netem delay 0 5ms", "netem limit 1000 delay 0ns 5ms"),
        (
            "netem delay 25ms 8ms 25% distribution normal loss 0.1% limit 100000",
            "netem limit 100000 delay 25ms 8ms 25% distribution normal loss 0.1%",
        ),
        ("netem delay 10ms 1ms 10", "netem limit 1000 delay 10ms 1ms 10%"),
        ("netem loss 5", "netem limit 1000 loss 5%"),
        ("netem drop 3%", "netem limit 1000 loss 3%"),
        ("netem loss random 5% 25%", "netem limit 1000 loss 5% 25%"),
        ("netem loss state 1%", "netem limit 1000 loss state 1% 99% 0% 100% 0%"),
        ("netem loss gemodel 1%", "netem limit 1000 loss gemodel 1% 99% 100% 0%"),
        ("netem loss gemodel 1% 10% 70% 0.1%", "netem limit 1000 loss gemodel 1% 10% 70% 0.1%"),
        ("netem loss 1% ecn", "netem limit 1000 loss 1% ecn"),
        ("netem duplicate 1% 20%", "netem limit 1000 duplicate 1% 20%"),
        ("netem corrupt 1e-1%", "netem limit 1000 corrupt 0.1%"),
        ("netem delay 10ms reorder 25% 50%", "netem limit 1000 delay 10ms reorder 25% 50%"),
        ("netem reorder 25% gap 0x5 delay 10ms", "netem limit 1000 delay 10ms reorder 25% gap 5"),
        ("netem rate 1mbit -20", "netem limit 1000 rate 1mbit -20 0 0"),
        ("netem rate 1mbit 20 100 5", "netem limit 1000 rate 1mbit 20 100 5"),
        ("netem slot 800us 10ms packets 5 bytes 64k", "netem limit 1000 slot 800us 10ms packets 5 bytes 65536"),
        ("netem slot distribution normal 10ms 1ms", "netem limit 1000 slot distribution normal 10ms 1ms"),
        ("netem slot 800", "netem limit 1000 slot 800ns 800ns"),
        ("netem limit 5k", "netem limit 5120"),
        ("tbf rate 10mbit burst 6056 limit 62500", "tbf rate 10mbit burst 6056 limit 62500"),
        // 1.25 MB/s · 0.4 s + 4096, as tc sends it
        ("tbf rate 10mbit burst 32kbit latency 400ms", "tbf rate 10mbit burst 4096 limit 504096"),
        ("tbf rate 10mbit buffer 10k/8 limit 10k", "tbf rate 10mbit burst 10240 limit 10240"),
        ("tbf rate 10mbit maxburst 10k limit 10k mtu 1540", "tbf rate 10mbit burst 10240 limit 10240"),
        (
            "tbf rate 10mbit burst 10k limit 10k peakrate 20mbit minburst 1540",
            "tbf rate 10mbit burst 10240 limit 10240 peakrate 20mbit mtu 1540",
        ),
        ("tbf rate 10MBPS burst 1.5kbit limit 1.5kb", "tbf rate 80mbit burst 192 limit 1536"),
        ("tbf rate 10kibps burst 2k limit 3b", "tbf rate 81920bit burst 2048 limit 3"),
        ("htb rate 60mbit ceil 60mbit", "htb rate 60mbit ceil 60mbit"),
        ("htb rate 10mbit burst 10k cburst 5k quantum 1500 prio 1", "htb rate 10mbit burst 10240 cburst 5120"),
        ("root handle 1: htb default 1; class parent 1: classid 1:1 htb rate 5mbit", "htb rate 5mbit"),
        ("htb default 1 r2q 10; htb r 5mbit", "htb rate 5mbit"),
        ("htb default 0x1a; class parent 1: classid 1:1a htb rate 5mbit", "htb rate 5mbit"),
        ("cake interplanetary", "cake rtt 1000s"),
        ("netem loss 0% 50%", "netem limit 1000 loss 0% 50%"),
        ("netem delay 1ms duplicate 0 2% corrupt 0% 3%", "netem limit 1000 delay 1ms duplicate 0% 2% corrupt 0% 3%"),
        ("htb r 6mbit; htb ra 5mbit", "htb rate 6mbit; htb rate 5mbit"),
        ("pfifo", "pfifo limit 1000"),
        ("pfifo limit 1.5k", "pfifo limit 1536"),
        (
            "red limit 400000 avpkt 1000 bandwidth 10Mbit ecn",
            "red limit 400000 min 33333 max 100000 avpkt 1000 burst 55 bandwidth 10mbit probability 0.02 ecn",
        ),
        ("codel", "codel limit 1000 target 5ms interval 100ms"),
        ("codel limit 111 target 2500 ce_threshold 1ms ecn", "codel limit 111 target 2500us interval 100ms ce_threshold 1ms ecn"),
        ("fq_codel noecn", "fq_codel limit 10240 flows 1024 quantum 1514 target 5ms interval 100ms noecn memory_limit 33554432 drop_batch 64"),
        ("pie limit 136 ecn", "pie limit 136 target 15ms tupdate 15ms alpha 2 beta 20 ecn"),
        (
            "fq_pie bytemode tupdate 30ms",
            "fq_pie limit 10240 flows 1024 quantum 1514 memory_limit 33554432 ecn_prob 10 target 15ms tupdate 30ms alpha 2 beta 20 bytemode",
        ),
        ("pfifo limit 100", "pfifo limit 100"),
        ("tbf rate 1gbit burst 10k latency 300s", "tbf rate 1gbit burst 10240 limit 4294967295"),
        ("bfifo limit 0x10", "bfifo limit 16"),
        ("bfifo limit 15k", "bfifo limit 15360"),
        ("qdisc add dev eth0 root handle 1: netem delay 1ms", "netem limit 1000 delay 1ms"),
        (
            "root handle 1: tbf rate 10mbit burst 4000 latency 400ms; parent 1:1 handle 10: netem delay 50ms loss 2%",
            "tbf rate 10mbit burst 4000 limit 504000; netem limit 1000 delay 50ms loss 2%",
        ),
        ("jitter delay 25ms 8ms distribution normal", "jitter limit 1000 delay 25ms 8ms distribution normal order clamp"),
        ("jitter delay 25ms 8ms order correlated", "jitter limit 1000 delay 25ms 8ms distribution normal order correlated tau 50ms"),
    ] {
        let spec = parse_tc(words).unwrap_or_else(|e| panic!("{words}: {e}"));
        assert_eq!(spec.to_tc(), canonical, "{words}");
        assert_eq!(parse_tc(canonical).as_ref(), Ok(&spec), "{words}: canonical words mean the same");
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<QdiscSpec>(&json).unwrap(), spec, "{json}");
    }
}

#[test]
fn what_tc_refuses_is_refused_with_the_word_and_the_fix() {
    for (words, parts) in [
        ("netem foo", ["\"foo\"", "expected limit"]),
        ("netem delay 10ms foo", ["\"foo\"", "expected limit"]),
        ("netem jitter 8ms", ["\"jitter\"", "delay 25ms 8ms"]),
        ("netem seed 5", ["\"seed\"", "expected"]),
        ("netem delay abc", ["\"abc\"", "25ms"]),
        ("netem delay 25xs", ["\"25xs\"", "ms"]),
        ("netem delay 1,5ms", ["\"1,5ms\"", "ms"]),
        ("netem delay -10ms", ["\"-10ms\"", "ms"]),
        ("netem delay 400days", ["\"400days\"", "ms"]),
        ("netem delay 275s", ["\"275s\"", "274s"]),
        ("netem delay 31536000s", ["\"31536000s\"", "274s"]),
        ("netem delay", ["\"delay\"", "value"]),
        ("netem delay 5ms 25%", ["\"25%\"", "8ms 25%"]),
        ("netem delay 5ms 0ms 25%", ["\"25%\"", "jitter"]),
        ("netem delay 10ms 5ms 120%", ["\"120%\"", "0% to 100%"]),
        ("netem delay 10ms -1ms", ["\"-1ms\"", "expected"]),
        ("netem delay 10ms 3s", ["jitter", "2.147"]),
        ("netem distribution normal", ["\"distribution\"", "delay 25ms 8ms"]),
        ("netem delay 10ms distribution normal", ["\"distribution\"", "jitter"]),
        ("netem delay 10ms 0ms distribution normal", ["\"distribution\"", "jitter"]),
        ("netem delay 10ms 1ms distribution nosuch", ["\"nosuch\"", "paretonormal"]),
        ("netem delay 10ms 1ms distribution uniform", ["\"uniform\"", "without distribution"]),
        ("netem loss 120%", ["\"120%\"", "0% to 100%"]),
        ("netem loss -5%", ["\"-5%\"", "0% to 100%"]),
        ("netem loss nan", ["\"nan\"", "0% to 100%"]),
        ("netem loss inf", ["\"inf\"", "0% to 100%"]),
        ("netem loss 0.1 %", ["\"%\"", "expected"]),
        ("netem loss 1% 2% 3%", ["\"3%\"", "expected"]),
        ("netem loss state", ["\"loss\"", "value"]),
        ("netem loss state 1% 2% 3% 4% 5% 6%", ["\"6%\"", "expected"]),
        ("netem loss gemodel 120%", ["\"120%\"", "0% to 100%"]),
        ("netem duplicate 101%", ["\"101%\"", "0% to 100%"]),
        ("netem corrupt 101%", ["\"101%\"", "0% to 100%"]),
        ("netem reorder 25%", ["\"reorder\"", "delay 10ms"]),
        ("netem gap 5 delay 1ms", ["\"gap\"", "reorder 25%"]),
        ("netem ecn", ["\"ecn\"", "loss 1%"]),
        ("netem rate 0", ["\"0\"", "above 0"]),
        ("netem rate abc", ["\"abc\"", "10mbit"]),
        ("netem rate 1mbit 1500b", ["\"1500b\"", "whole number"]),
        ("netem loss 1% loss 2%", ["\"loss\"", "twice"]),
        ("netem limit -1", ["\"-1\"", "number"]),
        ("netem limit 0.4", ["\"0.4\" after limit", "whole number"]),
        ("netem limit 1.5", ["\"1.5\"", "whole number"]),
        ("netem slot 1ms packets 1.5", ["\"1.5\"", "whole number"]),
        ("netem slot 1ms bytes 0.4", ["\"0.4\"", "a size"]),
        ("netem slot 10ms 5ms", ["\"slot\"", "5ms 10ms"]),
        ("netem slot -5ms", ["\"-5ms\"", "us"]),
        ("netem slot 1ms packets", ["\"packets\"", "value"]),
        ("tbf", ["rate is missing", "rate 10mbit"]),
        ("tbf foo", ["\"foo\"", "expected limit"]),
        ("tbf burst 32kbit latency 400ms", ["rate is missing", "10mbit"]),
        ("tbf rate 10mbit latency 400ms", ["burst is missing", "6056"]),
        ("tbf rate 10mbit burst 32kbit", ["limit or latency is missing", "latency 50ms"]),
        ("tbf rate 10mbit burst 32kbit limit 5 latency 400ms", ["\"latency\"", "one of them"]),
        ("tbf rate 10mbit burst 32kbit latency 400ms limit 5", ["\"limit\"", "one of them"]),
        ("tbf rate 0 burst 10k limit 10k", ["\"0\"", "above 0"]),
        ("tbf rate 10mbit burst 0 limit 10k", ["burst is missing", "1514"]),
        ("tbf rate 10mbit burst 10k limit 0", ["limit or latency is missing", "62500"]),
        ("tbf rate 10mbit burst 10k latency 0", ["limit or latency is missing", "50ms"]),
        ("tbf rate 10mbit burst 10k limit 10k peakrate 20mbit", ["mtu is missing", "1514"]),
        ("tbf rate 10mbit burst 10k limit 10k peakrate 5mbit mtu 1540", ["peakrate", "above rate"]),
        ("tbf rate 10mbit burst 10k maxburst 10k limit 10k", ["\"maxburst\"", "twice"]),
        ("tbf rate 10mbit rate 5mbit burst 10k limit 10k", ["\"rate\"", "twice"]),
        ("tbf rate 10mbit burst 10k limit 10k mpu 64", ["\"mpu\"", "not modelled"]),
        ("tbf rate 10mbit burst 10k limit 10k linklayer atm", ["\"linklayer\"", "not modelled"]),
        ("tbf rate 10mbit burst 10kx limit 5", ["\"10kx\"", "kbit"]),
        ("tbf rate 10mbit burst 10gb limit 5g", ["\"10gb\"", "kbit"]),
        ("tbf rate 10xbit burst 10k limit 5", ["\"10xbit\"", "mbit"]),
        ("tbf rate 10k burst 10k limit 5", ["\"10k\"", "kbit"]),
        ("htb", ["rate is missing", "10mbit"]),
        ("htb ceil 10mbit", ["rate is missing", "10mbit"]),
        ("htb rate 10mbit foo", ["\"foo\"", "expected rate"]),
        ("htb rate 10mbit quantum nan", ["\"nan\" after quantum", "whole number"]),
        ("htb rate 10mbit prio abc", ["\"abc\" after prio", "whole number"]),
        ("htb rate 10mbit mtu nan", ["\"nan\" after mtu", "whole number"]),
        ("htb r2q x; htb rate 10mbit", ["\"x\" after r2q", "whole number"]),
        ("htb default one; htb rate 10mbit", ["\"one\" after default", "1:10"]),
        ("root handle one: netem delay 1ms", ["\"one:\" after handle", "1:10"]),
        ("parent : netem delay 1ms", ["\":\" after parent", "1:10"]),
        ("dev a-name-that-is-too-long netem delay 1ms", ["after dev", "15 bytes"]),
        ("netem delay \u{1b}[31m", ["\"\\u{1b}[31m\"", "25ms"]),
        ("netem delay 25ms٣", ["\"25ms٣\"", "25ms"]),
        ("netem\u{2003}delay 25ms", ["is not a queue", "netem"]),
        ("pfifo limit abc", ["\"abc\"", "number"]),
        ("pfifo limit 0.4", ["\"0.4\" after limit", "whole number"]),
        ("pfifo_head_drop limit 2.5", ["\"2.5\"", "whole number"]),
        ("jitter delay 25ms 8ms limit 0.4", ["\"0.4\"", "whole number"]),
        ("bfifo limit 0.4", ["\"0.4\"", "a size"]),
        ("fq_codel limit 0.4", ["\"0.4\"", "whole number"]),
        ("fq_codel memory_limit 0.4", ["\"0.4\"", "a size"]),
        ("fq limit 1.5", ["\"1.5\"", "whole number"]),
        ("fq flow_limit 0.4", ["\"0.4\"", "whole number"]),
        ("codel limit 0.4", ["\"0.4\"", "whole number"]),
        ("pie limit 0.4", ["\"0.4\"", "whole number"]),
        ("fq_pie limit 0.4", ["\"0.4\"", "whole number"]),
        ("sfq limit 0.4", ["\"0.4\"", "whole number"]),
        ("choke limit 0.4 bandwidth 10mbit", ["\"0.4\"", "whole number"]),
        ("dualpi2 limit 0.4", ["\"0.4\"", "whole number"]),
        ("cake memlimit 0.4", ["\"0.4\"", "a size"]),
        ("red limit 0.4 avpkt 1000", ["\"0.4\"", "a size"]),
        ("pfifo foo", ["\"foo\"", "expected limit"]),
        ("pfifo limit 100; netem delay 1ms", ["\"netem\"", "in front"]),
        ("netem duplicate 1%; netem delay 1ms", ["duplicate", "two stages"]),
        ("", ["no queue", "netem"]),
        ("netem delay 1ms;", ["no queue", "netem"]),
        ("drr limit 1", ["\"drr\"", "expected netem"]),
        ("jitter delay 25ms 8ms order sorted", ["\"sorted\"", "clamp"]),
        ("jitter delay 25ms 8ms distribution pareto order correlated", ["distribution", "normal"]),
        ("jitter order clamp", ["delay is missing", "8ms"]),
    ] {
        let e = err(words);
        assert!(!e.contains('\n') && e.len() < 260, "{words}: one line: {e}");
        for p in parts {
            assert!(e.contains(p), "{words}: {e:?} should contain {p:?}");
        }
    }
}

#[test]
fn probabilities_are_what_tc_sends() {
    assert_eq!(
        ["0.1%", "0.1", "1%", "5", "25%", "1.0001", "100%"].map(prob),
        [4_294_967, 4_294_967, 42_949_673, 214_748_365, 0x4000_0000, 42_953_968, u32::MAX]
    );
}

#[test]
fn a_long_word_is_shortened_in_the_message() {
    let e = err(&format!("netem delay {}", "9".repeat(5_000)));
    assert!(e.contains(&format!("\"{}…\"", "9".repeat(60))) && e.len() < 260, "{e}");
}

#[test]
fn queues_in_one_another_are_counted_before_they_are_nested() {
    let chain = |n: usize| vec!["netem delay 1ms"; n].join("; ");
    assert!(parse_tc(&chain(8)).is_ok());
    for n in [9, 100_000] {
        assert_eq!(err(&chain(n)), format!("child: {n} queues in one another are more than 8: give them stages of their own"));
    }
}

#[test]
fn numbers_never_panic() {
    for w in ["", "%", "e", ".", "-", "1e", "1e999ms", "+5ms", "½ms", "5½", "0x", "99999999999999999999", "1..2ms", "--5"] {
        for form in ["netem delay W", "netem loss W", "netem limit W", "netem rate W", "netem gap W", "tbf rate W burst W limit W"] {
            let _ = parse_tc(&form.replace('W', w));
        }
    }
}

#[test]
fn distributions_by_name() {
    assert!([Dist::Uniform, Dist::Normal, Dist::Pareto, Dist::ParetoNormal].iter().all(|&d| Dist::named(d.name()) == Some(d)));
}
