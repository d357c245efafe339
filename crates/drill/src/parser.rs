//! The language of packetdrill's scripts → [`Script`].
//!
//! Source: packetdrill's published syntax reference and the paper (Cardwell et al., USENIX ATC 2013). How it differs: commands of the shell are
//! read for the settings that they make (`settings.rs`) and never carried out.

use crate::lexer::Cursor;
use crate::script::{number, Action, Call, Event, Micros, Script, ScriptError, When};
use crate::wire::{flag, Packet, TcpOption};
use tcpscape_base::{Ecn, Flags};

/// Reads a script.
pub fn parse(text: &str) -> Result<Script, ScriptError> {
    let mut c = Cursor::new(text);
    let mut script = Script::default();
    loop {
        c.skip_space()?;
        if c.peek().is_none() {
            return Ok(script);
        }
        if script.events.is_empty() && c.eat("--") {
            script.options.push(option(&mut c));
        } else {
            script.events.push(event(&mut c)?);
        }
    }
}

/// `--key=value`.
fn option(c: &mut Cursor<'_>) -> (usize, String, String) {
    let line = c.line();
    let text = c.take_while(|c| c != '\n');
    let text = text.split("//").next().unwrap_or_default().trim();
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    (line, key.trim().into(), value.trim().into())
}

fn event(c: &mut Cursor<'_>) -> Result<Event, ScriptError> {
    let line = c.line();
    if c.peek() == Some('`') {
        return Ok(Event { line, when: When::Untimed, ends: None, action: shell(c)? });
    }
    let when = when(c)?;
    let mut ends = None;
    c.skip_blanks();
    if c.eat("...") {
        c.skip_blanks();
        ends = Some(c.seconds()?);
    }
    c.skip_space()?;
    let line = c.line();
    Ok(Event { line, when, ends, action: action(c)? })
}

fn when(c: &mut Cursor<'_>) -> Result<When, ScriptError> {
    if c.eat("*") {
        return Ok(When::Any);
    }
    let is_relative = c.eat("+");
    c.skip_blanks();
    if !c.at_time() {
        return Err(c.refuse(format!("'{}' is no event; begin it with a time: +0.1, 0.1 or *", c.glimpse())));
    }
    let from = c.seconds()?;
    let to = upper_end(c)?;
    Ok(if is_relative { When::After(from, to) } else { When::At(from, to) })
}

/// `~+0.2`.
fn upper_end(c: &mut Cursor<'_>) -> Result<Option<Micros>, ScriptError> {
    c.skip_blanks();
    if !c.eat("~") {
        return Ok(None);
    }
    c.skip_blanks();
    c.eat("+");
    Ok(Some(c.seconds()?))
}

fn action(c: &mut Cursor<'_>) -> Result<Action, ScriptError> {
    if c.peek() == Some('`') {
        return shell(c);
    }
    if c.eat("%{") {
        return Ok(Action::Code(c.take_until("}%", "the block of code")?.to_string()));
    }
    if c.eat("<") {
        return packet(c, Action::Inbound);
    }
    if c.eat(">") {
        return packet(c, Action::Outbound);
    }
    call(c).map(Action::Call)
}

fn shell(c: &mut Cursor<'_>) -> Result<Action, ScriptError> {
    c.eat("`");
    Ok(Action::Shell(c.take_until("`", "the command of the shell")?.to_string()))
}

// ---- packets ----------------------------------------------------------------------------------------------------------

fn packet(c: &mut Cursor<'_>, make: fn(Packet) -> Action) -> Result<Action, ScriptError> {
    let mut p = Packet::default();
    c.skip_blanks();
    for (open, close) in [("[", "]"), ("(", ")")] {
        if c.eat(open) {
            let text = c.take_until(close, "what is said of the IP header")?;
            ip(text, &mut p);
            c.skip_blanks();
        }
    }
    let start = c.position();
    let word = c.take_while(|ch| !ch.is_whitespace());
    if FOREIGN.contains(&word.trim_end_matches(':')) {
        c.take_while(|ch| ch != '\n');
        return Ok(Action::Foreign(c.since(start).split_whitespace().next().unwrap_or_default().to_string()));
    }
    read_flags(c, word, &mut p)?;
    p.seq = c.number("the sequence number")?;
    c.expect(":", "behind the sequence number")?;
    let end = c.number("the end of the segment")?;
    c.expect("(", "behind the end of the segment")?;
    p.len = u32::try_from(c.number("the length")?).ok().filter(|&n| n <= MOST_BYTES).ok_or_else(|| c.refuse(LENGTH.into()))?;
    c.expect(")", "behind the length")?;
    if end != p.seq + u64::from(p.len) {
        return Err(c.refuse(format!("the segment {}:{end} does not have {} bytes; make end = begin + length", p.seq, p.len)));
    }
    header(c, &mut p)?;
    Ok(make(p))
}

/// What may follow the length: `ack`, `win`, `urg`, options.
fn header(c: &mut Cursor<'_>, p: &mut Packet) -> Result<(), ScriptError> {
    p.options = Some(Vec::new());
    loop {
        c.skip_blanks();
        if c.eat("ack ") {
            p.ack = Some(c.number("ack")?);
        } else if c.eat("win ") {
            p.win =
                Some(u32::try_from(c.number("win")?).map_err(|_| c.refuse("win must fit 32 bits; write the window of the header".into()))?);
        } else if c.eat("urg ") {
            c.number("urg")?;
            p.urgent = true;
        } else if c.peek() == Some('<') {
            c.next();
            let text = c.take_until(">", "the list of options")?;
            p.options = options(text).map_err(|problem| c.refuse(problem))?;
            return Ok(());
        } else {
            return Ok(());
        }
    }
}

