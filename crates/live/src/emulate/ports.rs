//! Whether a server listens: the sockets of a network namespace. Linux: proc_pid_net(5), `net/tcp` and `net/udp`.

use std::collections::BTreeSet;
use std::fs;
use std::io;

/// The tables, and the state in which a socket of the table waits for clients: LISTEN, and of UDP the state of a socket that is not connected.
const TABLES: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];

/// The ports at which sockets of the calling thread's network namespace wait for clients, each with its table.
pub fn listening() -> io::Result<BTreeSet<(&'static str, u16)>> {
    let mut ports = BTreeSet::new();
    for (table, state) in TABLES {
        match fs::read_to_string(format!("/proc/thread-self/net/{table}")) {
            Ok(text) => ports.extend(parse(&text, state).map(|port| (table, port))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {} // a kernel without IPv6
            Err(e) => return Err(e),
        }
    }
    Ok(ports)
}

fn parse<'a>(table: &'a str, state: &'a str) -> impl Iterator<Item = u16> + 'a {
    table.lines().skip(1).filter_map(move |line| {
        let mut words = line.split_whitespace().skip(1);
        let port = words.next()?.rsplit_once(':')?.1;
        let is_waiting = words.nth(1)? == state;
        is_waiting.then(|| u16::from_str_radix(port, 16).ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_from_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
                     0: 00000000:1F40 00000000:0000 0A 00000000:00000000\n   \
                     1: 0100007F:0016 0100007F:9999 01 00000000:00000000\n";
        assert_eq!(parse(table, "0A").collect::<Vec<_>>(), [8000]);
        assert_eq!(parse("", "0A").count(), 0);
    }

    #[test]
    fn a_socket_of_this_process_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(listening().unwrap().contains(&("tcp", listener.local_addr().unwrap().port())));
    }
}
