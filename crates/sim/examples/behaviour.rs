//! Rows of the behaviour corpus for random cases: `behaviour FROM UNTIL`. Run it in two checkouts and compare the outputs: what differs
//! is what a change alters on conditions that nobody chose.

#[path = "../tests/it/behaviour/cases.rs"]
#[allow(dead_code)] // the list itself is the test's
mod cases;
#[path = "../tests/it/behaviour/random.rs"]
mod random;
#[path = "../tests/it/behaviour/row.rs"]
mod row;

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().expect("a number")).collect();
    let [from, until] = numbers[..] else { panic!("FROM UNTIL") };
    println!("{}", row::HEAD);
    for n in from..until {
        println!("{}", row::row(&random::random(n)));
    }
}
