//! What the programs of a guest wait for when the command's time is over: a deadlock has a name then. Source: proc_pid_wchan(5), proc_pid_cmdline(5).

use std::fs;

/// Most programs that are named, and most characters of a command line.
const MOST: usize = 4;
const LENGTH: usize = 60;
/// A part of the name of the kernel's function in which a process waits → what it waits for.
const WAITS: [(&str, &str); 8] = [
    ("futex", "a lock or another thread"),
    ("nanosleep", "a time"),
    ("epoll", "descriptors"),
    ("ep_", "descriptors"),
    ("poll", "descriptors"),
    ("select", "descriptors"),
    ("pipe", "a pipe"),
    ("wait", "a process or data"),
];

/// What each program but those of this process's own executable waits for, as a sentence; None where there is none. Only where all processes are
/// the emulation's: in a guest.
pub fn programs() -> Option<String> {
    let numbers = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut numbers: Vec<u32> = numbers.filter(|&number| number > 1).collect();
    numbers.sort_unstable();
    let named: Vec<String> = numbers.into_iter().filter_map(of).collect();
    let more = named.len().saturating_sub(MOST);
    let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("when the time was over, {}{rest}", named[..named.len().min(MOST)].join(", ")))
}

/// `"python3 client.py" waited for a lock or another thread`; None of what is not the user's.
fn of(number: u32) -> Option<String> {
    let read = |file: &str| fs::read_to_string(format!("/proc/{number}/{file}")).ok();
    let exe = |number: &str| fs::read_link(format!("/proc/{number}/exe")).ok();
    let words = read("cmdline").filter(|words| !words.is_empty() && exe("self") != exe(&number.to_string()))?;
    let words = words.trim_end_matches('\0').chars().take(LENGTH);
    let line: String = words.map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(format!("{line:?} {}", state(&read("wchan").unwrap_or_default())))
}

/// What a process does, by the kernel's function in which it is; `0` or nothing is none.
fn state(function: &str) -> String {
    match WAITS.iter().find(|(part, _)| function.contains(part)) {
        Some((_, what)) => format!("waited for {what}"),
        None if matches!(function, "" | "0") => "computed".to_owned(),
        None => format!("waited in {function}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_named_by_what_it_is_for() {
        assert_eq!(state("futex_q_unlock"), "waited for a lock or another thread");
        assert_eq!(state("do_wait"), "waited for a process or data");
        assert_eq!(state("0"), "computed");
        assert_eq!(state("tcp_recvmsg_x"), "waited in tcp_recvmsg_x");
    }

    #[test]
    fn a_program_beside_this_one_is_named_and_this_one_is_not() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        // Its words are there a moment after it has been started.
        let named = (0..5_000).find_map(|_| {
            of(child.id()).or_else(|| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                None
            })
        });
        assert!(named.is_some_and(|text| text.starts_with("\"sleep 100\"")));
        assert_eq!(of(std::process::id()), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
