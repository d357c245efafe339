//! What an input of a fuzz target is, and whether it keeps the laws: `replay TARGET FILE…`. A broken law is a panic that names it.

use tcpscape_fuzzing::{control, path, plan, TARGETS};

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().expect("TARGET FILE…");
    let (_, check) = TARGETS.iter().find(|t| t.0 == name).unwrap_or_else(|| panic!("{name} is none of {:?}", TARGETS.map(|t| t.0)));
    for file in args {
        let data = std::fs::read(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
        let shown = match name.as_str() {
            "path" => path::read(&data).map(|(spec, _)| serde_json::to_string(&spec).expect("a path has JSON")),
            "plan" => plan::read(&data).map(|(plan, _)| serde_json::to_string(&plan).expect("a plan has JSON")),
            "control" => Some(format!("{:?}", control::read(&data).0)),
            _ => Some(String::from_utf8_lossy(&data).into_owned()),
        };
        println!("{file}: {}", shown.as_deref().unwrap_or("refused"));
        check(&data);
    }
}
