//! What a script sets before and while it runs: lines `--key=value`, and sysctls in commands of the shell. No command is carried out: what it would
//! set is read from its text, and applied where the model has it.
//!
//! Source: `Documentation/networking/ip-sysctl.rst`, and the values that the scripts of packetdrill's repository set before each test.

use crate::script::{number, Micros, Script, ScriptError};
use serde::Serialize;
use tcpscape_base::Kernel;
use tcpscape_tcp::{cc, Tuning};

/// A setting that was not applied, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Ignored {
    /// Line of the script.
    pub line: usize,
    /// What was to be set, as it is written.
    pub text: String,
    /// Why the model does without.
    pub reason: &'static str,
}

/// How the hosts of a script are set.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub kernel: Kernel,
    pub tuning: Tuning,
    pub control: String,
    /// `net.ipv4.tcp_ecn`.
    pub ecn: i64,
    pub timestamps: bool,
    pub sack: bool,
    pub window_scaling: bool,
    /// The device segments (TSO).
    pub offload: bool,
    /// The host's queue is fq, which paces.
    pub fq: bool,
    /// A packet of the script stands for one packet that leaves, not for several.
    pub strict: bool,
    /// MTU of the device, bytes.
    pub mtu: u32,
    /// How far a time may be off.
    pub tolerance: Micros,
    /// The same as a share of the time since the event before.
    pub tolerance_share: f64,
    /// Microseconds of a tick of outgoing timestamps; 0 leaves their values unchecked.
    pub timestamp_tick: Micros,
    pub ignored: Vec<Ignored>,
}

/// Why a script cannot be carried out by the model.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub line: usize,
    pub reason: String,
}

