"""Congestion controls in Python: they meet the same simulator, and what is wrong with them is one line."""

import inspect
import signal
import subprocess
import sys
import time

import pytest

import tcpscape
from conftest import ROOT
from patience import PATIENCE_S
from tcpscape import engines
from tcpscape.controls import classes, hooks
from tcpscape.controls.hooks import CaEvent, CaState, Control
from tcpscape.errors import TcpscapeError
from tcpscape.scenario import options
from tcpscape.store.results import Store

RENO, AIMD, DELAY, RATE = (f"{ROOT / 'examples' / 'python' / name}" for name in ("reno.py:Reno", "aimd.py:Aimd", "delay.py:Delay", "rate.py:Rate"))
PATH = {"forward": "netem delay 10ms loss 1%", "bottleneck": "tbf rate 10mbit burst 6056 limit 62500", "reverse": "netem delay 10ms"}
PATHS = {
    "clean": {**PATH, "forward": "netem delay 10ms"},
    "loss": PATH,
    "jitter": {**PATH, "forward": "netem delay 20ms 5ms loss 0.2%"},
    "timeouts": {**PATH, "forward": "netem delay 30ms loss 25%"},
    "duplicates": {**PATH, "forward": "netem delay 20ms reorder 95% duplicate 1%"},
    "long": {"forward": "netem delay 100ms loss 0.01% limit 100000", "reverse": "netem delay 100ms"},
}


@pytest.fixture(autouse=True)
def _model(need_model):
    pass


def scenario(path="loss", duration="3s", **fields):
    return options.scenario(PATHS[path], duration=duration, **fields)


def one(cca, path="loss", **fields):
    return engines.make("model").run(scenario(path, **fields).with_cca(cca if isinstance(cca, str) else classes.register(cca)), [1])[0]


def alike(mine, built_in):
    """Everything but the name."""
    flows = [{**f.to_dict(), "cca": ""} for f in mine.flows], [{**f.to_dict(), "cca": ""} for f in built_in.flows]
    return flows[0] == flows[1] and (mine.hash, mine.events) == (built_in.hash, built_in.events)


def test_the_example_of_delay_keeps_the_queue_short_and_that_of_a_rate_takes_no_loss_for_congestion():
    clean, least_ms = {cca: one(cca, "clean").flows[0] for cca in (DELAY, "reno")}, 20
    assert clean[DELAY].rtt_ms.p50 - least_ms < 10 < clean["reno"].rtt_ms.p50 - least_ms
    assert clean[DELAY].goodput_mbps > 0.85 * clean["reno"].goodput_mbps
    lossy = {cca: one(cca).flows[0].goodput_mbps for cca in (RATE, "reno")}
    assert lossy[RATE] > 9 > lossy["reno"]


@pytest.mark.parametrize("path", PATHS)
def test_reno_in_python_is_reno_to_the_last_bit(path):
    for flow in ({}, {"app": {"rate": "500kB/s"}}):
        for seed in (1, 2):
            mine, built_in = (engines.make("model").run(scenario(path, duration="5s", flow=flow).with_cca(c), [seed])[0] for c in (RENO, "reno"))
            assert alike(mine, built_in)
            assert mine.goodput_mbps == built_in.goodput_mbps > 0
            assert path != "timeouts" or mine.flows[0].rtos > 0


def test_reno_in_python_shares_a_bottleneck_with_cubic():
    mixed = [options.scenario(PATH, mix=f"{c}*2,cubic@1s", duration="4s") for c in (RENO, "reno")]
    mine, built_in = (engines.make("model").run(s, [3])[0] for s in mixed)
    assert alike(mine, built_in)


def test_hooks_that_a_class_does_not_have_are_renos():
    class Growth:
        on_ack = vars(type(classes.find(RENO).cls()))["on_ack"]
        window_is_used = staticmethod(classes.find(RENO).cls.window_is_used)
        add_one_for_each = staticmethod(classes.find(RENO).cls.add_one_for_each)

    assert alike(one(Growth, "timeouts"), one("reno", "timeouts"))


def test_same_seed_same_trial_in_any_order_and_number():
    model = engines.make("model")
    case = scenario().with_cca(AIMD)
    first, again = model.run(case, [5])[0], model.run(case, [4, 5], threads=2)[1]
    assert (first, first.hash) == (again, again.hash)
    assert [t.hash for t in tcpscape.run(case, seeds=6, jobs=4).trials] == [t.hash for t in tcpscape.run(case, seeds=6, jobs=1).trials]


