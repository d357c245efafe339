//! The live engine's program: `tcpscape-live MODE [--in FD] [--out FD] [--parent PID]`. Its messages are in `channel`, its modes
//! in [`MODES`]; Python's side is `engines/host`.

use serde_json::{json, Value};
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::process::ExitCode;
use tcpscape_live::channel::Channel;
use tcpscape_live::spaces::{self, keeper, lifetime};

/// What a mode does with its job: the result, or one line for the user.
type Run = fn(Value, &Channel) -> Result<Value, String>;

/// Every mode by name.
const MODES: &[(&str, Run)] = &[
    ("emulate", tcpscape_live::emulate::run),
    ("probe", tcpscape_live::probe::run),
    ("sockets", tcpscape_live::sockets::run),
    ("trial", tcpscape_live::trial::run),
];

/// Exit statuses after an error of the job, after wrong arguments, and after a bug.
const REFUSED: u8 = 1;
const MISUSED: u8 = 2;
const BUG: u8 = 101;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if words.first().is_some_and(|w| w == keeper::MODE) {
        return ExitCode::from(keeper::keep(&words[1..]) as u8);
    }
    match Arguments::of(&words).and_then(|a| Ok((a.run, a.channel()?))) {
        Ok((run, channel)) => serve(run, &channel),
        Err(why) => {
            eprintln!("tcpscape-live: {why}; `tcpscape run --engine live`, `tcpscape emulate` and `tcpscape diagnose --live` start it");
            ExitCode::from(MISUSED)
        }
    }
}

/// Runs a mode and sends its last line.
fn serve(run: Run, channel: &Channel) -> ExitCode {
    spaces::outlive_terminal();
    report_panics(channel.clone());
    match channel.job().and_then(|job| run(job, channel)) {
        Ok(result) => {
            channel.send(&json!({ "result": result }));
            ExitCode::SUCCESS
        }
        Err(why) => {
            channel.send(&json!({ "error": why }));
            ExitCode::from(REFUSED)
        }
    }
}

/// A panic of any thread is the last line, and ends this process.
fn report_panics(channel: Channel) {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |what| {
        print(what);
        channel.send(&json!({ "panic": what.to_string() }));
        std::process::exit(i32::from(BUG));
    }));
}

/// The command line.
struct Arguments {
    run: Run,
    input: RawFd,
    output: RawFd,
    parent: Option<u32>,
}

impl Arguments {
    fn of(words: &[OsString]) -> Result<Arguments, String> {
        let names: Vec<&str> = MODES.iter().map(|(name, _)| *name).collect();
        let (mode, options) = words.split_first().ok_or_else(|| format!("a mode is missing: {}", names.join(", ")))?;
        let run = MODES.iter().find(|(name, _)| mode == name).map(|(_, run)| *run);
        let run = run.ok_or_else(|| format!("{} is no mode: {}", mode.to_string_lossy(), names.join(", ")))?;
        let mut arguments = Arguments { run, input: 0, output: 1, parent: None };
        for pair in options.chunks(2) {
            let number = pair.get(1).and_then(|v| v.to_str()?.parse::<u32>().ok());
            match (pair[0].to_str(), number) {
                (Some("--in"), Some(n)) => arguments.input = n as RawFd,
                (Some("--out"), Some(n)) => arguments.output = n as RawFd,
                (Some("--parent"), Some(n)) => arguments.parent = Some(n),
                _ => return Err(format!("{} is no option with a number: --in, --out, --parent", pair[0].to_string_lossy())),
            }
        }
        Ok(arguments)
    }

    /// Ties this process to its parent and opens the channel.
    fn channel(&self) -> Result<Channel, String> {
        lifetime::end_with_parent(self.parent).map_err(|e| format!("this process cannot be tied to its parent: {e}"))?;
        let open = |fd, name| spaces::inherited(fd).map_err(|e| format!("{name} {fd}: {e}"));
        Ok(Channel::new(open(self.input, "--in")?, open(self.output, "--out")?))
    }
}
