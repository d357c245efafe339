//! Scripts of one rule each: what passes, what does not, what is not applicable, what is refused.

use tcpscape_base::{Kernel, Stream};
use tcpscape_drill::{run, Failure, Outcome};

const OPEN: &str = "
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <...>
  +.1 < . 1:1(0) ack 1 win 1000
   +0 accept(3, ..., ...) = 4
";

fn outcome(body: &str) -> Outcome {
    run(&format!("{OPEN}{body}"), Kernel::V6_18).unwrap_or_else(|e| panic!("{e}")).outcome
}
fn failure(body: &str) -> Failure {
    match outcome(body) {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}
fn reason(body: &str) -> String {
    match outcome(body) {
        Outcome::NotApplicable { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}
fn passes(body: &str) -> bool {
    matches!(outcome(body), Outcome::Passed)
}
fn refused(text: &str) -> String {
    run(text, Kernel::V6_18).unwrap_err().to_string()
}

/// Segments 1, 4, 5, 6 of ten are lost. 4 and 5 left together and are sent again together, with PSH; 6 alone is not: of several packets, PSH is that of the last.
#[test]
fn several_packets_that_one_stands_for_are_pushed_as_the_last_is() {
    let repair = |flags: &str| {
        format!(
            "+0 write(4, ..., 10000) = 10000
             +0 > P. 1:10001(10000) ack 1
             +.1 < . 1:1(0) ack 1 win 1000 <sack 1001:2001,nop,nop>
             +0 < . 1:1(0) ack 1 win 1000 <sack 1001:3001,nop,nop>
             +0 < . 1:1(0) ack 1 win 1000 <sack 1001:3001 8001:9001,nop,nop>
             +0 > . 1:1001(1000) ack 1
             +.1 < . 1:1(0) ack 4001 win 1000 <sack 8001:9001,nop,nop>
             +0 > {flags} 4001:7001(3000) ack 1"
        )
    };
    assert!(passes(&repair(".")));
    assert_eq!(failure(&repair("P.")).problem, "flags");
}

/// RFC 6928: ten segments; RFC 5681 §3.1: as many more as are acknowledged.
#[test]
fn a_window_leaves_and_grows() {
    let body = "+0 write(4, ..., 20000) = 20000
                +0 > P. 1:10001(10000) ack 1
                +.1 < . 1:1(0) ack 5001 win 1000
                +0 > P. 10001:20001(10000) ack 1";
    assert!(passes(body));
}

#[test]
fn the_first_difference_is_named() {
    let short = failure("+0 write(4, ..., 3000) = 3000\n+0 > P. 1:2001(2000) ack 1\n+0 > . 2001:3001(1000) ack 1");
    assert_eq!((short.line, short.problem.as_str()), (11, "flags"));
    assert_eq!((short.expected.as_str(), short.actual.as_str()), ("> . 2001:3001(1000) ack 1", "> P. 2001:3001(1000) ack 1"));
    let early = failure("+0 write(4, ..., 1000) = 1000\n+.05 > P. 1:1001(1000) ack 1");
    assert_eq!(early.problem, "time, 50.0 ms early");
    let silent = failure("+0 > . 1:1(0) ack 1");
    assert_eq!((silent.problem.as_str(), silent.actual.as_str()), ("no packet left", "nothing"));
    let call = failure("+0 write(4, ..., 1000) = 999");
    assert_eq!((call.expected.as_str(), call.actual.as_str()), ("write(4, ..., 1000) = 999", "returns 1000"));
}

#[test]
fn a_read_blocks_until_data_come() {
    let body = |ends: &str| format!("+0...{ends} read(4, ..., 1000) = 500\n+.05 < P. 1:501(500) ack 1 win 1000");
    assert!(passes(&body("0.05")));
    assert_eq!(failure(&body("0.08")).actual, "returns 30.0 ms early");
    assert_eq!(failure("+0 read(4, ..., 1000) = 500").actual, "the call blocks");
}

/// RFC 9293 §3.6 (a FIN behind the data); §3.10.4 with RFC 1122 §4.2.2.13 (a reset for data that nobody reads).
#[test]
fn a_close_is_a_fin_or_a_reset() {
    let body = "+0 write(4, ..., 500) = 500
                +0 > P. 1:501(500) ack 1
                +0 close(4) = 0
                +0 > F. 501:501(0) ack 1
                +.1 < F. 1:1(0) ack 502 win 1000
                +0 > . 502:502(0) ack 2";
    assert!(passes(body));
    assert!(passes("+0 < . 1:1001(1000) ack 1 win 1000\n+0 > . 1:1(0) ack 1001\n+0 close(4) = 0\n+0 > R. 1:1(0) ack 1001"));
}

#[test]
fn what_the_model_lacks_is_not_applicable() {
    assert_eq!(reason("+0 < U. 1:2(1) ack 1 win 1000 urg 1"), "urgent data");
    assert_eq!(reason("+0 sendto(4, ..., 10, MSG_FASTOPEN, ..., ...) = 10"), "TCP Fast Open");
    assert_eq!(reason("+0 `iptables -A INPUT -j DROP`"), "a command of the shell that sets no sysctl: iptables -A INPUT -j DROP");
    assert_eq!(reason("+0 `sysctl -q net.ipv4.tcp_recovery=0`"), "tcp_recovery=0: losses are found by RACK alone");
    assert_eq!(reason("+0 < icmp unreachable frag_needed mtu 1200 [1:1001(1000)]"), "packets of icmp");
}

#[test]
fn a_bad_script_is_refused_in_one_line() {
    for (text, error) in [
        ("0 frobnicate(3) = 0", "1: the call frobnicate() is unknown"),
        ("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 < X 0:0(0)", "2: 'X' are no flags of TCP"),
        ("0 < S 0:5(0) win 1", "1: the segment 0:5 does not have 0 bytes; make end = begin + length"),
        ("0 `sysctl", "1: the command of the shell is not closed; add `"),
        ("+1e9 listen(3, 1) = 0", "1: expected '(' behind 'e9'"),
        ("0 < S 0:0(0) win 1 <mss abc>", "1: the option 'mss abc' cannot be read"),
        ("--tolerance_usecs=soon\n0 listen(3, 1) = 0", "1: --tolerance_usecs=soon is no number of µs"),
        ("0 listen(3, 1 = 0", "1: the call is not closed; add )"),
    ] {
        assert!(refused(text).starts_with(error), "{text}: {}", refused(text));
        assert!(!refused(text).contains('\n') && refused(text).contains(';'), "{text}");
    }
}

/// Whatever the text, the answer is a report or one line; the same text gives the same report.
#[test]
fn damaged_scripts_end() {
    let body = "+0 write(4, ..., 9000) = 9000
                +0 > P. 1:9001(9000) ack 1
                +.1 < . 1:1(0) ack 1 win 9 <sack 1001:2001,nop,nop>
                +.2 close(4) = 0
                * > F. 9001:9001(0) ack 1";
    let script: Vec<char> = format!("{OPEN}{body}").chars().collect();
    let letters: Vec<char> = "0123456789.:()<>+*~`,=FSRP -\n{}[]".chars().collect();
    let mut random = Stream::new(7, "damage");
    let mut draw = |most: usize| (random.next_u64() % most as u64) as usize;
    for _ in 0..2_000 {
        let mut text = script.clone();
        for _ in 0..=draw(3) {
            let (at, letter) = (draw(text.len()), letters[draw(letters.len())]);
            match draw(3) {
                0 => drop(text.remove(at)),
                1 => text.insert(at, letter),
                _ => text[at] = letter,
            }
        }
        let text: String = text.into_iter().collect();
        let answer = || run(&text, Kernel::V6_18).map(|r| format!("{r:?}")).map_err(|e| e.to_string());
        let first = answer();
        assert_eq!(first, answer());
        assert!(first.map_or_else(|e| !e.contains('\n'), |_| true), "{text}");
    }
}