def test_the_window_and_the_sample_are_what_the_documentation_says():
    seen = {}

    class Watch(Control):
        def init(self, sample, window):
            seen["sample"], seen["window"] = dir(sample), dir(window)
            seen["first"] = (window.cwnd, window.ssthresh, window.clamp, window.prior_cwnd, window.in_slow_start, window.pacing_rate)

        def on_ack(self, sample, window):
            window.slow_start(sample.acked) if window.in_slow_start else window.additive_increase(window.cwnd, sample.acked)
            for name, kind in inspect.get_annotations(hooks.Window, eval_str=True).items():
                assert isinstance(getattr(window, name), kind)
            seen.setdefault("rates", set()).add((sample.delivery_rate is None) == (sample.rate_interval_us is None))

    trial = one(Watch)
    for noun in ("sample", "window"):
        protocol = getattr(hooks, noun.title())
        there = {n for n in dir(protocol) if not n.startswith("_")} | set(inspect.get_annotations(protocol))
        assert {n for n in seen[noun] if not n.startswith("_")} == there
    assert (seen["first"][:5], seen["rates"]) == ((10, 0x7FFFFFFF, 0xFFFFFFFF, 0, True), {True})
    assert trial.hook_cost["acks"] > 100
    assert 0 < trial.hook_cost["hooks_s"] < trial.hook_cost["run_s"]


def test_every_hook_is_called():
    calls = []

    class Diary(Control):
        def __init__(self, seed):
            calls.append(("seed", type(seed)))

        def init(self, sample, window):
            calls.append(("init", sample.ca_state))

        def in_ack(self, sample, window):
            calls.append(("in_ack", sample.slow_path))

        def pkts_acked(self, sample, window):
            calls.append(("pkts_acked", sample.flight_bytes > 0))

        def on_lost(self, sample, window):
            calls.append(("on_lost", sample.lost_range[0] < sample.lost_range[1] and sample.tx_in_flight > 0 < sample.lost_since))

        def on_ack(self, sample, window):
            calls.append(("on_ack", True))
            window.cwnd = min(window.cwnd + sample.acked, 60)

        def ssthresh(self, sample, window):
            calls.append(("ssthresh", sample.ca_state))
            return super().ssthresh(sample, window)

        def on_state(self, sample, window, new):
            calls.append(("on_state", new))

        def on_event(self, sample, window, event):
            calls.append(("on_event", event))

        def undo(self, sample, window):
            calls.append(("undo", True))
            return super().undo(sample, window)

    one(Diary, "jitter", duration="10s")
    one(Diary, "timeouts", duration="20s", flow={"app": {"rate": "10kB/s", "chunk": "1KB"}})
    got = set(calls)
    assert {name for name, _ in got} == {"seed", "init", "in_ack", "pkts_acked", "on_lost", "on_ack", "ssthresh", "on_state", "on_event", "undo"}
    assert {("on_lost", True), ("seed", int), ("init", CaState.OPEN), ("on_state", CaState.RECOVERY), ("on_state", CaState.LOSS)} <= got
    assert {("on_event", CaEvent.COMPLETE_CWR), ("on_event", CaEvent.LOSS), ("on_event", CaEvent.TX_START)} <= got
    first = [name for name, _ in calls]
    assert first[:2] == ["seed", "init"]
    assert first.index("pkts_acked") < first.index("in_ack") < first.index("on_ack")


def test_one_that_owns_the_window_is_paced_at_its_own_rate():
    class Steady:
        owns_window = paced = True
        reacts_to_loss = False

        def init(self, sample, window):
            window.pacing_rate, window.cwnd = 500e3, 100

        def on_ack(self, sample, window):
            assert window.pacing_rate == 500e3
            window.cwnd = 100

    assert one(Steady, "clean").goodput_mbps == pytest.approx(4.0, rel=0.1)


def test_one_may_ask_for_a_reduction():
    class Early(Control):
        asked = 0

        def on_ack(self, sample, window):
            window.slow_start(sample.acked) if window.in_slow_start else window.additive_increase(window.cwnd, sample.acked)
            if sample.may_raise and sample.srtt_us > 1.5 * sample.min_rtt_us:
                window.enter_cwr = True
                Early.asked += 1

    early, reno = one(Early, "clean", duration="10s"), one("reno", "clean", duration="10s")
    assert Early.asked > 0
    assert early.flows[0].retransmits == 0 < reno.flows[0].retransmits
    assert early.flows[0].rtt_ms.p95 < reno.flows[0].rtt_ms.p95


def test_marks_are_seen_by_one_that_needs_ecn():
    class Marked(Control):
        needs_ecn = True
        ok = None

        def on_ack(self, sample, window):
            Marked.ok = sample.ecn_ok

    one(Marked, "clean")
    assert Marked.ok is True


