"""Commands behind the path of a scenario as trials: what is asked, what is refused, and what the kernels give."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import tcpscape
from tcpscape import engines, metrics
from tcpscape.campaign import execute
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.source import campaign
from tcpscape.engines import programs
from tcpscape.errors import TcpscapeError
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.results import Store
from tcpscape.store.rows import decode, encode
from tcpscape.trial import Capture, ProgramResult
from tcpscape.web.opened import Follower
from tcpscape.words import paths

PATH = {"forward": "netem delay 25ms", "reverse": "netem delay 25ms"}
COMMAND = {"command": "curl -s http://far/page", "serve": ["python3 -m http.server 80"]}


def cases(options=None, **fields):
    return campaign(None, {"rtt": "50ms", "rate": "10mbit", **(options or {})}, {"programs": COMMAND, "engines": ("virtual",), **fields}).cases()


def test_a_scenario_with_programs_reads_back_as_it_was():
    for fields in ({}, {"duration": "10s"}, {"offload": False}, {"flows": [{}]}, {"flows": [{"cca": "bbr", "count": 2}]}):
        scenario = Scenario.of({**PATH, "programs": COMMAND, **fields})
        again = Scenario.of(scenario.to_dict())
        assert again == scenario
        assert again.address() == scenario.address()
    plain = Scenario.of({**PATH, "programs": COMMAND})
    assert (plain.flows, plain.offload, plain.duration) == ((), True, 600 * 10**9)
    assert Scenario.of({**PATH, "programs": COMMAND, "flows": [{}]}).address() != plain.address()
    assert "programs" not in json.dumps(Scenario.of(PATH).to_dict())


def test_hosts_and_a_router_are_part_of_the_job_and_only_then_of_the_address():
    job = programs.hosts(["iperf3 -s", "cdn: sh -c 'a: b'", "near: echo x"], ["cdn"], "tc qdisc")
    assert [(one["host"], one["command"]) for one in job["serve"]] == [("far", "iperf3 -s"), ("cdn", "sh -c 'a: b'"), ("near", "echo x")]
    plain = Scenario.of({**PATH, "programs": COMMAND})
    assert Scenario.of({**PATH, "programs": {**COMMAND, "host": [], "router_command": None}}).address() == plain.address()
    for more in ({"host": "cdn"}, {"router_command": "tc qdisc"}):
        other = Scenario.of({**PATH, "programs": {**COMMAND, **more}})
        assert other.address() != plain.address()
        assert Scenario.of(other.to_dict()) == other


def test_a_command_is_measured_by_its_completion_where_nothing_else_is_asked():
    path = {"rtt": "50ms"}
    assert campaign(None, path, {"programs": COMMAND}).metric == "completion"
    assert campaign(None, path, {"programs": COMMAND, "metric": "goodput"}).metric == "goodput"
    assert campaign(None, path, {}).metric == "goodput"
    assert cases({"count": "1,4"}, programs={"command": "ping -c ${count} far"})[1].scenario.programs.command == "ping -c 4 far"


def test_a_path_in_words_has_its_bottleneck_in_both_directions():
    (case,) = cases()
    assert case.scenario.reverse[-1] == case.scenario.bottleneck[-1]
    whole = {"scenario": {**PATH, "bottleneck": {"rate": "5mbit"}}}
    (case,) = campaign(whole, {}, {"programs": COMMAND, "engines": ("virtual",)}).cases()
    assert [hop for hop in case.scenario.reverse if "rate" in str(hop)] == []


def test_axes_go_into_the_command_and_controls_to_both_ends():
    command = {"command": "iperf3 -c far -P ${streams}"}
    every = cases({"streams": "1,4"}, programs=command, cca=("cubic", "bbr"))
    assert [(case.at["streams"], case.cca, case.scenario.programs.command[-1]) for case in every] == [
        ("1", "cubic", "1"),
        ("1", "bbr", "1"),
        ("4", "cubic", "4"),
        ("4", "bbr", "4"),
    ]
    (shaped, *_) = every = cases({"least": "1,3"}, programs={**command, "command": "true", "router_command": "sh shaper.sh ${least}"})
    assert [case.scenario.programs.router_command for case in every] == ["sh shaper.sh 1", "sh shaper.sh 3"]
    assert paths.flows(shaped.scenario) == "the command 'true' behind a router with 'sh shaper.sh 1'"
    (mixed,) = cases(mix="cubic*2,bbr~up")
    assert (mixed.cca, mixed.scenario.flow_count, mixed.scenario.programs.cca) == ("bbr+cubic", 3, "cubic")
    (mixed,) = cases(mix="bbr", cca=("reno",))
    assert ([flow.cca for flow in mixed.scenario.flows], mixed.scenario.programs.cca) == (["bbr"], "reno")


@pytest.mark.parametrize(
    ("options", "fields", "why"),
    [
        ({"flows": "2"}, {}, "flows: programs make their own connections; leave it out"),
        ({"rcvbuf": "64KiB"}, {}, "rcvbuf: programs make their own connections"),
        ({"chunk": "4KB,8KB"}, {}, "chunk: programs make their own connections"),
        ({}, {"programs": {"command": "true", "serve": ["python3 'x"]}}, "serve: no closing quotation; close the quotation"),
        ({}, {"programs": {"command": "true", "serve": "cdn: true"}}, "serve: there is no host 'cdn'; choose near, far, or add it with --host cdn"),
        (
            {},
            {"programs": {"command": "true", "serve": "a_b: true"}},
            "there is no host 'a_b'; choose near, far, or add one with --host, for example cdn",
        ),
        ({}, {"programs": {"command": "true", "serve": "router: true"}}, "choose near, far, or add one with --host, for example cdn"),
        ({}, {"programs": {"command": "true", "serve": "far:"}}, "serve: there is none; name a program"),
        ({}, {"programs": {"command": "true", "host": ["cdn", "cdn"]}}, "host: 'cdn' is there twice; leave one out"),
        ({}, {"programs": {"command": "true", "host": "router"}}, "host: 'router' is one already; choose another name"),
        ({}, {"programs": {"command": "true", "router_command": "tc '"}}, "router-command: no closing quotation; close the quotation"),
        ({}, {"programs": {"command": "curl 'http"}}, "command: no closing quotation; close the quotation"),
        ({}, {"programs": {"command": " "}}, "command: there is none; name a program"),
        ({}, {"mix": "bbr", "cca": ("cubic", "reno")}, "mix: it says congestion controls and counts itself"),
        ({}, {"cca": ("cubic:hystart=off",)}, "programs.cca: 'cubic:hystart=0' sets a parameter, and programs have the kernel's control"),
    ],
)
def test_what_means_nothing_with_programs_is_refused(options, fields, why):
    with pytest.raises(TcpscapeError) as error:
        cases(options, **fields)
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_an_engine_without_a_kernel_refuses_programs(need_model):
    for name in ("model", "mock"):
        with pytest.raises(TcpscapeError, match=f"programs: the {name} engine has no kernel to run a command; use --engine virtual or live"):
            engines.make(name).check(Scenario.of({**PATH, "programs": COMMAND}))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"probes": ["voice"]}, "scenario: it has probes, which programs do not meet; leave them out"),
        ({"ecn": True}, "ecn: programs have the engine's kernel with its settings"),
        ({"kernel": "6.12"}, "kernel: programs have"),
        ({"programs": {**COMMAND, "cca": "nosuch"}}, "cca: 'nosuch' is not in the virtual engine's kernel; choose "),
    ],
)
def test_what_the_engine_cannot_give_programs_is_refused(need_programs, fields, why):
    with pytest.raises(TcpscapeError) as error:
        engines.make("virtual").check(Scenario.of({**PATH, "programs": COMMAND, **fields}))
    assert why in str(error.value)


def test_servers_without_a_command_are_refused(shell):
    command = shell("sweep", "--rtt", "50ms", "--serve", "true")
    assert (command.status, command.err) == (
        2,
        "error: serve: there is no command that would use it; give --command too, for example 'curl -s http://far/'\n",
    )


def test_the_files_that_a_command_names_are_in_the_address(tmp_path):
    script = tmp_path / "client.py"
    script.write_text("print(1)")
    scenario = Scenario.of({**PATH, "programs": {"command": f"{sys.executable} {script}"}})
    before = programs.digest(scenario)
    assert before == programs.digest(scenario)
    script.write_text("print(12)")
    assert programs.digest(scenario) != before


def test_of_flows_of_ours_a_starved_one_is_kept_and_of_connections_the_small_are_left_out():
    def row(port, size):
        return {"from": ("10.77.2.2", port), "to": ("10.77.1.2", 40_000), "facts": {"bytes": size, "start_s": 0.0, "seconds": 1.0}}

    scenario = Scenario.of({**PATH, "programs": COMMAND, "flows": [{"cca": "bbr"}, {"cca": "reno"}]})
    rows = [row(9_000, 10**9), row(9_001, 0), row(80, 10**6), row(81, 20_000), row(82, 9_000)]
    observed = [(flow.cca, flow.group, flow.bytes_received) for flow in programs._observed(scenario, rows)]
    assert observed == [("cubic", 0, 10**6), ("cubic", 0, 20_000), ("bbr", 1, 10**9), ("reno", 2, 0)]


class Kernel(engines.REGISTRY["mock"]):
    """A kernel that needs none: what its version says of a scenario is the files of the command."""

    def version_for(self, scenario):
        return f"{self.version} {programs.digest(scenario)}"


class Reader:
    def feed(self, content):
        if not content:
            raise ValueError("is empty")

    def finish(self):
        return None, []


def run(scenario, start, capture=Capture()):
    return programs.run(Kernel(), SimpleNamespace(CaptureReader=Reader), scenario, 1, capture, start)


@pytest.fixture
def ran(monkeypatch):
    """Runs a command of which only the result is there: what it writes, its exit status, flags, and the bytes of its capture."""
    monkeypatch.setattr(programs, "job_of", lambda lib, scenario, seed, **more: more)

    def result(line="true", *, output=b"", error=b"", status=0, flags=(), packets=b"packets", touch=None):
        def start(job, out, errors):
            Path(job["pcap"]).write_bytes(packets)
            out.write(output)
            errors.write(error)
            if touch:
                touch.write_text("changed")
            way = {"bytes_out": 0, "packets_out": 0, "delay": {"mean": 0.0, "p99": 0}}
            return {"elapsed_ns": 10**9, "status": status, "is_late": False, "flags": list(flags), "link": {"forward": way, "reverse": way}}

        return run(Scenario.of({**PATH, "programs": {"command": line}}), start)

    return result


def test_a_trial_has_the_address_of_the_files_before_it_ran(ran, tmp_path):
    file = tmp_path / "page.html"
    file.write_text("before")
    scenario = Scenario.of({**PATH, "programs": {"command": f"curl -o {file} far"}})
    address = Kernel().address(scenario, 1)
    assert ran(f"curl -o {file} far", touch=file).address == address != Kernel().address(scenario, 1)


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (
            {"flags": ["the capture has the first 1048576 packets of each direction; 7 further ones are not in it"]},
            "does not have all of their packets",
        ),
        ({"packets": b""}, "the capture of their packets is empty"),
    ],
)
def test_of_a_capture_that_is_not_whole_no_flow_is_told(ran, what, why):
    trial = ran(**what)
    assert trial.flows == ()
    assert math.isnan(metrics.find("delay_down").of(trial)), "no packet, no delay"
    assert why in trial.caveats[-1]


def test_a_script_whose_status_is_127_failed_and_began(ran):
    trial = ran("sh -c x", status=127, error=b"sh: 1: x: not found\n")
    assert trial.caveats[0] == "the command ended with status 127: sh: 1: x: not found"
    assert ran(status=126, output=b"began\n", error=b"tcpscape: x\n").program.status == 126
    with pytest.raises(TcpscapeError, match="command: 'nosuch' cannot be run: tcpscape: nosuch: No such file"):
        ran("nosuch", status=127, error=b"tcpscape: nosuch: No such file or directory\n")


def test_the_trials_of_an_unfinished_sweep_of_a_command_are_there(ran, tmp_path):
    class Runs(Kernel):
        def check(self, scenario):
            pass

        def run(self, scenario, seeds, **options):
            return [replace(ran(), seed=seed, address=self.address(scenario, seed)) for seed in seeds]

    sweep = campaign(None, {"rtt": "50ms"}, {"programs": COMMAND, "engines": ("mock",), "seeds": "2"})
    with Store(tmp_path) as store:
        execute.run(sweep, execute.Execution(store=store, make=lambda name: Runs()))
        (followed,) = Follower(store).look()
    assert followed.done == 2


FETCH = """
import json, sys, time, urllib.request
begin = time.time()
data = urllib.request.urlopen("http://far:8000/file").read()
print(json.dumps({"bytes": len(data), "s": time.time() - begin}))
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def fetch(tmp_path):
    (tmp_path / "file").write_bytes(bytes(400_000))
    (tmp_path / "fetch.py").write_text(FETCH)
    serve = f"{sys.executable} -m http.server 8000 -d {tmp_path}"
    return {"serve": [serve], "rtt": "40ms", "rate": "8mbit", "out": tmp_path / "out", "seeds": 2, "jobs": 2}, f"{sys.executable} {tmp_path}/fetch.py"


