//! Runs scripts and says what became of each, their statements about `tcp_info` left aside.

use tcpscape_base::Kernel;
use tcpscape_drill::Outcome;

fn main() {
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        match tcpscape_drill::run(&text, Kernel::V6_18).map(|r| r.outcome) {
            Ok(Outcome::Passed) => println!("passed {file}"),
            Ok(Outcome::Failed(f)) => {
                println!("FAILED {file}:{}: {}\n    expected {}\n    actual   {}", f.line, f.problem, f.expected, f.actual)
            }
            Ok(Outcome::NotApplicable { line, reason }) => println!("not applicable {file}:{line}: {reason}"),
            Err(e) => println!("bad {file}:{e}"),
        }
    }
}
