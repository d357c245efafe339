"""The live engine: what it refuses, what a trial on this machine's kernel says, and that trials run one at a time."""

import os
import re
import subprocess
import sys
import threading

import pytest

from patience import PATIENCE_S
from tcpscape import engines
from tcpscape.campaign.execute import Runner
from tcpscape.engines import host, live
from tcpscape.errors import EngineError, TcpscapeError
from tcpscape.scenario import options
from tcpscape.trial import Capture

pytestmark = pytest.mark.usefixtures("need_model")
PATH = {"forward": "netem delay 5ms loss 1%", "bottleneck": "tbf rate 10mbit burst 6056 limit 62500", "reverse": "netem delay 5ms"}


@pytest.fixture
def engine():
    made = live.Live()
    if reason := made.unavailable():
        pytest.skip(f"engine live: {reason}")
    return made


def scenario(**fields):
    return options.scenario(fields.pop("path", PATH), **{"duration": "1s", **fields})


@pytest.mark.parametrize(
    ("text", "backend", "root"),
    [
        (None, "emulator", False),
        ("emulator", "emulator", False),
        ("netem", "netem", False),
        ("emulator+root", "emulator", True),
        ("netem+root", "netem", True),
    ],
)
def test_variants(text, backend, root):
    made = live.Live.of(text)
    assert (made.variant.backend, made.variant.root) == (backend, root)
    assert engines.REGISTRY["live"].of(text).spec == ("live" if text is None else f"live:{text}")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cca": "nosuch"}, "cca: 'nosuch' is not ready in this kernel"),
        ({"cca": "bbr3"}, "cca: 'bbr3' is the model's alone"),
        ({"cca": "cubic:hystart=0"}, "sets a parameter, and this machine has one value for everybody"),
        ({"kernel": "6.12,window=half"}, "kernel.window: this kernel has its own"),
        ({"kernel": "6.99"}, "6.99"),
        ({"flows": 2001}, "flows: 2001 flows are too many"),
    ],
)
def test_what_it_cannot_run_is_refused_by_name(fields, message):
    with pytest.raises(TcpscapeError, match=re.escape(message)):
        live.Live().check(scenario(**fields))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"links": [{"delay": "5ms"}], "flow": {"leave": "r1"}}, "links"),
        ({"flow": {"rtt": "50ms"}}, "access"),
        ({"flow": {"access": "netem delay 2ms"}}, "access"),
    ],
)
def test_a_network_of_hosts_with_places_of_their_own_is_refused_by_name(fields, field):
    with pytest.raises(TcpscapeError, match=f"{field}: the emulator is one path between two hosts") as e:
        live.Live().check(scenario(**fields))
    assert "use --engine model or virtual" in str(e.value)


def test_queues_that_tc_does_not_have_are_refused_by_netem_only():
    in_order = scenario(path={"forward": "jitter delay 5ms 1ms order clamp"})
    live.Live().check(in_order)
    with pytest.raises(TcpscapeError, match="is not tc's"):
        live.Live("netem").check(in_order)


