"""The extension module: the stub says what the binary has, trials are pinned, captures open in tshark."""

import ast
import inspect
import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tcpscape import engines
from tcpscape.campaign.execute import Runner
from tcpscape.engines.base import flow_results, probe_results, transfers_results
from tcpscape.scenario import files, options
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture

STUB = Path(engines.__file__).parent.parent / "_core.pyi"


@pytest.fixture
def core(need_model):
    from tcpscape import _core

    return _core


def test_the_stub_says_what_the_binary_has(core):
    stub = {n.name: [a.arg for a in n.args.args] for n in ast.parse(STUB.read_text()).body if isinstance(n, ast.FunctionDef)}
    binary = {n: list(inspect.signature(f).parameters) for n, f in vars(core).items() if inspect.isroutine(f) and not n.startswith("_")}
    assert stub == binary


def test_the_stub_says_what_a_plan_has(core):
    stub = next(n for n in ast.parse(STUB.read_text()).body if isinstance(n, ast.ClassDef) and n.name == "Plan")
    said = {n.name: [a.arg for a in n.args.args] for n in stub.body if isinstance(n, ast.FunctionDef) and n.name != "__new__"}
    assert said == {n: list(inspect.signature(f).parameters) for n, f in vars(core.Plan).items() if not n.startswith("_")}


@pytest.mark.parametrize("name", ["Sample", "Window"])
def test_the_stub_says_what_hooks_read_and_write(core, name):
    stub = next(n for n in ast.parse(STUB.read_text()).body if isinstance(n, ast.ClassDef) and n.name == name)
    members = {n.name if isinstance(n, ast.FunctionDef) else n.target.id for n in stub.body if isinstance(n, (ast.FunctionDef, ast.AnnAssign))}
    assert members == {n for n in vars(getattr(core, name)) if not n.startswith("_")}


def test_a_plan_is_parsed_once_for_all_its_seeds(core, monkeypatch):
    class Counting:
        """The extension module, which counts the plans that it reads."""

        plans = 0

        def __getattr__(self, name):
            return getattr(core, name)

        def Plan(self, *args):
            self.plans += 1
            return core.Plan(*args)

    model, scenario = engines.make("model"), options.scenario({"forward": "netem delay 10ms", "reverse": "netem delay 10ms"}, duration="1s")
    monkeypatch.setattr(model, "_core", lib := Counting())
    model.check(scenario)
    trials = Runner(model, 2).run_all([(scenario, range(6))])
    assert len(model.run(scenario, range(3), threads=3)) == 3
    assert len(trials) == 1
    assert lib.plans == 1
    model.run(scenario, [1], capture=Capture(samples_ns=10**7))
    assert lib.plans == 2


PLAN = '{"duration_ns": 1000000000, "flows": [{"cca": "cubic"}]}'


def test_trials_that_run_together_are_those_that_run_one_by_one(core):
    plan, stop = core.Plan(PLAN), core.Stop()
    assert plan.run_all([3, 1, 2]) == plan.run_all((3, 1, 2), stop) == [plan.run(seed) for seed in (3, 1, 2)]
    assert plan.run_all([]) == []
    stop.set()
    assert plan.run_all([1, 2], stop) is None


def test_a_signal_ends_trials_that_run_together(core):
    def end(*_):
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(InterruptedError):
            core.Plan(PLAN).run_all(range(10**6))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_trial_has_the_tables_that_its_plan_records(core):
    tables = {"samples", "probe_samples", "queue_samples", "packets", "sender_events", "control"}
    assert not tables & core.Plan(PLAN).run(1).keys()
    recorded = json.loads(PLAN) | {"sample_interval_ns": 10**8, "trace_events": True}
    assert tables & core.Plan(json.dumps(recorded)).run(1).keys() == {"samples", "probe_samples", "sender_events"}


def test_a_plan_that_makes_no_sense_is_refused_when_it_is_read(core):
    for text, problem in [
        ("{}", "missing field"),
        ('{"duration_ns": 5, "flows": []}', "flows: 0 flows cannot run; give 1 to 100000"),
        ("[", "plan: "),
    ]:
        with pytest.raises(ValueError, match=problem):
            core.Plan(text)


def test_a_plan_without_packets_is_not_captured(core, tmp_path):
    said = core.Plan('{"duration_ns": 1000000000, "flows": [{"cca": "cubic"}]}')
    with pytest.raises(ValueError, match="trace_packets"):
        said.write_pcapng(str(tmp_path / "x.pcapng"), 1)


def test_words_round_trip(core):
    for words in (
        "netem delay 25ms 8ms distribution normal loss 0.1% limit 1000",
        "tbf rate 10mbit burst 4000 latency 400ms; netem delay 50ms loss 2%",
    ):
        tree = core.parse_tc(words)
        assert json.loads(core.parse_tc(core.to_tc(tree))) == json.loads(tree)


@pytest.mark.parametrize("words", ["netem dalay 5ms", "netem delay 5ms loss 120%", "tbf rate 10mbit", "nosuch limit 5", ""])
def test_wrong_words_are_named_in_one_line(core, words):
    with pytest.raises(ValueError) as e:  # noqa: PT011
        core.parse_tc(words)
    assert "\n" not in str(e.value)


