//! A certificate of the far end itself, for the tests' programs alone: made anew by each build, trusted by nobody else.
use std::{env, fs, path::Path};

fn main() {
    let made = rcgen::generate_simple_self_signed(["far".to_owned()]).expect("a certificate");
    let folder = env::var("OUT_DIR").expect("a build");
    fs::write(Path::new(&folder).join("certificate.pem"), made.cert.pem()).expect("room");
    fs::write(Path::new(&folder).join("key.pem"), made.signing_key.serialize_pem()).expect("room");
    println!("cargo::rerun-if-changed=build.rs");
}