/// What becomes of a sysctl.
enum Effect {
    Applied,
    /// The model has this value alone.
    Fixed(&'static str, &'static [&'static str]),
    /// Nothing that a script sees depends on it.
    Idle(&'static str),
    Unknown,
}

impl Settings {
    /// Those of a host with this kernel and the options of `script`.
    pub fn new(kernel: Kernel, script: &Script) -> Result<Settings, ScriptError> {
        let mut s = Settings {
            kernel: Kernel { rmem_max: kernel.rmem_max.max(BUFFER_MAX), wmem_max: kernel.wmem_max.max(BUFFER_MAX), ..kernel },
            tuning: Tuning::default(),
            control: "cubic".into(),
            ecn: 2,
            timestamps: true,
            sack: true,
            window_scaling: true,
            offload: true,
            fq: false,
            strict: false,
            mtu: MTU,
            tolerance: TOLERANCE,
            tolerance_share: TOLERANCE_SHARE,
            timestamp_tick: 0,
            ignored: Vec::new(),
        };
        script.options.iter().try_for_each(|(line, key, value)| s.option(*line, key, value))?;
        Ok(s)
    }

    fn option(&mut self, line: usize, key: &str, value: &str) -> Result<(), ScriptError> {
        let field = match key {
            "tolerance_usecs" => &mut self.tolerance,
            "tcp_ts_tick_usecs" => &mut self.timestamp_tick,
            "tolerance_percent" => {
                let percent = value.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
                let bad = || ScriptError { line, problem: format!("--{key}={value} is no share; write 0 to 100") };
                self.tolerance_share = percent.ok_or_else(bad)? / 100.0;
                return Ok(());
            }
            "strict_segments" => {
                self.strict = true;
                return Ok(());
            }
            "mtu" => {
                let mtu = number(value).filter(|m| (MTU_LEAST..=MTU_MOST).contains(m));
                self.mtu = mtu.ok_or_else(|| ScriptError { line, problem: format!("--mtu={value} is no MTU; write 576 to 65535") })? as u32;
                return Ok(());
            }
            _ => {
                self.ignore(line, format!("--{key}={value}"), "an option of the tool, not of the hosts");
                return Ok(());
            }
        };
        let micros = number(value).filter(|m| (0..=MOST_TOLERANCE).contains(m));
        *field = micros
            .ok_or_else(|| ScriptError { line, problem: format!("--{key}={value} is no number of µs; write 0 to {MOST_TOLERANCE}") })?;
        Ok(())
    }

    fn ignore(&mut self, line: usize, text: String, reason: &'static str) {
        self.ignored.push(Ignored { line, text, reason });
    }

    /// What a command of the shell sets.
    pub fn shell(&mut self, line: usize, text: &str) -> Result<(), Refusal> {
        let text = text.replace("\\\n", " ");
        for (offset, command) in text.split('\n').enumerate() {
            self.command(line + offset, command.trim())?;
        }
        Ok(())
    }

    fn command(&mut self, line: usize, text: &str) -> Result<(), Refusal> {
        if text.split_whitespace().eq(["echo", "3", ">", HYSTART]) {
            return Ok(()); // the default
        }
        let text = text.split(['>', '|', '#']).next().unwrap_or_default().trim().to_string();
        let words = words(&text);
        let Some(program) = words.first() else { return Ok(()) };
        match program.rsplit('/').next().unwrap_or_default() {
            "defaults.sh" => DEFAULTS.iter().try_for_each(|&(name, value)| self.sysctl(line, name, value)),
            "set_sysctls.py" | "sysctl" => self.assignments(line, &words[1..]),
            "ethtool" if text.ends_with("tso off gso off") => {
                self.offload = false;
                Ok(())
            }
            "tc" if text == "tc qdisc replace dev tun0 root fq" => {
                self.fq = true;
                Ok(())
            }
            name if name.starts_with("sysctl_restore") => Ok(()),
            "ip" if text.starts_with("ip tcp_metrics") => Ok(()),
            "nstat" if words.len() == 2 && words[1] == "-n" => Ok(()),
            _ => Err(Refusal { line, reason: format!("a command of the shell that sets no sysctl: {text}") }),
        }
    }

    fn assignments(&mut self, line: usize, words: &[String]) -> Result<(), Refusal> {
        for (name, value) in words.iter().filter_map(|w| w.split_once('=')) {
            let name = name.trim_start_matches("/proc/sys/").replace('/', ".");
            self.sysctl(line, name.trim_start_matches("net.ipv4."), &multiplied(value))?;
        }
        Ok(())
    }

    fn sysctl(&mut self, line: usize, name: &str, value: &str) -> Result<(), Refusal> {
        let text = || format!("{name}={value}");
        match self.apply(name, value) {
            Effect::Applied => Ok(()),
            Effect::Fixed(_, values) if values.contains(&value) => Ok(()),
            Effect::Fixed(reason, _) => Err(Refusal { line, reason: format!("{}: {reason}", text()) }),
            Effect::Idle(reason) => {
                self.ignore(line, text(), reason);
                Ok(())
            }
            Effect::Unknown => Err(Refusal { line, reason: format!("{}: a setting that the model does not have", text()) }),
        }
    }

    fn apply(&mut self, name: &str, value: &str) -> Effect {
        let n = number(value).unwrap_or(0);
        let mut three = value.split_whitespace().filter_map(number).map(|n| n.clamp(0, i64::from(i32::MAX)) as u32);
        match name {
            "tcp_congestion_control" if cc::find(value).is_some() => self.control = value.into(),
            "tcp_ecn" if (0..=2).contains(&n) => self.ecn = n,
            "tcp_ecn" => return Effect::Fixed("accurate ECN of the model is Prague's, on ECT(1) alone", &[]),
            "tcp_timestamps" => self.timestamps = n != 0,
            "tcp_sack" => self.sack = n != 0,
            "tcp_window_scaling" => self.window_scaling = n != 0,
            "tcp_min_tso_segs" if n > 0 => self.tuning.min_tso_segs = Some(n.min(1_000) as u32),
            "tcp_tso_win_divisor" if n > 0 => self.tuning.tso_win_divisor = n.min(1_000) as u32,
            "tcp_early_retrans" => self.tuning.loss_probes = n >= 3,
            "tcp_slow_start_after_idle" => self.kernel.slow_start_after_idle = n != 0,
            "tcp_comp_sack_nr" => self.kernel.comp_sack_nr = n.clamp(0, 255) as u32,
            "tcp_comp_sack_delay_ns" => self.kernel.comp_sack_delay_ns = n.clamp(0, i64::from(u32::MAX)) as u32,
            "tcp_limit_output_bytes" => self.kernel.limit_output_bytes = n.clamp(0, i64::from(u32::MAX)) as u32,
            "net.core.rmem_max" => self.kernel.rmem_max = n.clamp(0, i64::from(i32::MAX / 2)) as u32,
            "net.core.wmem_max" => self.kernel.wmem_max = n.clamp(0, i64::from(i32::MAX / 2)) as u32,
            "tcp_rmem" => {
                if let (Some(_), Some(default), Some(most)) = (three.next(), three.next(), three.next()) {
                    (self.kernel.tcp_rmem_default, self.kernel.tcp_rmem_max) = (default, most);
                }
            }
            "tcp_wmem" => {
                if let (Some(_), Some(default), Some(most)) = (three.next(), three.next(), three.next()) {
                    (self.kernel.tcp_wmem_default, self.kernel.tcp_wmem_max) = (default, most);
                }
            }
            _ => return FIXED.iter().find(|f| f.0 == name).map_or_else(|| idle(name), |f| Effect::Fixed(f.2, f.1)),
        }
        Effect::Applied
    }
}

fn idle(name: &str) -> Effect {
    IDLE.iter().find(|i| i.0 == name).map_or(Effect::Unknown, |i| Effect::Idle(i.1))
}

/// A value in which products of the shell, `$((15*1024))`, are carried out.
fn multiplied(value: &str) -> String {
    let product = |text: &str| text.split('*').map(number).try_fold(1i64, |all, factor| all.checked_mul(factor?));
    let words = value.split_whitespace().map(|word| {
        let inner = word.strip_prefix("$((").and_then(|w| w.strip_suffix("))"));
        inner.and_then(product).map_or_else(|| word.to_string(), |n| n.to_string())
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The words of a command; quotes keep blanks together.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut quoted) = (vec![String::new()], false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(String::new()),
            c => words.last_mut().expect("begun with one").push(c),
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

/// Which signals of HyStart CUBIC uses, as a file: 3 are both.
const HYSTART: &str = "/sys/module/tcp_cubic/parameters/hystart_detect";
/// `net.core.rmem_max` and `wmem_max` of Linux 6.18: scripts fix buffers above the 212,992 bytes of older kernels.
const BUFFER_MAX: u32 = 4 << 20;
/// Ethernet's.
const MTU: u32 = 1_500;
const MTU_LEAST: i64 = 576;
const MTU_MOST: i64 = 65_535;
/// How far a packet's time may be off: 4 ms, packetdrill's default.
const TOLERANCE: Micros = 4_000;
/// … or an eighth of the time since the event before, if that is more (observed on the tool's messages).
const TOLERANCE_SHARE: f64 = 0.125;
/// Largest tolerance, µs.
const MOST_TOLERANCE: i64 = 100_000_000;

/// What the scripts' common preparation (`defaults.sh`) sets.
const DEFAULTS: [(&str, &str); 14] = [
    ("tcp_rmem", "4096 540000 15728640"),
    ("tcp_wmem", "4096 262144 4194304"),
    ("tcp_timestamps", "1"),
    ("tcp_frto", "2"),
    ("tcp_sack", "1"),
    ("tcp_dsack", "1"),
    ("tcp_reordering", "3"),
    ("tcp_congestion_control", "cubic"),
    ("tcp_slow_start_after_idle", "0"),
    ("tcp_early_retrans", "4"),
    ("tcp_recovery", "1"),
    ("tcp_tso_win_divisor", "3"),
    ("tcp_ecn", "0"),
    ("tcp_pacing_ss_ratio", "200"),
];

/// Sysctls of which the model has some values alone: name, values, and what it lacks.
const FIXED: [(&str, &[&str], &str); 16] = [
    ("tcp_congestion_control", &[], "no control of the model has this name"),
    ("tcp_recovery", &["1"], "losses are found by RACK alone"),
    ("tcp_reordering", &["3"], "the model begins with a reordering of 3"),
    ("tcp_frto", &["1", "2"], "F-RTO is always on"),
    ("tcp_dsack", &["1"], "the receiver always reports duplicates"),
    ("tcp_fack", &["0"], "kernels of today do not have it"),
    ("tcp_pacing_ss_ratio", &["200"], "a constant of the model"),
    ("tcp_pacing_ca_ratio", &["120"], "a constant of the model"),
    ("tcp_mtu_probing", &["0"], "the model does not probe for the MTU"),
    ("tcp_shrink_window", &["0"], "the model's window is never taken back"),
    ("tcp_notsent_lowat", &["-1", "4294967295"], "no limit to unsent data"),
    ("tcp_invalid_ratelimit", &["500"], "a constant of the model"),
    ("tcp_moderate_rcvbuf", &["1"], "the receive buffer is always tuned"),
    ("tcp_rto_max_ms", &["120000"], "a constant of the model"),
    ("tcp_abort_on_overflow", &["0"], "one connection has no queue to overflow"),
    ("tcp_autocorking", &["1"], "a rule of the model"),
];

/// Sysctls on which nothing depends that the model does: name, and why.
const IDLE: [(&str, &str); 14] = [
    ("tcp_syn_retries", "the model does not give up"),
    ("tcp_synack_retries", "five, whatever is set"),
    ("tcp_retries1", "the model does not give up"),
    ("tcp_retries2", "the model does not give up"),
    ("tcp_fastopen", "scripts with its option are not applicable"),
    ("tcp_fastopen_key", "scripts with its option are not applicable"),
    ("tcp_fastopen_blackhole_timeout_sec", "scripts with its option are not applicable"),
    ("tcp_syncookies", "one connection fills no queue"),
    ("tcp_ecn_fallback", "a repeated SYN asks for no ECN"),
    ("tcp_ecn_option", "of accurate ECN"),
    ("tcp_ecn_option_beacon", "of accurate ECN"),
    ("tcp_no_metrics_save", "nothing is remembered of earlier connections"),
    ("tcp_base_mss", "of probing for the MTU"),
    ("tcp_fin_timeout", "a closed connection has no time"),
];