def test_a_sweep_of_a_command_in_virtual_time(need_programs, fetch):
    options, command = fetch
    outcome = tcpscape.sweep(**options, command=f"{command} ${{status}}", axes={"status": "0,3"}, engine="virtual", metric="completion")
    good, bad = outcome.cells
    whole, s, completion, goodput = (metrics.find(name) for name in ("output:bytes", "output:s", "completion", "goodput"))
    for trial in good.trials:
        assert whole.of(trial) == 400_000
        assert 400_000 <= trial.flows[0].bytes_received < 400_500
        assert whole.of(trial) * 8e-6 / s.of(trial) < goodput.of(trial) < 8  # it has no time before the connection
        assert s.of(trial) < completion.of(trial) < s.of(trial) + 0.01
        assert metrics.find("rtt_min").of(trial) == pytest.approx(40, abs=1)
        down, down_p99, up = (metrics.find(name).of(trial) for name in ("delay_down", "delay_down_p99", "delay_up"))
        assert 20 < down < down_p99 < 20 + 40 + 2, "20 ms each way, and a queue of 40 ms at most that the download fills"
        assert 20 <= up < 22, "nothing waits on the way up"
        assert [flow.direction for flow in trial.flows] == ["down"]
    assert good.trials[0].hash != good.trials[1].hash
    for trial in bad.trials:
        assert (metrics.find("failed").of(trial), completion.of(trial) != completion.of(trial)) == (1, True)
        assert trial.caveats[0] == "the command ended with status 3"
    ran = []
    again = tcpscape.sweep(
        **options, command=f"{command} ${{status}}", axes={"status": "0,3"}, engine="virtual", progress=lambda done, total: ran.append(done)
    )
    assert ran[0] == 4
    assert [t.program for cell in again.cells for t in cell.trials] == [t.program for cell in outcome.cells for t in cell.trials]


