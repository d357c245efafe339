//! Gives the model a version of its own: a hash over the sources of the rooms that decide what a trial does.

use std::path::{Path, PathBuf};

const ROOMS: [&str; 4] = ["base", "path", "tcp", "sim"];

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.to_string_lossy().contains("tests") {
            out.push(path);
        }
    }
}

fn main() {
    let mut files = Vec::new();
    for room in ROOMS {
        let dir = Path::new("..").join(room).join("src");
        println!("cargo:rerun-if-changed={}", dir.display());
        sources(&dir, &mut files);
    }
    files.sort();
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for f in &files {
        let bytes = std::fs::read(f).unwrap_or_default();
        for b in f.to_string_lossy().bytes().chain(bytes) {
            hash = (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=TCPSCAPE_MODEL_HASH={:08x}", (hash >> 32) as u32 ^ hash as u32);
}
