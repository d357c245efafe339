//! The behaviour corpus: several hundred short trials, each with the hash of its trace, its counts and a digest of its results.
//!
//! `tests/data/behaviour.csv` has a row for each case of `behaviour/cases.rs`. A change that should not alter what the model does leaves
//! every row as it is. One that should says in CHANGELOG.md which rows moved and why, and writes the table anew:
//! `UPDATE_BEHAVIOUR=1 cargo test -p tcpscape-sim --test it behaviour`.

mod cases;
mod row;

use std::path::PathBuf;

#[test]
fn every_trial_is_what_it_was() {
    let cases = cases::corpus();
    let (first, second) = cases.split_at(cases.len() / 2);
    let rows = |part: &[cases::Case]| part.iter().map(row::row).collect::<Vec<_>>();
    let (mut now, rest) = std::thread::scope(|s| {
        let other = s.spawn(|| rows(second));
        (rows(first), other.join().unwrap())
    });
    now.extend(rest);
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/behaviour.csv");
    let text = format!("{}\n{}\n", row::HEAD, now.join("\n"));
    if std::env::var_os("UPDATE_BEHAVIOUR").is_some() {
        std::fs::write(&file, text).unwrap();
        return;
    }
    let table = std::fs::read_to_string(&file).unwrap();
    let was: Vec<&str> = table.lines().skip(1).collect();
    assert!(table.starts_with(row::HEAD) && was.len() == now.len(), "the table has other columns or rows: write it anew");
    let moved: Vec<String> = was.iter().zip(&now).filter(|(a, b)| *a != b).map(|(a, b)| format!("was {a}\nis  {b}")).collect();
    assert!(moved.is_empty(), "{} of {} trials moved\n{}\n{}", moved.len(), now.len(), row::HEAD, moved.join("\n"));
}

/// The corpus sees what it is there for: a case of no use would be one where nothing happens.
#[test]
fn the_corpus_covers_every_control_and_every_queue() {
    let cases = cases::corpus();
    assert!(cases.len() >= 400, "{}", cases.len());
    for c in &cases {
        c.plan().unwrap();
    }
    let all: String = cases.iter().map(|c| format!("{} {} {} {}\n", c.sender, c.router, c.reverse, c.flows.join(" "))).collect();
    for e in tcpscape_tcp::cc::REGISTRY {
        assert!(all.contains(&format!("\"cca\":\"{}\"", e.name)), "{} has no case", e.name);
    }
    for q in tcpscape_path::REGISTRY {
        assert!(all.split([' ', '\n', ';']).any(|w| w == q.name), "{} has no case", q.name);
    }
    let mut names: Vec<&str> = cases.iter().map(|c| c.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "two cases have one name");
}
