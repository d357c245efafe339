//! What of the language a connection of the model can express; for the rest, the reason why not. Nothing of it is passed over in silence.

use crate::script::{Action, Call, Event, Script, ScriptError};
use crate::settings::Refusal;
use crate::wire::{Packet, TcpOption};
use tcpscape_base::Flags;

/// Looks through a script before it runs: an error where a call is unknown, a reason where the model lacks something.
pub(crate) fn check(script: &Script) -> Result<Option<Refusal>, ScriptError> {
    let mut refusal = None;
    for event in &script.events {
        let reason = match &event.action {
            Action::Inbound(p) | Action::Outbound(p) => of_packet(p),
            Action::Foreign(protocol) => Some(format!("packets of {protocol}")),
            Action::Call(call) => of_call(event, call)?,
            Action::Shell(_) | Action::Code(_) => None,
        };
        if refusal.is_none() {
            refusal = reason.map(|reason| Refusal { line: event.line, reason });
        }
    }
    Ok(refusal)
}

fn of_packet(p: &Packet) -> Option<String> {
    if p.urgent {
        return Some("urgent data".into());
    }
    if let Some(ip) = &p.ip {
        return Some(format!("the field [{ip}] of the IP header"));
    }
    let other = p.options().iter().find_map(|o| match o {
        TcpOption::Other(text) => Some(text.split_whitespace().next().unwrap_or_default()),
        _ => None,
    });
    match other {
        Some("FO" | "FOEXP") => Some("TCP Fast Open".into()),
        Some("ECN") => Some(ACCURATE_ECN.into()),
        Some(name) if name.starts_with("md5") => Some("MD5 signatures".into()),
        Some(name) if name.starts_with("mp_") || name.starts_with("add_addr") => Some("MPTCP".into()),
        Some(name) => Some(format!("the TCP option {name}")),
        None if p.flags.has(Flags::AE) => Some(ACCURATE_ECN.into()),
        None => None,
    }
}

fn of_call(event: &Event, call: &Call) -> Result<Option<String>, ScriptError> {
    let name = call.name.as_str();
    let Some(&(_, reason)) = CALLS.iter().find(|c| c.0 == name) else {
        let problem = format!("the call {name}() is unknown; use one of packetdrill's: {}", CALLS.map(|c| c.0).join(", "));
        return Err(ScriptError { line: event.line, problem });
    };
    if let Some(reason) = reason {
        return Ok(Some(reason.into()));
    }
    let text = call.args.join(", ");
    if name == "socket" && !(call.arg(1).contains("SOCK_STREAM") && ["IPPROTO_TCP", "0"].contains(&call.arg(2))) {
        let protocol = if text.contains("MPTCP") { "MPTCP".into() } else { format!("a socket of {text}") };
        return Ok(Some(protocol));
    }
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let lacking = words.filter_map(|w| WORDS.iter().find(|l| l.0 == w)).next();
    Ok(lacking.map(|l| l.1.to_string()))
}

const ACCURATE_ECN: &str = "accurate ECN: the model has it with Prague alone, on ECT(1)";
const MESSAGES: &str = "control messages beside data (msg_control)";
const FILES: &str = "data from files and pipes";
const READINESS: &str = "readiness by epoll and poll";

/// Every call of the language; with a reason where the model lacks it.
const CALLS: [(&str, Option<&str>); 31] = [
    ("socket", None),
    ("bind", None),
    ("listen", None),
    ("accept", None),
    ("accept4", None),
    ("connect", None),
    ("read", None),
    ("readv", None),
    ("recv", None),
    ("recvfrom", None),
    ("recvmsg", None),
    ("write", None),
    ("writev", None),
    ("send", None),
    ("sendto", None),
    ("sendmsg", None),
    ("setsockopt", None),
    ("getsockopt", None),
    ("fcntl", None),
    ("ioctl", None),
    ("shutdown", None),
    ("close", None),
    ("poll", Some(READINESS)),
    ("epoll_create", Some(READINESS)),
    ("epoll_ctl", Some(READINESS)),
    ("epoll_wait", Some(READINESS)),
    ("open", Some(FILES)),
    ("pipe", Some(FILES)),
    ("splice", Some(FILES)),
    ("sendfile", Some(FILES)),
    ("cap_set", Some("capabilities of the process")),
];

/// Words in arguments that stand for something the model lacks.
const WORDS: [(&str, &str); 23] = [
    ("NULL", "a bad pointer"),
    ("MSG_FASTOPEN", "TCP Fast Open"),
    ("TCP_FASTOPEN", "TCP Fast Open"),
    ("TCP_FASTOPEN_CONNECT", "TCP Fast Open"),
    ("TCP_FASTOPEN_KEY", "TCP Fast Open"),
    ("MSG_ZEROCOPY", "transmission without copying (MSG_ZEROCOPY)"),
    ("SO_ZEROCOPY", "transmission without copying (MSG_ZEROCOPY)"),
    ("MSG_ERRQUEUE", "the queue of errors of a socket"),
    ("SO_TIMESTAMPING", "timestamps of packets (SO_TIMESTAMPING)"),
    ("MSG_EOR", "ends of records (MSG_EOR)"),
    ("MSG_MORE", "data held back by the application (MSG_MORE, TCP_CORK)"),
    ("TCP_CORK", "data held back by the application (MSG_MORE, TCP_CORK)"),
    ("MSG_OOB", "urgent data"),
    ("MSG_PEEK", "looking at data without reading it (MSG_PEEK)"),
    ("TCP_INQ", MESSAGES),
    ("TCP_CM_INQ", MESSAGES),
    ("msg_control", MESSAGES),
    ("TCP_MD5SIG", "MD5 signatures"),
    ("TCP_USER_TIMEOUT", "giving up (TCP_USER_TIMEOUT)"),
    ("TCP_NOTSENT_LOWAT", "a limit to unsent data (TCP_NOTSENT_LOWAT)"),
    ("IP_TOS", "the traffic class of a socket (IP_TOS)"),
    ("IP_MTU_DISCOVER", "discovery of the path's MTU"),
    ("SO_MARK", "marks for the firewall (SO_MARK)"),
];