QUIC = Path(__file__).resolve().parents[2] / "examples" / "quic"


def test_the_campaign_of_quic_stacks_names_programs_that_are_built():
    cases = Campaign.load(QUIC / "conformance.yaml").cases()
    stacks = {case.at["stack"] for case in cases}
    tcp = "python3 tcp_transfer.py"
    assert stacks - {tcp} == {file.stem for file in (QUIC / "src" / "bin").iterdir()}
    assert len(cases) == len(stacks) * 2 * 16, "two controls on the grid of 2 round trips, 2 rates and 4 buffers"
    assert [case.scenario.programs.serve for case in cases[:1]] == [(f"{tcp} serve cubic",)]


def test_the_campaign_of_quic_stacks_runs(need_programs, monkeypatch):
    monkeypatch.chdir(QUIC)
    path = {"rtt": "50ms", "rate": "20mbit", "buffer": "1bdp"}
    outcome = tcpscape.sweep("conformance.yaml", axes={"stack": "python3 tcp_transfer.py"}, mix="reno", seeds=1, **path)
    assert [cell.cca for cell in outcome.cells] == ["cubic+reno", "bbr+reno"]
    for cell in outcome.cells:
        (trial,) = cell.trials
        rate, delay, own = (metrics.find(name).of(trial) for name in ("carried_down", "delay_down", "output:mbps"))
        beside = metrics.find("goodput:reno").of(trial)
        assert 17 < rate < 20.1, "two flows fill 20 Mbit/s but for their start"
        assert 25 < delay < 25 + 50 + 2
        assert own + beside == pytest.approx(rate, rel=0.06), "what both applications read, and headers"