def test_memory_follows_the_kernel_that_the_scenario_names():
    engine = live.Live()
    assert engine._job(scenario(), 0, Capture())["sysctls"] == {}
    named = engine._job(scenario(kernel="6.1,rmem_max=64KiB", flow={"rcvbuf": "1MiB"}, ecn=True), 0, Capture())
    assert named["sysctls"] == {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304", "net.ipv4.tcp_ecn": "1"}
    assert named["plan"]["flows"][0]["rcvbuf"] == 64 << 10


def test_a_trial_in_real_time(engine):
    trial = engine.run(scenario(flows=2), [7], capture=Capture(samples_ns=10_000_000, queue_samples_ns=50_000_000))[0]
    assert (trial.engine, trial.seed, trial.duration, len(trial.flows)) == ("live", 7, 1.0, 2)
    assert 2 < trial.goodput_mbps <= 10.0
    for flow in trial.flows:
        assert 10.0 <= flow.min_rtt_ms < 30.0
        assert flow.established
    assert [q["name"] for q in trial.queues if not q["depth"]] == ["netem", "tbf", "netem"]
    assert trial.queues[0]["drops"]["loss"] > 0
    assert trial.samples.height >= 150
    assert trial.queue_samples["pipe"].unique().sort().to_list() == [0, 1, 2]
    assert trial.check["backend"] == "emulator"
    assert trial.check["stages"][0]["loss_asked"] == pytest.approx(0.01)
    assert trial.check["emulator"]["forward"]["unasked"]["entrance"] == 0
    assert trial.check["control"]["rate_mbps"] > 0


def test_a_flow_that_its_window_limits_carries_what_it_carries_in_the_model(engine):
    path = {"forward": "netem delay 5ms limit 100000", "reverse": "netem delay 5ms limit 100000"}
    plain = scenario(path=path, flow={"rcvbuf": "64KiB"}, kernel="host")
    ours = engines.make("model").run(plain, [0])[0].goodput_mbps
    # A machine that pauses delays a round trip and shortens none: of a few trials the fastest is the kernel's own.
    fastest = max(engine.run(plain, [seed])[0].goodput_mbps for seed in range(5))
    assert fastest == pytest.approx(ours, rel=0.1)


def test_an_interrupt_ends_the_trial(engine):
    long = scenario(duration="60s")
    failures = []

    def run():
        try:
            engine.run(long, [0])
        except EngineError as e:
            failures.append(str(e))

    engine.run(scenario(), [0])  # the control cell is measured
    thread = threading.Thread(target=run)
    thread.start()
    while not engine._running:
        thread.join(0.01)
    engine.stop()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert failures


def test_one_process_at_a_time():
    order = []

    def second():
        with host.alone(lambda: False):
            order.append("second")

    with host.alone(lambda: False):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join(PATIENCE_S)
    assert order == ["first", "second"]


def test_who_waits_for_a_turn_can_be_interrupted():
    with host.alone(lambda: False):
        seen = []

        def second():
            try:
                with host.alone(lambda: True):
                    pass
            except EngineError as e:
                seen.append(str(e))

        thread = threading.Thread(target=second)
        thread.start()
        thread.join(PATIENCE_S)
    assert seen == ["engine: the trial was interrupted; run it again"]


NOBODY = 65534
AS_NOBODY = f"""
import os, sys
import numpy, polars
from tcpscape.engines import live
from tcpscape.trial import Capture
from tcpscape.scenario import options
engine = live.Live()
os.chdir("/")
os.setgroups([])
os.setresgid({NOBODY}, {NOBODY}, {NOBODY})
os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
if reason := engine.unavailable():
    print("skip", reason)
    sys.exit()
scenario = options.scenario({PATH!r}, duration="1s")
for cca in ("cubic", "bbr"):
    if cca in engine.ccas():
        trial = engine.run(scenario.with_cca(cca), [0], capture=Capture(samples_ns=10_000_000))[0]
        print(os.getuid(), trial.goodput_mbps > 1, trial.samples.height > 50, trial.check["backend"])
"""
"""A trial of a user without capabilities; what it needs of Python is imported before, since another user may not read it."""


def test_a_user_without_rights_runs_trials(engine):
    if os.getuid() != 0:
        pytest.skip("only root can become another user; the other tests run as this one")
    done = subprocess.run([sys.executable, "-c", AS_NOBODY], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    if done.stdout.startswith("skip "):
        pytest.skip(f"as user {NOBODY}: {done.stdout[5:].strip()}")
    lines = done.stdout.splitlines()
    assert lines
    assert all(line == f"{NOBODY} True True emulator" for line in lines), done.stdout


def test_trials_of_one_at_a_time_take_one_thread():
    class Alone(engines.REGISTRY["mock"]):
        at_once = 1
        together = most = 0

        def run(self, *args, **options):
            type(self).together += 1
            type(self).most = max(type(self).most, type(self).together)
            try:
                return super().run(*args, **options)
            finally:
                type(self).together -= 1

    Runner(Alone(), jobs=4).run(scenario(), range(20))
    assert Alone.most == 1


@pytest.fixture
def in_real_time(monkeypatch):
    """The mock as an engine whose trials run in real time, with a control cell that is as good as `rtt_ms` says."""

    class RealTime(engines.REGISTRY["mock"]):
        at_once = 1
        rtt_ms = 0.05

        def seconds(self, scenario):
            return scenario.duration / 1e9

        def verify(self, scenarios):
            control = live.ControlCell(self.rtt_ms, 1000.0)
            if problems := list(control.problems):
                raise EngineError(f"verify: {problems[0]}")
            return [f"control cell: {len(scenarios)} scenarios"]

    monkeypatch.setitem(engines.REGISTRY, "mock", RealTime)
    return RealTime


def test_real_time_is_announced_once_and_jobs_with_it(in_real_time, cli):
    done = cli("run", "--forward", "netem delay 5ms", "--engine", "mock", "--jobs", "4", "--seeds", "3", "--duration", "20s", "--cca", "cubic,bbr")
    assert done.status == 0
    assert done.err.splitlines() == [
        "note: 6 trials in real time, one at a time, whatever --jobs says: 120s; a shorter duration or fewer seeds take less"
    ]


def test_verify_comes_before_a_campaign(in_real_time, cli, tmp_path):
    words = ("--engine", "mock", "--seeds", "2", "--verify")
    done = cli("sweep", "--rtt", "10ms,20ms", "--cca", "cubic,bbr", *words, "--out", tmp_path / "o")
    assert done.status == 0
    assert "control cell: 4 scenarios" in done.err
    in_real_time.rtt_ms = 5.0
    done = cli("run", "--forward", "netem delay 5ms", *words)
    assert done.status == 2
    assert done.err.endswith("error: verify: a path without delay has a median RTT of 5 ms: this machine is busy\n")


def test_engines_that_are_not_in_real_time_have_nothing_to_verify(cli):
    done = cli("run", "--forward", "netem delay 5ms", "--engine", "model", "--seeds", "1", "--verify")
    assert (done.status, done.err) == (
        2,
        "error: verify: the model engine does not run in real time, so there is nothing to verify; leave out --verify\n",
    )


def test_a_control_cell_says_why_it_is_bad():
    assert list(live.ControlCell(0.05, 1000.0).problems) == []
    assert list(live.ControlCell(None, 0.0).problems) == ["a path without impairments carries nothing"]
    assert list(live.ControlCell(0.05, 1000.0, ("the clock was set",)).problems) == ["the clock was set"]


def test_packets_are_written_as_the_emulator_saw_them(engine, tmp_path):
    file = tmp_path / "x.pcapng"
    engine.write_pcap(scenario(), 3, file)
    content = file.read_bytes()
    assert content[:4] == b"\x0a\x0d\x0d\x0a"
    assert b"dropped: netem loss at forward stage 0" in content
