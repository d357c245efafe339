//! What a link cannot do as the simulator and a kernel's own queues can.

use tcpscape_path::{Direction, Host, PathSpec, Pipe};

/// Sentences for the results of a trial whose data go this way, none where everything is as in the simulator.
pub fn caveats(direction: Direction, path: &PathSpec) -> Vec<String> {
    let (host, end) = match direction {
        Direction::Forward => (Host::Sender, "sender"),
        Direction::Reverse => (Host::Receiver, "receiver"),
    };
    let way = direction.name();
    let own = path.stages.iter().take_while(|s| s.at == host);
    let mut all = Vec::new();
    for (i, stage) in own.enumerate() {
        let name = stage.qdisc.name();
        let alone: Pipe<()> = Pipe::new(&PathSpec { stages: vec![stage.clone()], ..PathSpec::default() }, 0, "");
        if i == 0 && alone.holds_sender() {
            all.push(format!(
                "{way}: {name} at the {end}'s egress is emulated behind the {end}'s device, where TCP small queues and local congestion \
                 do not see it; give it `at: router`, or take the engine live:netem"
            ));
        }
        if stage.qdisc.paces() {
            all.push(format!(
                "{way}: {name} at the {end}'s egress is emulated behind the {end}'s device and sees no departure times, so TCP paces \
                 itself; take the engine live:netem for its pacing"
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_path::parse_tc;

    #[test]
    fn a_queue_that_holds_its_sender_is_told_of() {
        let count = |words: &str, at: Host| {
            let mut spec = PathSpec::of([parse_tc(words).expect("tc's words")]);
            spec.stages[0].at = at;
            caveats(Direction::Forward, &spec).len()
        };
        assert_eq!(count("netem delay 25ms", Host::Sender), 0, "the kernel's netem orphans packets too");
        assert_eq!(count("tbf rate 10mbit burst 3028 limit 30000", Host::Sender), 1);
        assert_eq!(count("fq", Host::Sender), 2);
        assert_eq!(count("fq", Host::Router), 0);
        let mut back = PathSpec::of([parse_tc("fq").expect("tc's words")]);
        back.stages[0].at = Host::Receiver;
        assert_eq!(caveats(Direction::Reverse, &back).len(), 2, "data that travel up begin at the receiver");
    }
}
