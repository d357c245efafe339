//! Headers: a segment of a flow as the Ethernet frame that would carry it.
//!
//! Source: RFC 791 §3.1, RFC 1071 (checksum), RFC 9293 §3.1, RFC 7323 §2.2 and appendix A, RFC 2018 §2 and §3. Options stand as Linux
//! writes them: on a SYN MSS, SACK-permitted, timestamps, NOP, window scale; later NOP NOP timestamps, then NOP NOP SACK.

use tcpscape_base::wire::sum;
use tcpscape_base::{Flags, Segment, Stream, ETH_HEADER};

/// Bytes of IP and TCP header with timestamps.
pub const FULL_HEADERS: u32 = 52;
/// Largest frame: an IP packet of 65,535 bytes.
pub const MOST: u32 = 65_535 + ETH_HEADER;

const IP_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
const PROTO_TCP: u8 = 6;
/// `net.ipv4.ip_default_ttl`.
const TTL: u8 = 64;
/// The sender's own window scale: what Linux takes for the default `tcp_rmem`. The window it advertises does not change.
const SENDER_WSCALE: u8 = 7;
/// Locally administered addresses.
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
const SENDER: [u8; 4] = [10, 0, 0, 1];
/// The port that every receiver listens on, and the first port of the senders: outside of what dissectors claim.
const RECEIVER_PORT: u16 = 5_001;
const SENDER_PORT: u16 = 50_000;
/// So many flows go to one receiver's address; the next go to another address, from the same ports.
const PORTS: u32 = 5_000;

/// One flow's addresses and what changes with its packets.
pub struct Connection {
    /// Initial sequence numbers of sender and receiver.
    pub isn: [u32; 2],
    wscale: [u8; 2],
    receiver: [u8; 4],
    port: u16,
    mss: u16,
    /// IP identification of the sender's next packet.
    ident: u16,
}

impl Connection {
    /// Flow `flow` of the trial with this seed.
    pub fn new(seed: u64, flow: u32, wscale: u8, mtu: u32) -> Connection {
        let mut stream = Stream::new(seed, &format!("capture/{flow}"));
        let isn = stream.next_u64();
        Connection {
            isn: [isn as u32, (isn >> 32) as u32],
            wscale: [SENDER_WSCALE, wscale],
            receiver: [10, 0, 1, 1 + (flow / PORTS) as u8],
            port: SENDER_PORT + (flow % PORTS) as u16,
            mss: (mtu.saturating_sub((IP_HEADER + TCP_HEADER) as u32)) as u16,
            ident: stream.next_u64() as u16,
        }
    }

    /// Writes the frame that carries `s`, at most an IP packet long, over `out`.
    pub fn frame(&mut self, s: &Segment, received: bool, out: &mut Vec<u8>) {
        out.clear();
        let (src, dst) = if received { (1, 0) } else { (0, 1) };
        out.extend_from_slice(&MACS[dst]);
        out.extend_from_slice(&MACS[src]);
        out.extend_from_slice(&[8, 0]); // IPv4
        let ip = out.len();
        out.resize(ip + IP_HEADER, 0);
        self.tcp(s, received, out);
        self.options(s, received, out);
        let tcp = ip + IP_HEADER;
        let header = out.len() - tcp;
        out[tcp + 12] |= (header as u8 / 4) << 4;
        out.resize(out.len() + s.len as usize, 0);
        self.ip(received, &mut out[ip..]);
        let length = (out.len() - tcp) as u16;
        let pseudo = [&out[ip + 12..tcp], &[0, PROTO_TCP], &length.to_be_bytes()].iter().fold(0, |s, part| sum(part, s));
        let check = !sum(&out[tcp..tcp + header], pseudo); // the payload is zeros
        out[tcp + 16..tcp + 18].copy_from_slice(&check.to_be_bytes());
    }

    fn ip(&mut self, received: bool, ip: &mut [u8]) {
        ip[0] = 0x45;
        let length = ip.len() as u16;
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        if !received {
            ip[4..6].copy_from_slice(&self.ident.to_be_bytes());
            self.ident = self.ident.wrapping_add(1);
        }
        ip[6] = 0x40; // do not fragment
        ip[8] = TTL;
        ip[9] = PROTO_TCP;
        let (from, to) = if received { (self.receiver, SENDER) } else { (SENDER, self.receiver) };
        ip[12..16].copy_from_slice(&from);
        ip[16..20].copy_from_slice(&to);
        let check = !sum(&ip[..IP_HEADER], 0);
        ip[10..12].copy_from_slice(&check.to_be_bytes());
    }

    fn tcp(&self, s: &Segment, received: bool, out: &mut Vec<u8>) {
        let me = usize::from(received);
        let ports = if received { [RECEIVER_PORT, self.port] } else { [self.port, RECEIVER_PORT] };
        let ack = if s.flags.has(Flags::ACK) { self.isn[1 - me].wrapping_add(s.ack as u32) } else { 0 };
        // RFC 7323 §2.2: the window of a SYN is never scaled.
        let shift = if s.flags.has(Flags::SYN) { 0 } else { self.wscale[me] };
        out.extend(ports.iter().flat_map(|p| p.to_be_bytes()));
        out.extend_from_slice(&self.isn[me].wrapping_add(s.seq as u32).to_be_bytes());
        out.extend_from_slice(&ack.to_be_bytes());
        // The length comes later; AE stands beside it (RFC 9768 §3.1.1).
        out.extend_from_slice(&[u8::from(s.flags.has(Flags::AE)), s.flags.0 & !Flags::AE.0]);
        out.extend_from_slice(&((s.wnd >> shift).min(0xffff) as u16).to_be_bytes());
        out.extend_from_slice(&[0; 4]); // checksum, urgent pointer
    }

    fn options(&self, s: &Segment, received: bool, out: &mut Vec<u8>) {
        let me = usize::from(received);
        let syn = s.flags.has(Flags::SYN);
        if syn {
            out.extend_from_slice(&[2, 4]);
            out.extend_from_slice(&self.mss.to_be_bytes());
        }
        // A reset for a closed socket carries none; clocks here never show 0.
        if s.tsval != 0 {
            out.extend_from_slice(if syn { &[4, 2, 8, 10] } else { &[1, 1, 8, 10] });
            out.extend_from_slice(&s.tsval.to_be_bytes());
            out.extend_from_slice(&s.tsecr.to_be_bytes());
        }
        if syn {
            out.extend_from_slice(&[1, 3, 3, self.wscale[me]]);
        }
        if s.nsack > 0 {
            out.extend_from_slice(&[1, 1, 5, 2 + 8 * s.nsack]);
            for (from, to) in s.sacks() {
                for edge in [from, to] {
                    out.extend_from_slice(&self.isn[1 - me].wrapping_add(edge as u32).to_be_bytes());
                }
            }
        }
    }
}
