//! The fuzz targets on inputs drawn from fixed seeds, on every committed seed and on every finding.

use std::path::Path;
use tcpscape_base::Stream;
use tcpscape_fuzzing::choices::{bytes, Choices};
use tcpscape_fuzzing::{capture, control, grammar, path, plan, words, TARGETS};
use tcpscape_sim::CheckedPlan;

/// Words, most of them accepted.
#[test]
fn words_made_of_choices_keep_the_laws() {
    let accepted = (0..20_000).filter(|&seed| grammar::read(&words::queue(&mut Choices::new(&bytes(seed, 200)))).is_some()).count();
    assert!(accepted > 5_000, "{accepted} of 20,000 were accepted");
}

/// Words of the examples with some left out, given twice, cut or put elsewhere.
#[test]
fn damaged_words_keep_the_laws() {
    let examples: Vec<&str> = grammar::examples().collect();
    let pool: Vec<&str> = examples.iter().flat_map(|e| e.split(' ')).chain([";", "-1", "0x", "1e400", "nan", "٣", "\u{1b}[31m"]).collect();
    let mut random = Stream::new(1, "damage");
    let mut below = |n: usize| random.below(n as u32) as usize;
    for _ in 0..20_000 {
        let mut words: Vec<&str> = examples[below(examples.len())].split(' ').collect();
        for _ in 0..1 + below(3) {
            let (at, other) = (below(words.len()), pool[below(pool.len())]);
            match below(4) {
                0 => words[at] = other,
                1 => words.insert(at, other),
                2 if words.len() > 1 => drop(words.remove(at)),
                _ => words[at] = words[at].get(..1 + below(words[at].len())).unwrap_or(""),
            }
        }
        grammar::check(words.join(" ").as_bytes());
    }
}

/// Every word with every kind of value, and every two of those that a queue accepts.
#[test]
fn pairs_of_words_keep_the_laws() {
    const VALUES: [&str; 11] = ["", "0", "3", "0.4", "-4", "20000", "2ms", "4294s", "5mbit", "30%", "4294967295"];
    let phrases: Vec<String> = grammar::vocabulary().flat_map(|word| VALUES.map(|v| format!("{word} {v}"))).collect();
    for example in grammar::examples() {
        let with = |phrase: &str| grammar::read(&format!("{example} {phrase}")).is_some();
        let accepted: Vec<&String> = phrases.iter().filter(|phrase| with(phrase)).collect();
        for first in &accepted {
            for second in &accepted {
                with(&format!("{first} {second}"));
            }
        }
    }
}

#[test]
fn paths_keep_the_laws() {
    (0..1_500).for_each(|seed| path::check(&bytes(seed, 2_000)));
}

#[test]
fn plans_keep_the_laws() {
    (0..1_500).for_each(|seed| plan::check(&bytes(seed, 600)));
}

/// Chains and data both ways are among the plans that run.
#[test]
fn many_made_plans_are_networks() {
    let plans: Vec<_> = (0..600).filter_map(|seed| plan::read(&bytes(seed, 600))).map(|(plan, _)| plan).collect();
    let runs: Vec<_> = plans.into_iter().filter(|plan| CheckedPlan::new(plan.clone()).is_ok()).collect();
    let count = |is: &dyn Fn(&tcpscape_plan::Plan) -> bool| runs.iter().filter(|plan| is(plan)).count();
    let (placed, both_ways) = (count(&|p| !p.places.is_empty()), count(&|p| p.places.is_empty() && p.flows.iter().any(|f| f.up)));
    assert!(placed > 20 && both_ways > 5, "{placed} with places and {both_ways} with data both ways, of {} that run", runs.len());
}

#[test]
fn congestion_controls_keep_the_laws() {
    (0..1_500).for_each(|seed| control::check(&bytes(seed, 4_000)));
}

#[test]
fn captures_keep_the_laws() {
    (0..3_000).for_each(|seed| capture::check(&bytes(seed, 3_000)));
}

/// Files that nothing is read of would test nothing.
#[test]
fn most_made_captures_have_packets() {
    let packets = |seed| {
        let mut count = 0;
        let mut reader = tcpscape_capture::read::Reader::new();
        let file = capture::file(&bytes(seed, 3_000));
        reader.feed(&file, &mut |_| count += 1).map_or(0, |()| count)
    };
    let counts: Vec<u32> = (0..1_000).map(packets).collect();
    let many = counts.iter().filter(|&&n| n > 20).count();
    assert!(many > 500, "{many} of 1,000 files have more than 20 packets");
}

#[test]
fn seeds_and_findings_keep_the_laws() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, check) in TARGETS {
        let files = std::fs::read_dir(corpus.join(name)).unwrap_or_else(|e| panic!("fuzz/corpus/{name}: {e}"));
        let mut count = 0;
        for file in files {
            check(&std::fs::read(file.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "fuzz/corpus/{name} is empty");
    }
}

/// A seed that nothing accepts would test nothing.
#[test]
fn the_plans_among_the_seeds_can_run() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/plan");
    let plans: Vec<_> = std::fs::read_dir(seeds).unwrap().map(|f| f.unwrap().path()).filter(|p| p.extension().is_some()).collect();
    assert!(plans.len() > 5, "{plans:?}");
    for file in plans {
        let (plan, _) = plan::read(&std::fs::read(&file).unwrap()).unwrap_or_else(|| panic!("{file:?} is no plan"));
        CheckedPlan::new(plan).unwrap_or_else(|e| panic!("{file:?}: {e}"));
    }
}