def test_a_command_that_cannot_be_run_is_named(need_programs, fetch):
    options, _ = fetch
    with pytest.raises(TcpscapeError, match=r"command: 'nosuchprogram' cannot be run: .*; correct it"):
        tcpscape.sweep(**options, command="nosuchprogram", engine="virtual")


def test_flows_of_ours_share_the_path_with_a_command(need_programs, fetch):
    options, command = fetch
    outcome = tcpscape.sweep(**options, command=f"{command} 0", mix="reno*2@0s,bbr~up@0s", engine="virtual", cca=None)
    for trial in outcome.cells[0].trials:
        assert trial.program.status == 0
        labels = sorted((flow.cca, flow.direction, flow.group) for flow in trial.flows)
        assert labels == [("bbr", "up", 2), ("cubic", "down", 0), ("reno", "down", 1), ("reno", "down", 1)]
        shares = [metrics.find(f"share:{cca}").of(trial) for cca in ("reno", "cubic")]
        assert min(shares) > 0


def test_a_command_in_real_time(fetch):
    live = engines.REGISTRY["live"]()
    if reason := live.unavailable():
        pytest.skip(f"engine live: {reason}")
    options, command = fetch
    outcome = tcpscape.sweep(**options, command=f"{command} 0", engine="live")
    for trial in outcome.cells[0].trials:
        assert (trial.program.status, trial.program.values["bytes"], trial.hash) == (0, 400_000, None)
        assert 0.4 < trial.program.values["s"] < trial.program.seconds


