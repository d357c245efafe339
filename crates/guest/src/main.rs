//! The guest's first process. See the library's header.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::process::id() != 1 {
        eprintln!("tcpscape-guest: this is the init of a guest kernel; `tcpscape run --engine virtual` starts it");
        return ExitCode::from(2);
    }
    std::panic::set_hook(Box::new(|what| tcpscape_guest::channel::say(&format!("panic {}", what.to_string().replace('\n', " ")))));
    let outcome = tcpscape_guest::channel::serve();
    if let Err(e) = &outcome {
        tcpscape_guest::channel::say(&format!("failed {e}"));
    }
    tcpscape_guest::sys::power_off();
    ExitCode::FAILURE
}
