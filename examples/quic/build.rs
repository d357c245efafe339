//! A certificate of the far end itself, for these programs alone: a new one for each build, trusted by nobody else.
use std::{env, fs, path::Path};

fn main() {
    let own = rcgen::generate_simple_self_signed(["far".to_owned()]).expect("a certificate");
    let folder = env::var("OUT_DIR").expect("a build");
    fs::write(Path::new(&folder).join("certificate.pem"), own.cert.pem()).expect("room");
    fs::write(Path::new(&folder).join("key.pem"), own.signing_key.serialize_pem()).expect("room");
    println!("cargo::rerun-if-changed=build.rs");
}