def test_ways_in(cli, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text((ROOT / "examples" / "python" / "aimd.py").read_text())
    (tmp_path / "exp").mkdir()
    (tmp_path / "exp" / "theirs.py").write_text((ROOT / "examples" / "python" / "aimd.py").read_text())
    (tmp_path / "exp" / "case.yaml").write_text(
        "forward: netem delay 10ms loss 1%\nreverse: netem delay 10ms\nduration: 2s\n"
        "flows: [{cca: 'theirs.py:Aimd'}, {cca: {name: 'theirs.py:Aimd'}}]\n"
    )
    monkeypatch.chdir(tmp_path)
    words = ["--forward", "netem delay 10ms loss 1%", "--reverse", "netem delay 10ms", "--duration", "2s", "--seeds", "2"]
    for name in ("mine.py:Aimd", "mine:Aimd", f"{tmp_path / 'mine.py'}:Aimd"):
        got = cli("run", *words, "--cca", f"reno,{name}")
        assert got.status == 0, got.err
        assert f"{name}: Python takes" in got.out
    assert "µs an ACK" in cli("run", tmp_path / "exp" / "case.yaml", "--seeds", "1").out
    assert cli("run", *words, "--mix", "mine.py:Aimd*2,cubic@1s").status == 0
    assert cli("run", *words, "--cca", "mine.py:Aimd", "--pcap", tmp_path / "x.pcapng").status == 0
    as_json = cli("run", *words, "--cca", "mine.py:Aimd", "--json").lines
    assert as_json[0]["hook_cost"]["acks"] > 0
    sys.modules.pop("mine", None)


def test_a_class_itself_in_python():
    class Mine(classes.find(AIMD).cls):
        pass

    frame = tcpscape.run(scenario(), cca=[Mine, "reno"], seeds=range(2)).flows()
    assert frame["cca"].to_list() == ["test_own:Mine"] * 2 + ["reno"] * 2
    assert tcpscape.run(scenario(), cca=Mine, seeds=[0]).trials[0].goodput_mbps == frame["goodput_mbps"][0]


def test_two_classes_of_one_name_are_two():
    def keeping(share):
        class Mine(classes.find(AIMD).cls):
            def ssthresh(self, sample, window):
                return max(2, window.cwnd * share // 10)

        return Mine

    rates = tcpscape.run(scenario(), cca=[keeping(1), keeping(9)], seeds=[0]).flows()
    assert rates["goodput_mbps"][0] < rates["goodput_mbps"][1]


def test_parameters_are_arguments_of_the_constructor(cli, tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Fixed:\n"
        "    def __init__(self, packets, share=1, seed=0):\n"
        "        assert type(packets) is int and type(share) in (int, float) and seed\n"
        "        self.cwnd = int(packets * share)\n"
        "    def on_ack(self, sample, window):\n"
        "        window.cwnd = self.cwnd\n"
    )
    words = ["--forward", "netem delay 50ms", "--seeds", "1", "--duration", "3s"]
    name = f"{tmp_path / 'mine.py'}:Fixed"
    got = cli("run", *words, "--cca", f"{name}:packets=20,{name}:packets=20:share=0.5", "--json")
    assert got.status == 0, got.err
    assert [x["cca"] for x in got.lines] == [f"{name}:packets=20", f"{name}:packets=20:share=0.5"]
    assert [x["flows"][0]["cwnd"]["max"] for x in got.lines] == [20, 10]
    for bad, said in (("", "missing 1 required positional argument"), (":gain=2", "unexpected keyword"), (":packets=5ms", "is no number")):
        got = cli("run", *words, "--cca", f"{name}{bad}")
        assert (got.status, got.err.count("\n")) == (2, 1)
        assert said in got.err
    assert scenario().with_cca(f"{name}:packets=7").to_dict()["flows"] == [{"cca": f"{name}:packets=7"}]


def test_ctrl_c_ends_a_trial_at_once(tmp_path):
    """The hook says that the trial runs; the interpreter is busy with it, and would be for minutes."""
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\n"
        "class Busy:\n"
        "    def init(self, sample, window):\n"
        "        Path('runs').touch()\n"
        "    def on_ack(self, sample, window):\n"
        "        window.cwnd = 100\n"
    )
    words = ["run", "--forward", "netem delay 1ms", "--reverse", "netem delay 1ms", "--duration", "3000s", "--seeds", "2", "--cca", "mine.py:Busy"]
    child = subprocess.Popen([sys.executable, "-m", "tcpscape", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        while not (tmp_path / "runs").exists():
            assert child.poll() is None
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=PATIENCE_S)
    finally:
        child.kill()
    assert (child.returncode, err.count("Traceback")) == (130, 0)


@pytest.mark.parametrize("engine", ["mock", "virtual"])
def test_other_engines_refuse_in_one_line(engine):
    with pytest.raises(TcpscapeError, match=r"is Python code, which the \w+ engine cannot run; use --engine model"):
        engines.REGISTRY[engine]().check(scenario().with_cca(AIMD))


def test_a_changed_file_is_another_experiment(tmp_path):
    file = tmp_path / "mine.py"
    model, name = engines.make("model"), f"{file}:Aimd"
    text = (ROOT / "examples" / "python" / "aimd.py").read_text()
    file.write_text(text)
    before = tcpscape.run(scenario(), cca=name, seeds=[1], samples="0s", out=tmp_path / "out").trials[0]
    file.write_text(text.replace("BETA = 0.8", "BETA = 0.25"))
    after = tcpscape.run(scenario(), cca=name, seeds=[1], samples="0s", out=tmp_path / "out").trials[0]
    assert before.address != after.address
    assert before.goodput_mbps > after.goodput_mbps
    kept = Store(tmp_path / "out").load(model.address(scenario().with_cca(name), 1))
    assert (kept, kept.hook_cost) == (after, after.hook_cost)
