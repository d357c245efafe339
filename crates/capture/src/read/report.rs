//! What was read of a file: counts of packets and of what was passed over, and sentences for the user.

use super::cutter::Cutter;
use super::decode::Decoder;
use super::record::{Interface, Record};
use super::Skipped;
use crate::packet::Packet;
use serde::Serialize;
use std::collections::BTreeMap;
use tcpscape_base::Time;

/// Steps back of the capture's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClockSteps {
    /// How many.
    pub count: u64,
    /// The longest, ns.
    pub longest_ns: u64,
    /// Packets with a time slightly before that of the packet before them.
    pub disordered: u64,
}

/// An interface of the capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterfaceReport {
    /// Its name; empty where the file has none.
    pub name: String,
    /// Its link type in words.
    pub link_type: String,
    /// Most bytes captured of a packet; 0 is all.
    pub snap_length: u32,
    /// Its packets.
    pub frames: u64,
    /// Packets that the capture lost, by its own count.
    pub drops: u64,
}

/// What was read of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadReport {
    /// `pcap` or `pcapng`.
    pub format: String,
    /// Packets in the file, as Wireshark numbers them.
    pub frames: u64,
    /// TCP packets that were read.
    pub packets: u64,
    /// Bytes of the file that were read, unpacked.
    pub bytes: u64,
    /// Packets that were not read, by reason: `not_ip`, `not_tcp`, `fragment`, `cut`, `damaged`, `no_time`, `link_type`.
    pub skipped: BTreeMap<&'static str, u64>,
    /// TCP packets whose options the snap length cut.
    pub options_cut: u64,
    /// First fragments, whose length is that of the fragment.
    pub fragmented: u64,
    /// IP packets whose length field was 0, as a sender's segmentation offload leaves it.
    pub without_length: u64,
    /// The first interfaces that have packets, at most 64.
    pub interfaces: Vec<InterfaceReport>,
    /// Steps of the clock.
    pub clock_steps: ClockSteps,
    /// Time of the first TCP packet, ns since the epoch.
    pub first_ns: u64,
    /// Time of the last.
    pub last_ns: u64,
    /// Whether the file was read to its end.
    pub is_whole: bool,
    /// What the user should know, whole sentences.
    pub notes: Vec<String>,
}

/// Counts while a file is read.
#[derive(Debug, Default)]
pub struct Tally {
    frames: u64,
    packets: u64,
    skipped: [u64; Skipped::ALL.len()],
    options_cut: u64,
    first: Option<Time>,
    last: Time,
    decoder: Decoder,
}

impl Tally {
    /// Has a packet of the file taken apart; hands it on if it is TCP.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>, sink: &mut impl FnMut(&Packet)) {
        self.frames += 1;
        match self.decoder.packet(self.frames, record) {
            Ok(packet) => {
                self.packets += 1;
                self.options_cut += u64::from(packet.options.is_cut);
                self.first = Some(self.first.map_or(packet.at, |first| first.min(packet.at)));
                self.last = self.last.max(packet.at);
                sink(&packet);
            }
            Err(reason) => self.skipped[reason as usize] += 1,
        }
    }

    /// The report of these records.
    pub fn finish(self, records: Cutter) -> ReadReport {
        let Cutter { container, bytes, end, .. } = records;
        let (format, interfaces) = (container.format(), container.interfaces());
        let skipped: BTreeMap<_, _> =
            Skipped::ALL.iter().map(|&(reason, name)| (name, self.skipped[reason as usize])).filter(|s| s.1 > 0).collect();
        let mut clock_steps = ClockSteps::default();
        for interface in interfaces {
            clock_steps.count += interface.clock.steps;
            clock_steps.longest_ns = clock_steps.longest_ns.max(interface.clock.longest);
            clock_steps.disordered += interface.clock.disordered;
        }
        let used = interfaces.iter().filter(|i| i.frames > 0 || i.drops > 0).take(MOST_REPORTED);
        let listed = used
            .map(|i| InterfaceReport {
                name: i.name.clone(),
                link_type: i.link.name(),
                snap_length: i.snap_length,
                frames: i.frames,
                drops: i.drops,
            })
            .collect();
        let mut report = ReadReport {
            format: format.to_owned(),
            frames: self.frames,
            packets: self.packets,
            bytes,
            skipped,
            options_cut: self.options_cut,
            fragmented: self.decoder.fragmented,
            without_length: self.decoder.without_length,
            interfaces: listed,
            clock_steps,
            first_ns: self.first.unwrap_or_default().0,
            last_ns: self.last.0,
            is_whole: end.is_none(),
            notes: Vec::new(),
        };
        report.notes = notes(&report, interfaces, end);
        report
    }
}

/// Interfaces that the report lists.
const MOST_REPORTED: usize = 64;

fn notes(report: &ReadReport, interfaces: &[Interface], end: Option<String>) -> Vec<String> {
    let count = |name: &str| report.skipped.get(name).copied().unwrap_or(0);
    let mut notes = Vec::new();
    if let Some(why) = end {
        notes.push(format!("The capture was not read to its end: {why}."));
    }
    let drops: u64 = interfaces.iter().fold(0, |sum, i| sum.saturating_add(i.drops));
    if drops > 0 {
        notes.push(format!(
            "Packets that the capture itself lost, by its own count: {drops}. What it does not show was not necessarily lost on the path."
        ));
    }
    if report.clock_steps.count > 0 {
        let longest = report.clock_steps.longest_ns as f64 * 1e-9;
        let times = if report.clock_steps.count == 1 { "once".to_owned() } else { format!("{} times", report.clock_steps.count) };
        notes.push(format!(
            "The capture's clock was set back {times}, by up to {longest:.3} s; later times were moved on, so that none runs backwards."
        ));
    }
    let sentences = [
        (
            report.options_cut,
            "TCP packets cut within their options, so that SACK blocks and timestamps may be missing (capture at least 128 bytes of each)",
        ),
        (count("cut"), "Packets cut before the end of the TCP header and not read (capture at least 128 bytes of each)"),
        (report.fragmented + count("fragment"), "Fragments of IP packets, of which the first of each was read"),
        (count("damaged"), "Packets with lengths that contradict each other, not read"),
        (count("no_time"), "Packets without a time (simple packet blocks), not read"),
        (count("link_type"), "Packets with a link type that is not read"),
    ];
    notes.extend(sentences.iter().filter(|s| s.0 > 0).map(|(n, text)| format!("{text}: {n}.")));
    notes
}