def test_registries(core):
    assert {"reno", "cubic", "bbr"} <= {row[0] for row in core.cca_registry()}
    assert {"netem", "tbf"} <= {row[0] for row in core.qdisc_registry()}
    assert json.loads(core.kernel_profile("6.1"))["hz"] == 100


def test_the_number_of_threads_changes_nothing(core):
    scenario = files.load("jitter-cliff").model_copy(update={"duration": 2_000_000_000})
    model = engines.make("model")
    assert model.run(scenario, range(4), threads=1) == model.run(scenario, range(4), threads=4)


def test_adding_a_stage_moves_nobody(core):
    """A random stream is a function of seed, direction and stage: a hop that does nothing leaves the losses where they were."""
    model = engines.make("model")
    one = model.run(options.scenario({"forward": "netem delay 10ms loss 1%", "reverse": "netem delay 10ms"}, duration="3s"), [1])[0]
    two = model.run(
        options.scenario({"forward": ["netem delay 10ms loss 1%", "pfifo limit 100000"], "reverse": "netem delay 10ms"}, duration="3s"), [1]
    )[0]
    assert one.flows[0].bytes_received == two.flows[0].bytes_received


def test_a_capture_is_written(core, cli, tmp_path):
    file = tmp_path / "x.pcapng"
    got = cli("run", "lossy-dsl", "--duration", "2s", "--seeds", "1", "--pcap", file)
    assert got.status == 0, got.err
    assert file.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"  # pcapng section header


@pytest.mark.slow
def test_tshark_finds_nothing_wrong(core, cli, tmp_path):
    tshark = shutil.which("tshark")
    if not tshark:
        pytest.skip("tshark is missing: apt-get install tshark")
    file = tmp_path / "x.pcapng"
    assert cli("run", "lossy-dsl", "--duration", "5s", "--seeds", "1", "--pcap", file).status == 0
    check = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    bad = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 || tcp.checksum.status == Bad || ip.checksum.status == Bad"
    count = subprocess.run([tshark, "-r", file, "-Y", "tcp"], capture_output=True, text=True, check=True).stdout.count("\n")
    found = subprocess.run([tshark, *check, "-r", file, "-Y", bad], capture_output=True, text=True, check=False)
    assert count > 1000
    assert found.returncode == 0, found.stderr
    assert found.stdout == ""


# The rows of an engine as results with a scenario's names.


TIMES = {"min": 20.0, "p50": 21.0, "p95": 30.0, "p99": 31.0, "max": 32.0, "mean": 22.0}
NONE = dict.fromkeys(TIMES)


def scenario(**more: object) -> Scenario:
    """40 ms, two groups of flows; the second one sends upwards."""
    flows = [{"cca": "cubic", "count": 2}, {"cca": "bbr", "direction": "up"}]
    return Scenario.model_validate({"forward": ["netem delay 20ms"], "reverse": ["netem delay 20ms"], "flows": flows, **more})


def test_flows_know_their_group_and_direction() -> None:
    flows = flow_results(scenario(), [{"goodput_mbps": g, "seconds": 1.0, "retransmits": 0, "spurious_retransmits": 0} for g in (1.0, 2.0, 3.0)])
    assert [(f.cca, f.group, f.direction, f.goodput_mbps, f.path_rtt_ms) for f in flows] == [
        ("cubic", 0, "down", 1.0, None),
        ("cubic", 0, "down", 2.0, None),
        ("bbr", 1, "up", 3.0, None),
    ]


def test_answers_to_requests_are_read() -> None:
    row = {"goodput_mbps": 1.0, "seconds": 1.0, "retransmits": 0, "spurious_retransmits": 0}
    first, *_ = flow_results(scenario(), [row | {"responses": {"count": 3, "time_ms": TIMES}}, row, row])
    assert (first.responses.count, first.responses.time_ms.p95) == (3, 30.0)


def test_probes_have_their_names() -> None:
    heard = {"sent": 50, "received": 25, "due": 48, "lost": 24, "delay_ms": TIMES, "jitter_ms": 0.5, "reordered": 1}
    rows = [heard, heard | {"received": 0, "due": 50, "lost": 50, "delay_ms": NONE, "jitter_ms": 0.0}]
    voice, ping = probe_results(scenario(probes=["voice", {"preset": "ping", "direction": "up"}]), rows)
    assert (voice.name, voice.kind, voice.loss, voice.jitter_ms, voice.delay_ms.max, voice.path_rtt_ms) == ("voice", "udp", 0.5, 0.5, 32.0, 40.0)
    assert (ping.name, ping.direction, ping.jitter_ms, ping.delay_ms.p50, ping.loss) == ("ping-up", "up", None, None, 1.0)


def test_transfers_come_by_size() -> None:
    classes = [{"most": 10_000, "started": 5, "completed": 4, "completion_ms": TIMES}]
    (web,) = transfers_results(scenario(transfers=[{"rate": "20/s"}]), [{"classes": classes, "bytes_received": 9, "retransmits": 1}])
    assert (web.cca, web.bytes_received, web.classes[0].completed, web.classes[0].completion_ms.p50) == ("cubic", 9, 4, 21.0)
