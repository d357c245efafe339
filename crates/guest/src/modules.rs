//! Parameters of congestion controls: the kernel's are a module's, one value for all connections.
//!
//! They are files of `/sys/module/tcp_NAME/parameters` whether the control is a module or built in, mounted only where a
//! trial asks for parameters. Source: Documentation/ABI/stable/sysfs-module. What was there is put back after the trial.
//! Values that a module derives once from its parameters when it starts (CUBIC's from `beta`) do not follow.

use crate::sys;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};
use tcpscape_plan::FlowPlan;

/// Where the files are.
const ROOT: &str = "/sys/module";

/// Why a parameter could not be set: one line.
#[derive(Debug, thiserror::Error)]
#[error("cca.{param}: {problem}")]
pub struct ParamError {
    param: String,
    problem: String,
}

/// Parameters that a trial changed, with what they were; dropping it puts them back.
#[derive(Debug, Default)]
pub struct Modules(Vec<(PathBuf, String)>);

impl Modules {
    /// Writes the parameters of all flows.
    pub fn write<'a>(flows: impl IntoIterator<Item = &'a FlowPlan>) -> Result<Modules, ParamError> {
        let mut modules = Modules::default();
        let wanted = wanted(flows)?;
        if !wanted.is_empty() {
            mount().map_err(|e| ParamError { param: "sysfs".into(), problem: format!("cannot be mounted: {e}") })?;
        }
        for ((cca, param), value) in &wanted {
            modules.set(Path::new(ROOT), cca, param, *value).map_err(|problem| ParamError { param: (*param).into(), problem })?;
        }
        Ok(modules)
    }

    fn set(&mut self, root: &Path, cca: &str, param: &str, value: i64) -> Result<(), String> {
        let place = root.join(format!("tcp_{cca}")).join("parameters");
        let file = place.join(param);
        let Ok(old) = fs::read_to_string(&file) else { return Err(missing(&place, cca)) };
        let mode = fs::metadata(&file).map_or(0, |m| m.permissions().mode());
        if mode & 0o222 == 0 {
            return Err(format!("the kernel's {cca} takes it only when it starts, not while it runs"));
        }
        let old = old.trim();
        let new = spelled(old, value);
        put(&file, &new).map_err(|e| format!("the kernel's {cca} refuses {new}: {e}"))?;
        self.0.push((file, old.to_owned()));
        Ok(())
    }
}

impl Drop for Modules {
    fn drop(&mut self) {
        for (file, old) in self.0.iter().rev() {
            // What was there once can be written again; there is nobody to tell otherwise.
            let _ = put(file, old);
        }
    }
}

type Wanted<'a> = BTreeMap<(&'a str, &'a str), i64>;

/// Every flow's parameters together; flows of one control must agree, those without a parameter leave it at its default.
fn wanted<'a>(flows: impl IntoIterator<Item = &'a FlowPlan>) -> Result<Wanted<'a>, ParamError> {
    let mut by_cca: BTreeMap<&str, &BTreeMap<String, i64>> = BTreeMap::new();
    for f in flows {
        let said = by_cca.entry(&f.cca).or_insert(&f.cca_params);
        if *said != &f.cca_params {
            let mut names = said.keys().chain(f.cca_params.keys()).filter(|k| said.get(*k) != f.cca_params.get(*k));
            let param = names.next().cloned().unwrap_or_default();
            return Err(ParamError { param, problem: format!("flows of {} differ in it, and a kernel has one value for all", f.cca) });
        }
    }
    Ok(by_cca.iter().flat_map(|(cca, params)| params.iter().map(|(k, v)| ((*cca, k.as_str()), *v))).collect())
}

/// The value as the kernel spells it: booleans are Y and N.
fn spelled(old: &str, value: i64) -> String {
    match old {
        "Y" | "N" => if value == 0 { "N" } else { "Y" }.to_owned(),
        _ => value.to_string(),
    }
}

fn missing(place: &Path, cca: &str) -> String {
    let mut names: Vec<String> =
        fs::read_dir(place).into_iter().flatten().flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    match names.is_empty() {
        true => format!("the kernel's {cca} has no parameters"),
        false => format!("the kernel's {cca} has no such parameter; it has {}", names.join(", ")),
    }
}

fn mount() -> io::Result<()> {
    if Path::new(ROOT).exists() {
        return Ok(());
    }
    fs::create_dir_all("/sys")?;
    sys::mount("sysfs", "/sys", "sysfs", "")
}

fn put(file: &Path, value: &str) -> io::Result<()> {
    io::Write::write_all(&mut fs::OpenOptions::new().write(true).open(file)?, value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(cca: &str, params: &[(&str, i64)]) -> FlowPlan {
        let params: BTreeMap<&str, i64> = params.iter().copied().collect();
        serde_json::from_value(serde_json::json!({ "cca": cca, "cca_params": params })).expect("a flow")
    }

    #[test]
    fn flows_of_one_control_share_its_parameters() {
        let alike = [flow("cubic", &[("hystart", 0)]), flow("bbr", &[]), flow("cubic", &[("hystart", 0)])];
        assert_eq!(wanted(&alike).expect("they agree"), BTreeMap::from([(("cubic", "hystart"), 0)]));
        let differ = [flow("cubic", &[("hystart", 0)]), flow("cubic", &[])];
        let said = wanted(&differ).expect_err("they differ").to_string();
        assert_eq!(said, "cca.hystart: flows of cubic differ in it, and a kernel has one value for all");
    }

    #[test]
    fn values_are_spelled_as_the_kernel_does() {
        assert_eq!((spelled("Y", 0).as_str(), spelled("N", 1).as_str(), spelled("717", 819).as_str()), ("N", "Y", "819"));
    }

    #[test]
    fn parameters_are_set_and_put_back_and_unknown_ones_refused() {
        let root = std::env::temp_dir().join(format!("tcpscape-modules-{}", std::process::id()));
        let place = root.join("tcp_cubic/parameters");
        fs::create_dir_all(&place).expect("a directory");
        fs::write(place.join("hystart"), "1\n").expect("a file");
        fs::write(place.join("bic_scale"), "41\n").expect("a file");
        fs::set_permissions(place.join("bic_scale"), fs::Permissions::from_mode(0o444)).expect("a mode");
        let read = || fs::read_to_string(place.join("hystart")).expect("a file");
        {
            let mut m = Modules::default();
            m.set(&root, "cubic", "hystart", 0).expect("it can be written");
            assert!(read().starts_with('0'));
            let unknown = m.set(&root, "cubic", "nosuch", 1).expect_err("there is none");
            assert_eq!(unknown, "the kernel's cubic has no such parameter; it has bic_scale, hystart");
            let fixed = m.set(&root, "cubic", "bic_scale", 40).expect_err("it is read-only");
            assert_eq!(fixed, "the kernel's cubic takes it only when it starts, not while it runs");
            assert_eq!(m.set(&root, "reno", "x", 1).expect_err("no module"), "the kernel's reno has no parameters");
        }
        assert!(read().starts_with('1'));
        fs::remove_dir_all(&root).expect("it was there");
    }
}
