//! The kernel of a plan: a profile by its name, and the settings that differ from it.

use crate::plan::{refuse, PlanError};
use serde_json::Value;
use tcpscape_tcp::Kernel;

/// Kernel profiles by name.
pub const PROFILES: [(&str, Kernel); 2] = [("6.1", Kernel::V6_1), ("6.12", Kernel::V6_12)];
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
    let mut settings = serde_json::to_value(base)?;
    for (name, value) in overrides.iter().filter(|(name, _)| *name != "profile") {
        match settings.get_mut(name) {
            Some(setting) => *setting = value.clone(),
            None => return refuse(format!("kernel.{name}"), "is not a setting of a kernel profile"),
        }
    }
    let kernel: Kernel = match serde_json::from_value(settings) {
        Ok(kernel) => kernel,
        Err(e) => return refuse("kernel", e.to_string()),
    };
    if !(24..=10_000).contains(&kernel.hz) {
        return refuse("kernel.hz", "must be between 24 and 10000");
    }
    Ok(kernel)
}

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
        assert_eq!(hz(r#""2.4""#).unwrap_err(), "kernel: no profile '2.4'; there are 6.1, 6.12");
        assert_eq!(hz(r#"{"ticks": 5}"#).unwrap_err(), "kernel.ticks: is not a setting of a kernel profile");
        assert_eq!(hz(r#"{"hz": 5}"#).unwrap_err(), "kernel.hz: must be between 24 and 10000");
        assert!(hz(r#"{"hz": "many"}"#).unwrap_err().starts_with("kernel: "));
        assert!(hz("[]").unwrap_err().starts_with("kernel: must be a profile's name"));
    }
}
