//! The kernel of a plan: a profile by its name, and the settings that differ from it.

use crate::plan::{refuse, PlanError};
use serde_json::Value;
use tcpscape_base::Kernel;

/// Kernel profiles by name.
pub const PROFILES: [(&str, Kernel); 6] = [
    ("6.1", Kernel::V6_1),
    ("6.6", Kernel::V6_6),
    ("6.12", Kernel::V6_12),
    ("6.18", Kernel::V6_18),
    ("6.19", Kernel::V6_19),
    ("7.1", Kernel::V7_1),
];
/// The profile of a plan that names none.
const DEFAULT: &str = "6.1";

/// The profile called `name`.
pub fn profile(name: &str) -> Option<Kernel> {
    PROFILES.iter().find(|p| p.0 == name).map(|p| p.1)
}

/// Reads the field `kernel` of a plan: nothing, a profile's name, or an object with `profile` and settings that differ.
pub(crate) fn read(field: &Value) -> Result<Kernel, PlanError> {
    let (name, overrides) = match field {
        Value::Null => (DEFAULT, None),
        Value::String(name) => (name.as_str(), None),
        Value::Object(fields) => (fields.get("profile").and_then(Value::as_str).unwrap_or(DEFAULT), Some(fields)),
        _ => return refuse("kernel", "must be a profile's name, or a profile with overrides"),
    };
    let Some(base) = profile(name) else {
        return refuse("kernel", format!("no profile '{name}'; there are {}", PROFILES.map(|p| p.0).join(", ")));
    };
    let Some(overrides) = overrides else { return Ok(base) };
    overrides.iter().filter(|(name, _)| *name != "profile").try_fold(base, |kernel, (name, value)| with(kernel, name, value))
}

/// The kernel with one setting changed.
fn with(kernel: Kernel, name: &str, value: &Value) -> Result<Kernel, PlanError> {
    let field = || format!("kernel.{name}");
    let mut settings = serde_json::to_value(kernel)?;
    let Some(setting) = settings.get_mut(name) else {
        let known = settings.as_object().map(|s| s.keys().map(String::as_str).collect::<Vec<_>>().join(", ")).unwrap_or_default();
        return refuse(field(), format!("is not a setting of a kernel profile; choose {known}"));
    };
    if setting.is_number() {
        let (least, most) = match name {
            "hz" => (24, 10_000),
            "skb_overhead" | "max_tcp_header" => (0, OVERHEAD_MAX),
            "host_time" => (0, HOST_TIME_MAX),
            "initcwnd" => (1, INITIAL_WINDOW_MAX),
            _ => (0, SYSCTL_MAX),
        };
        if !value.as_u64().is_some_and(|n| (least..=most).contains(&n)) {
            return refuse(field(), format!("must be a whole number from {least} to {most}"));
        }
    }
    *setting = value.clone();
    serde_json::from_value(settings).or_else(|e| refuse(field(), format!("{e}; give one of these")))
}

/// Largest value of an integer sysctl.
const SYSCTL_MAX: u64 = i32::MAX as u64;
/// Largest window of a new connection, segments.
const INITIAL_WINDOW_MAX: u64 = 1_000;
/// Longest time of a packet in its host, ns.
const HOST_TIME_MAX: u64 = 10_000_000;
/// Most that describes a packet beside its payload, bytes.
const OVERHEAD_MAX: u64 = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    fn hz(json: &str) -> Result<u32, String> {
        read(&serde_json::from_str(json).unwrap()).map(|k| k.hz).map_err(|e| e.to_string())
    }

    #[test]
    fn a_profile_is_named_or_overridden() {
        assert_eq!(hz("null"), Ok(Kernel::V6_1.hz));
        assert_eq!(hz(r#""6.12""#), Ok(Kernel::V6_12.hz));
        assert_eq!(hz(r#"{"profile": "6.12", "hz": 250}"#), Ok(250));
        assert_eq!(hz(r#"{"hz": 24}"#), Ok(24));
    }

    #[test]
    fn what_is_no_kernel_is_refused_by_its_field() {
        assert_eq!(hz(r#""2.4""#).unwrap_err(), "kernel: no profile '2.4'; there are 6.1, 6.6, 6.12, 6.18, 6.19, 7.1");
        assert_eq!(hz(r#"{"ticks": 5}"#).unwrap_err(), "kernel.ticks: is not a setting of a kernel profile; choose comp_sack_delay_ns, comp_sack_nr, host_time, hz, initcwnd, limit_output_bytes, max_tcp_header, rmem_max, rules, skb_overhead, slow_start_after_idle, tcp_rmem_default, tcp_rmem_max, tcp_wmem_default, tcp_wmem_max, window, wmem_max");
        assert_eq!(hz(r#"{"hz": 5}"#).unwrap_err(), "kernel.hz: must be a whole number from 24 to 10000");
        assert_eq!(hz(r#"{"rmem_max": 107374182400}"#).unwrap_err(), "kernel.rmem_max: must be a whole number from 0 to 2147483647");
        assert!(hz(r#"{"rules": "5.4"}"#).unwrap_err().starts_with("kernel.rules: unknown variant"));
        assert!(hz(r#"{"hz": "many"}"#).unwrap_err().starts_with("kernel.hz: must be a whole number"));
        assert!(hz("[]").unwrap_err().starts_with("kernel: must be a profile's name"));
    }
}