fn read_flags(c: &Cursor<'_>, word: &str, p: &mut Packet) -> Result<(), ScriptError> {
    if word == "-" {
        return Ok(());
    }
    for letter in word.chars() {
        match flag(letter) {
            Some(f) => p.flags = p.flags.with(f),
            None if letter == 'U' => p.urgent = true,
            None if ('0'..='7').contains(&letter) => p.flags = p.flags.with(Flags::of_ace(letter as u8 - b'0')),
            None => return Err(c.refuse(format!("'{word}' are no flags of TCP; use letters of FSRPEWAU., a digit for ACE, or - for none"))),
        }
    }
    Ok(())
}

/// What is said of the IP header.
fn ip(text: &str, p: &mut Packet) {
    for word in text.split(',').map(str::trim) {
        match word {
            "noecn" => p.ecn = Some(Ecn::NotEct),
            "ect0" => p.ecn = Some(Ecn::Ect0),
            "ect1" => p.ecn = Some(Ecn::Ect1),
            "ce" => p.ecn = Some(Ecn::Ce),
            other => p.ip = Some(other.to_string()),
        }
    }
}

/// The options between `<` and `>`; none for `...`.
fn options(text: &str) -> Result<Option<Vec<TcpOption>>, String> {
    if text.trim() == "..." {
        return Ok(None);
    }
    let mut options = Vec::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let words: Vec<&str> = item.split_whitespace().collect();
        let bad = || format!("the option '{item}' cannot be read; write it as in <mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 7>");
        let number = |i: usize| words.get(i).and_then(|w| number(w)).and_then(|n| u32::try_from(n).ok()).ok_or_else(bad);
        match words[0] {
            "nop" | "eol" => {}
            "mss" => options.push(TcpOption::Mss(number(1)?)),
            "sackOK" => options.push(TcpOption::SackOk),
            "wscale" => options.push(TcpOption::WindowScale(u8::try_from(number(1)?).map_err(|_| bad())?)),
            "TS" => options.push(TcpOption::Timestamps { val: number(2)?, ecr: number(4)? }),
            "sack" => options.push(TcpOption::Sacks(blocks(&words[1..]).ok_or_else(bad)?)),
            _ => options.push(TcpOption::Other(words.join(" "))),
        }
    }
    Ok(Some(options))
}

fn blocks(words: &[&str]) -> Option<Vec<(u64, u64)>> {
    words.iter().map(|w| w.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))).filter(|b| b.0 < b.1)).collect()
}

// ---- system calls -----------------------------------------------------------------------------------------------------

fn call(c: &mut Cursor<'_>) -> Result<Call, ScriptError> {
    let start = c.position();
    let name = c.take_while(|ch| ch.is_ascii_alphanumeric() || ch == '_').to_string();
    if name.is_empty() {
        return Err(
            c.refuse(format!("'{}' is neither a packet (<, >), a call, `a command` nor %{{ code }}%; write one of these", c.glimpse()))
        );
    }
    c.expect("(", &format!("behind '{name}'"))?;
    let args = arguments(c)?;
    c.expect("=", &format!("behind the arguments of {name}()"))?;
    c.skip_blanks();
    let word = c.take_while(|ch| ch.is_ascii_alphanumeric() || "-._".contains(ch));
    let returns = match word {
        "..." => None,
        _ => Some(number(word).ok_or_else(|| c.refuse(format!("{name}() cannot return '{word}'; write a number or ...")))?),
    };
    c.skip_blanks();
    let errno = c.take_while(|ch| ch.is_ascii_alphanumeric());
    let errno = Some(errno.to_string()).filter(|e| !e.is_empty());
    c.skip_blanks();
    let text = c.since(start).split_whitespace().collect::<Vec<_>>().join(" ");
    if c.eat("(") {
        c.take_until(")", "the note")?;
    }
    Ok(Call { name, args, returns, errno, text })
}

/// Arguments up to the closing parenthesis, cut at the commas that stand in no bracket.
fn arguments(c: &mut Cursor<'_>) -> Result<Vec<String>, ScriptError> {
    let (mut args, mut depth, mut arg) = (Vec::new(), 0u32, String::new());
    loop {
        if c.rest().starts_with("//") {
            c.take_while(|ch| ch != '\n');
        }
        let Some(ch) = c.next() else { return Err(c.refuse("the call is not closed; add )".into())) };
        match ch {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => break,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if ch == ',' && depth == 0 {
            args.push(std::mem::take(&mut arg));
        } else {
            arg.push(ch);
            if ch == '"' {
                arg.push_str(c.take_until("\"", "the string")?);
                arg.push('"');
            }
        }
    }
    if !arg.trim().is_empty() || !args.is_empty() {
        args.push(arg);
    }
    Ok(args.iter().map(|a| a.trim().to_string()).collect())
}

/// First words of packets that are not TCP straight over IP.
const FOREIGN: [&str; 8] = ["icmp", "udp", "ipv4", "ipv6", "gre", "mpls", "sctp", "psp"];
/// Largest payload of a packet, bytes.
const MOST_BYTES: u32 = 1 << 20;
const LENGTH: &str = "the length must be up to 1048576 bytes; cut the packet";
