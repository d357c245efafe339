//! The capture, read by tshark where it is installed.

use super::frames::Build;
use super::*;
use crate::link::capture::{write_pcapng, About};
use std::process::Command;

const COMMENT: u16 = 1;

/// A packet block: interface, time, length, bytes, comment.
struct Block {
    interface: u32,
    at: u64,
    length: u32,
    bytes: Vec<u8>,
    comment: String,
}

fn word(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().unwrap())
}

fn blocks(mut file: &[u8]) -> Vec<Block> {
    let mut all = Vec::new();
    while !file.is_empty() {
        let len = word(file, 4) as usize;
        let b = &file[8..len - 4];
        if word(file, 0) == 6 {
            let kept = word(b, 12) as usize;
            let mut options = &b[20 + kept.next_multiple_of(4)..];
            let mut comment = String::new();
            while options.len() > 4 {
                let (code, len) = (word(options, 0) as u16, (word(options, 0) >> 16) as usize);
                if code == COMMENT {
                    comment = String::from_utf8(options[4..4 + len].to_vec()).unwrap();
                }
                options = &options[4 + len.next_multiple_of(4)..];
            }
            let at = u64::from(word(b, 4)) << 32 | u64::from(word(b, 8));
            all.push(Block { interface: word(b, 0), at, length: word(b, 16), bytes: b[20..20 + kept].to_vec(), comment });
        }
        file = &file[len..];
    }
    all
}

/// A link that has carried super-packets over a lossy path, its capture, and what left forward.
fn captured(budget: u64) -> (Link, Vec<u8>, Vec<Vec<u8>>) {
    let options = LinkOptions { capture: Some(budget), seed: 5, ..LinkOptions::default() };
    let words = ["netem delay 25ms loss 10% ecn corrupt 5%", "tbf rate 50mbit burst 6056 limit 30000", "netem duplicate 20%"];
    let mut link = link(&words, &options);
    for n in 0..20u64 {
        let b = Build { ecn: if n % 2 == 0 { 2 } else { 0 }, ..Build::full(12) };
        link.arrive(Time(n * MS), Direction::Forward, &b.frame());
        link.arrive(Time(n * MS + 7), Direction::Reverse, &Build { payload: 0, ..Build::default() }.frame());
    }
    let left = departures(&mut link, END).into_iter().filter(|d| d.0 == Direction::Forward).map(|d| d.2).collect();
    let mut file = Vec::new();
    let about = About { program: "test", comment: "seed 5", zero: 1_700_000_000_000_000_000 };
    write_pcapng(&mut file, &link, &about).expect("writing to memory");
    (link, file, left)
}

#[test]
fn each_packet_is_seen_where_it_comes_and_where_it_leaves() {
    let (link, file, left) = captured(u64::MAX);
    let blocks = blocks(&file);
    let (t, r) = (link.totals(Direction::Forward), link.totals(Direction::Reverse));
    let at = |interface: u32| blocks.iter().filter(|b| b.interface == interface).count() as u64;
    assert_eq!((at(0), at(1)), (t.packets_in + r.packets_out, t.packets_out + r.packets_in));
    assert!(blocks.windows(2).all(|w| w[0].at <= w[1].at));
    let count = |text: &str| blocks.iter().filter(|b| b.comment.contains(text)).count() as u64;
    assert_eq!(count("dropped: netem loss at forward stage 0"), t.drops.loss);
    assert_eq!(count("dropped: tbf limit at forward stage 1"), t.drops.limit);
    assert!(t.drops.loss > 5 && t.drops.limit > 5, "{:?}", t.drops);
    // One comment tells of both copies.
    let counts = [count("marked CE"), count("; copy: "), count("a bit flipped")];
    assert!(counts.iter().all(|c| *c >= 4), "{counts:?}");
    let plain = blocks.iter().find(|b| b.comment.starts_with("reverse packet 3: ")).expect("a packet");
    assert_eq!((plain.interface, plain.comment.as_str()), (1, "reverse packet 3: due +0.000 ms, sent +0.000 ms"));
    // The bytes are those that left, marks and flipped bits with them.
    let seen: Vec<&[u8]> = blocks.iter().filter(|b| b.interface == 1 && b.length > 66).map(|b| &b.bytes[..]).collect();
    assert_eq!(seen, left.iter().map(|f| &f[VNET_HEADER..]).collect::<Vec<_>>());
}

#[test]
fn past_the_budget_headers_are_kept() {
    let (_, whole, _) = captured(u64::MAX);
    let (_, some, _) = captured(100_000);
    let (whole, some) = (blocks(&whole), blocks(&some));
    assert_eq!(whole.len(), some.len());
    let cut = some.iter().filter(|b| b.bytes.len() < b.length as usize).count();
    assert!(cut > 50 && cut < some.len() - 50, "{cut} of {}", some.len());
    for (a, b) in whole.iter().zip(&some) {
        assert_eq!((a.at, a.length, &a.comment), (b.at, b.length, &b.comment));
        // A checksum that was computed for a flipped bit is not known without the payload.
        if !a.comment.contains("flipped") && a.interface == 0 {
            assert_eq!(a.bytes[..b.bytes.len()], b.bytes);
        }
    }
}

/// tshark reads every packet, its comment, and the times of both interfaces.
#[test]
fn tshark_reads_the_capture() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return tcpscape_base::skip("tshark is not installed (apt install tshark)");
    }
    let file = &captured(u64::MAX).1[..];
    let path = std::env::temp_dir().join(format!("tcpscape-capture-{}.pcapng", std::process::id()));
    std::fs::write(&path, file).expect("a file");
    let fields = ["frame.interface_id", "frame.time_epoch", "frame.comment", "ip.len", "tcp.seq_raw"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-n").arg("-r").arg(&path).args(["-T", "fields", "-E", "separator=|"]);
    tshark.args(fields.iter().flat_map(|f| ["-e", *f]));
    let out = tshark.output().expect("tshark runs");
    std::fs::remove_file(&path).expect("a file");
    let text = String::from_utf8(out.stdout).expect("text");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('|').collect()).collect();
    let blocks = blocks(file);
    assert_eq!(rows.len(), blocks.len());
    for (row, block) in rows.iter().zip(&blocks) {
        assert_eq!((row[0], row[2]), (block.interface.to_string().as_str(), block.comment.as_str()));
        assert_eq!(row[1].replace('.', ""), block.at.to_string());
        if !block.comment.contains("flipped") && block.interface == 0 {
            assert_eq!(row[3], (block.length - 14).to_string());
        }
    }
}