def test_what_a_command_gave_is_kept(need_model):
    trial = engines.make("mock").run(Scenario.of(PATH), [1])[0]
    program = ProgramResult(status=0, timed_out=False, seconds=1.5, down_mbps=2.0, up_mbps=0.5, values={"a.b": 1.0})
    kept = type(trial)(**{**{name: getattr(trial, name) for name in type(trial).__slots__}, "program": program})
    _, text, queues = encode(kept)
    assert decode(text, queues).program == program
    assert metrics.find("completion").of(kept) == 1.5
    assert str(metrics.find("completion").of(trial)) == "nan"


def test_flows_of_ours_beside_an_emulated_command(need_programs, tmp_path):
    path = {"rtt": "40ms", "rate": "8mbit", "engine": "virtual"}
    result = tcpscape.emulate("sleep 4", mix="reno,bbr~up@1s-3s", **path)
    down, up = (result.summary[way]["rate_mbps"] for way in ("down", "up"))
    assert 7 < down <= 8
    assert 2 < result.summary["up"]["active_s"] < 4.1
    assert up < 8
    for mix, why in (
        ("cubic~rtt=20ms", "has RTTs of its flows, which have no place beside a command"),
        ("nosuch", "mix: this kernel has no nosuch; choose bbr"),
    ):
        with pytest.raises(TcpscapeError, match=why):
            tcpscape.emulate("true", mix=mix, **path)
