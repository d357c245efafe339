"""iperf3's and Flent's files, both ways. The files in tests/data/interchange are those tools' own."""

import gzip
import json
import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tcpscape
from conftest import TESTS, need
from patience import PATIENCE_S
from tcpscape import interchange
from tcpscape.interchange import InterchangeError, flent, iperf3, sources
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture

DATA = TESTS / "data" / "interchange"
FLENT = next(DATA.glob("*.flent.gz"))
MIX = {
    "name": "mix",
    "forward": "netem delay 10ms limit 1000",
    "bottleneck": "tbf rate 20mbit burst 6056 limit 60000",
    "reverse": "netem delay 10ms limit 1000",
    "flows": [{"cca": "cubic:hystart=off"}, {"cca": "bbr", "start": "2s"}],
    "duration": "5s",
}


@pytest.fixture(scope="module")
def mix():
    """A trial of two flows, the second later, with samples."""
    need("model")
    return tcpscape.run(MIX, seeds=[3], samples="100ms").trials[0]


@pytest.fixture(scope="module")
def one():
    need("model")
    return tcpscape.run(MIX | {"flows": [{"cca": "cubic"}]}, seeds=[0], samples="100ms").trials[0]


def only(path: Path):
    (trial,) = interchange.read(path).trials
    return trial


def saved(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# ---- iperf3, read


def test_two_streams_of_iperf3():
    said = json.loads((DATA / "iperf3-up-2.json").read_text())
    got = interchange.read(DATA / "iperf3-up-2.json")
    (trial,) = got.trials
    assert (trial.engine, trial.version, trial.cca, trial.caveats) == ("iperf3", "iperf 3.12", "cubic", ())
    first = trial.flows[0]
    end = said["end"]["streams"][0]
    assert first.goodput_mbps == pytest.approx(end["receiver"]["bits_per_second"] / 1e6)
    assert (first.retransmits, first.bytes_received, first.bytes_sent) == (2, end["receiver"]["bytes"], end["sender"]["bytes"])
    assert (first.rtt_ms.min, first.rtt_ms.max, first.rtt_ms.mean) == (0.023, 0.054, 0.033)
    assert first.cwnd.max == pytest.approx(1_047_728 / 32_768)
    assert trial.samples.filter(trial.samples["flow"] == 1)["bytes_sent"].to_list()[-1] == end["sender"]["bytes"]
    assert got.rows()["seed"].to_list() == [None, None]


def test_what_a_remote_sender_measured_is_not_known():
    trial = only(DATA / "iperf3-reverse.json")
    assert trial.flows[0].rtt_ms.mean is None
    assert trial.flows[0].cwnd.max is None
    assert trial.flows[0].goodput_mbps == pytest.approx(34_016.5498)
    assert trial.samples.height == 3  # of four intervals one was omitted
    assert "omit" in trial.caveats[0]


def test_both_directions_are_not_added_up():
    trial = only(DATA / "iperf3-bidir.json")
    assert (len(trial.flows), trial.goodput_mbps) == (1, pytest.approx(33_272.7168))
    assert "both directions" in trial.caveats[0]


@pytest.mark.parametrize(("name", "mbps"), [("interrupted", 33_818.2027), ("server", 20.4463528)])
def test_where_the_receiver_said_nothing_the_sender_counts(name, mbps):
    got = interchange.read(DATA / f"iperf3-{name}.json")
    assert got.trials[0].goodput_mbps == pytest.approx(mbps)
    assert got.rows()["bytes_received"].to_list() == [None]
    assert any("was not reported" in c for c in got.trials[0].caveats)


def stream(said: dict) -> list[str]:
    """A document as `--json-stream` writes it (esnet/iperf, pull request #1098)."""
    events = [("start", said["start"]), *(("interval", i) for i in said["intervals"]), ("end", said["end"])]
    return [json.dumps({"event": event, "data": data}) for event, data in events]


@pytest.mark.parametrize("name", ["up-2", "reverse", "half-second"])
def test_a_stream_is_the_document(name, tmp_path):
    said = json.loads((DATA / f"iperf3-{name}.json").read_text())
    whole, lines = only(DATA / f"iperf3-{name}.json"), only(saved(tmp_path, "a.jsonl", "\n".join(stream(said)) + "\n"))
    assert lines.flows == whole.flows
    assert lines.samples.equals(whole.samples)


def test_a_stream_with_the_document_behind_it_is_one_test(tmp_path):
    said = json.loads((DATA / "iperf3-up-2.json").read_text())
    both = only(saved(tmp_path, "a.json", "\n".join(stream(said)) + "\n" + json.dumps(said, indent=1)))
    assert both.flows == only(DATA / "iperf3-up-2.json").flows


def test_a_stream_that_was_cut_is_what_it_measured(tmp_path):
    said = json.loads((DATA / "iperf3-half-second.json").read_text())
    lines = stream(said)[:-1]
    trial = only(saved(tmp_path, "a.jsonl", "\n".join(lines) + '\n{"event": "end", "da'))
    assert trial.flows[0].bytes_sent == sum(i["sum"]["bytes"] for i in said["intervals"])
    assert any("did not end" in c for c in trial.caveats)


def test_several_documents_are_several_trials(tmp_path):
    text = (DATA / "iperf3-up-2.json").read_text() + (DATA / "iperf3-half-second.json").read_text()
    assert [len(t.flows) for t in interchange.read(saved(tmp_path, "server.json", text)).trials] == [2, 1]


OLD = {
    "start": {"version": "iperf 3.0.7", "test_start": {"protocol": "TCP"}},
    "intervals": [],
    "end": {
        "streams": [
            {
                "sender": {"socket": 4, "start": 0, "end": 10, "seconds": 10, "bytes": 1.25e7, "bits_per_second": 1e7},
                "receiver": {"socket": 4, "start": 0, "end": 10, "seconds": 10, "bytes": 1.2e7, "bits_per_second": 9.6e6},
            }
        ]
    },
}


def test_an_old_version_without_retransmissions_and_rtt(tmp_path):
    got = interchange.read(saved(tmp_path, "old.json", json.dumps(OLD)))
    assert (got.trials[0].goodput_mbps, got.rows()["retransmits"].to_list()) == (9.6, [None])
    assert got.trials[0].samples is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("{", "not JSON at line 1"),
        ("[1, 2]", "no iperf3 test"),
        ('{"a": 1}', "no iperf3 test"),
        ('{"start": {}, "end": {}}', "measured nothing"),
        ('{"start": 7}', "field start: 7 is there, where a mapping belongs"),
        ('{"start": {}, "end": {"streams": [{"sender": {"bytes": "many"}}]}}', "field end.streams.0.sender.bytes"),
        ('{"event": "error", "data": "unable to connect"}', "measured nothing: unable to connect"),
    ],
)
def test_a_bad_document_is_one_line(text, says, tmp_path):
    with pytest.raises(InterchangeError) as e:
        interchange.read(saved(tmp_path, "bad.json", text))
    assert says in str(e.value)
    assert str(e.value).startswith(str(tmp_path / "bad.json"))


@pytest.mark.parametrize(("name", "says"), [("udp", "a test of UDP"), ("refused", "Connection refused")])
def test_what_measured_no_tcp_is_refused_by_name(name, says):
    with pytest.raises(InterchangeError, match=says):
        interchange.read(DATA / f"iperf3-{name}.json")


# ---- iperf3, written


def keys(value, prefix: str = "") -> set[str]:
    if isinstance(value, dict):
        return {p for k, v in value.items() for p in {f"{prefix}{k}"} | keys(v, f"{prefix}{k}.")}
    return {p for v in value for p in keys(v, prefix)} if isinstance(value, list) else set()


def test_our_document_has_every_field_of_theirs(mix):
    theirs, ours = json.loads((DATA / "iperf3-up-2.json").read_text()), json.loads(iperf3.write(mix))
    assert keys(theirs) <= keys(ours)


def test_units_of_our_document(mix):
    said = json.loads(iperf3.write(mix))
    interval = said["intervals"][30]
    (row,) = mix.samples.filter((mix.samples["t_ns"] == 3_100_000_000) & (mix.samples["flow"] == 1)).to_dicts()
    mine = interval["streams"][1]
    assert mine["socket"] == said["start"]["connected"][1]["socket"]
    assert (mine["start"], mine["end"]) == (3.0, 3.1)
    assert (mine["snd_cwnd"], mine["rtt"], mine["pmtu"]) == (row["cwnd"] * 1448, row["srtt_us"], 1500)
    assert interval["sum"]["bytes"] == sum(s["bytes"] for s in interval["streams"])
    end = said["end"]["streams"][1]
    assert end["sender"]["mean_rtt"] == round(mix.flows[1].rtt_ms.mean * 1e3)
    assert end["receiver"]["bytes"] == mix.flows[1].bytes_received
    assert end["receiver"]["bytes"] * 8 / end["receiver"]["seconds"] == pytest.approx(end["receiver"]["bits_per_second"])
    assert sum(i["streams"][0]["retransmits"] for i in said["intervals"]) <= mix.flows[0].retransmits


def test_intervals_add_up_to_what_was_acknowledged(mix):
    said = json.loads(iperf3.write(mix))
    for flow in (0, 1):
        sent = sum(s["bytes"] for i in said["intervals"] for s in i["streams"] if s["socket"] == 5 + 2 * flow)
        last = mix.samples.filter(mix.samples["flow"] == flow)["bytes_acked"].to_list()[-1]
        assert sent == pytest.approx(last, abs=len(said["intervals"]))


def test_back_from_iperf3(mix, tmp_path):
    back = only(saved(tmp_path, "a.json", iperf3.write(mix)))
    assert (back.scenario, back.seed, back.address, back.engine) == (mix.scenario, mix.seed, mix.address, mix.engine)
    assert [f.cca for f in back.flows] == ["cubic:hystart=0", "bbr"]
    for mine, theirs in zip(back.flows, mix.flows, strict=True):
        assert mine.goodput_mbps == pytest.approx(theirs.goodput_mbps)
        assert (mine.retransmits, mine.bytes_received, mine.bytes_sent) == (theirs.retransmits, theirs.bytes_received, theirs.bytes_sent)
        assert mine.cwnd.max == theirs.cwnd.max
        assert mine.rtt_ms.mean == pytest.approx(theirs.rtt_ms.mean, abs=1e-3)


def test_without_samples_there_is_one_interval(one):
    said = json.loads(iperf3.write(tcpscape.Trial(**{f: getattr(one, f) for f in one.__dataclass_fields__ if f != "samples"})))
    assert len(said["intervals"]) == 1
    assert said["intervals"][0]["sum"]["bytes"] == one.flows[0].bytes_sent
    assert "no samples" in json.loads(said["extra_data"])["notes"][0]


# ---- Flent


def test_a_recorded_flent_file():
    trial = only(FLENT)
    assert (trial.engine, trial.version, trial.cca, len(trial.flows)) == ("flent", "2.0.1", "cubic", 1)
    assert trial.goodput_mbps == pytest.approx(286_216_024 * 8 / 60.45 / 1e6)
    assert trial.flows[0].rtt_ms.p50 == pytest.approx(27.44, abs=0.01)
    assert set(trial.samples.columns) >= {"cwnd", "srtt_us", "delivery_rate", "pacing_rate", "ping_ms"}
    assert trial.samples["ping_ms"].min() > 25
    steps = trial.samples["bytes_sent"].to_list()
    assert steps[-1] == pytest.approx(trial.flows[0].bytes_sent, rel=0.02)
    assert interchange.read(FLENT).rows()["seed"].to_list() == [None]


def test_uncompressed_and_bzip2_flent_files(tmp_path):
    import bz2

    plain = gzip.decompress(FLENT.read_bytes())
    for name, content in (("a.flent", plain), ("a.flent.bz2", bz2.compress(plain))):
        assert only(saved(tmp_path, name, content)).flows == only(FLENT).flows


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "damaged"),
        (b"\x1f\x8bnonsense", "damaged"),
        (FLENT.read_bytes()[:2000], "damaged"),
        (b"{}", "field metadata is missing"),
        (b'{"metadata": {}, "version": 4, "x_values": [0], "results": {"TCP upload": []}}', "0 values at 1 times"),
        (b'{"metadata": {}, "version": 4, "x_values": [1, 1], "results": {"TCP upload": [1, 2]}}', "do not increase"),
        (b'{"metadata": {}, "version": 4, "x_values": [], "results": {"UDP upload": []}}', "no TCP flow among its series (UDP upload)"),
        (b'{"metadata": {}, "version": 4, "x_values": [0, 1], "results": {"TCP upload": [1, "x"]}}', "field results.TCP upload.1"),
    ],
)
def test_a_bad_flent_file_is_one_line(content, says, tmp_path):
    with pytest.raises(InterchangeError, match=re.escape(says)):
        interchange.read(saved(tmp_path, "bad.flent.gz", content))


def test_flent_opens_ours(one, tmp_path):
    resultset = pytest.importorskip("flent.resultset")
    path = saved(tmp_path, "tcp_1up-a.flent.gz", flent.write(one))
    got = resultset.ResultSet.load_file(str(path))
    assert got.meta("NAME") == "tcp_1up"
    throughput = [v for v in got.series("TCP upload") if v is not None]
    assert sum(throughput) / len(throughput) == pytest.approx(one.goodput_mbps, rel=0.05)
    rtts = list(got.raw_series("TCP upload", raw_key="tcp_rtt"))
    assert [v for _, v in rtts] == [v / 1e3 for v in one.samples["srtt_us"].to_list()]
    assert rtts[0][0] == pytest.approx(5.1)  # 5 s idle, then the first sample


def by_flent(path: Path, plot: str, kind: str) -> Path:
    """The file that Flent itself makes of a plot."""
    pytest.importorskip("flent")
    out = path.with_name(f"{plot}.{kind}")
    command = [
        sys.executable,
        "-c",
        "from flent import run_flent; run_flent()",
        *(["-f", "csv"] * (kind == "csv")),
        "-p",
        plot,
        "-o",
        str(out),
        str(path),
    ]
    got = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=path.parent)
    assert got.returncode == 0, got.stderr
    return out


@pytest.mark.parametrize(("which", "plots"), [("one", ("tcp_delivery_with_rtt", "box_totals")), ("mix", ("upload", "bar_fairness"))])
def test_flents_own_plots_find_the_series(which, plots, tmp_path, request):
    path = saved(tmp_path, "ours.flent.gz", flent.write(request.getfixturevalue(which)))
    for plot in plots:
        values = [line.split(",")[1] for line in by_flent(path, plot, "csv").read_text().splitlines()[1:]]
        assert sum(v not in ("", '""') for v in values) >= 29  # the second flow's samples


@pytest.fixture(scope="module")
def rrul():
    """Four flows each way, of which the model runs eight one way here, with two pings and a call."""
    need("model")
    fields = {
        "forward": {"at": "router", "delay": "15ms"},
        "reverse": {"at": "router", "delay": "15ms"},
        "bottleneck": {"rate": "20mbit", "buffer": "250KB"},
        "flows": [{"cca": "cubic", "count": 8}],
        "probes": ["ping", "udp_ping", "voice"],
        "duration": "4s",
    }
    (trial,) = tcpscape.engines.make("model").run(Scenario.of(fields), [1], capture=Capture(samples_ns=200_000_000))
    return replace(trial, flows=tuple(replace(flow, direction="up" if i >= 4 else "down") for i, flow in enumerate(trial.flows)))


def test_a_network_becomes_flents_rrul(rrul, tmp_path):
    """Sums are those of the flows, the mean ping at a step is that of both pings, and the raw values are the probes' own."""
    said = json.loads(gzip.decompress(flent.write(rrul)))
    results = said["results"]
    assert said["metadata"]["NAME"] == "rrul"
    flows = [f"TCP {way} {name}" for way in ("download", "upload") for name in ("BE", "BK", "CS5", "EF")]
    assert {*flows, "TCP download sum", "TCP upload avg", "TCP totals", "Ping (ms) ICMP", "Ping (ms) UDP BE", "Ping (ms) avg"} <= set(results)
    step = 60  # 12 s, past the 4 s and what is idle before and after, at 0.2 s
    at = next(i for i in range(step) if results["TCP totals"][i] is not None and results["Ping (ms) avg"][i] is not None)
    assert results["TCP totals"][at] == pytest.approx(sum(results[name][at] for name in flows))
    assert results["TCP download sum"][at] == pytest.approx(sum(results[name][at] for name in flows[:4]))
    pings = [results[name][at] for name in ("Ping (ms) ICMP", "Ping (ms) UDP BE")]
    assert results["Ping (ms) avg"][at] == pytest.approx(sum(pings) / 2)
    first = rrul.probe_samples.filter(rrul.probe_samples["probe"] == 0).sort("t_ns").row(0, named=True)
    assert said["raw_values"]["Ping (ms) ICMP"][0] == {"t": pytest.approx(5 + first["t_ns"] / 1e9), "val": first["delay_ns"] / 1e6, "seq": 0}
    assert said["metadata"]["SERIES_META"]["Ping (ms) ICMP"] == {"UNITS": "ms"}
    back = only(saved(tmp_path, "a.flent.gz", flent.write(rrul)))
    assert [flow.cca for flow in back.flows] == ["cubic"] * 4


def test_other_numbers_of_flows_both_ways_are_flents_test_of_many(rrul):
    flows = tuple(replace(flow, direction="up" if i >= 6 else "down") for i, flow in enumerate(rrul.flows))
    said = json.loads(gzip.decompress(flent.write(replace(rrul, flows=flows))))
    assert (said["metadata"]["NAME"], said["metadata"]["TEST_PARAMETERS"]) == ("rrul_be_nflows", {"download_streams": "6", "upload_streams": "2"})
    assert {"TCP download BE::6", "TCP upload BE::2", "TCP upload sum"} <= set(said["results"])


@pytest.mark.slow
def test_flent_draws_a_network(rrul, tmp_path):
    path = saved(tmp_path, "ours.flent.gz", flent.write(rrul))
    for plot in ("all", "totals", "ping_cdf"):
        assert by_flent(path, plot, "png").stat().st_size > 10_000


def test_back_from_flent(mix, tmp_path):
    back = only(saved(tmp_path, "a.flent.gz", flent.write(mix)))
    assert (back.scenario, back.seed, back.cca) == (mix.scenario, mix.seed, mix.cca)
    for mine, theirs in zip(back.flows, mix.flows, strict=True):
        assert mine.goodput_mbps == pytest.approx(theirs.goodput_mbps)
        assert (mine.retransmits, mine.start_s) == (theirs.retransmits, pytest.approx(theirs.start_s))
    for flow in (0, 1):
        mine, theirs = (t.samples.filter(t.samples["flow"] == flow) for t in (back, mix))
        assert mine["t_ns"].to_list() == theirs["t_ns"].to_list()
        assert mine["cwnd"].to_list() == theirs["cwnd"].to_list()
        assert mine["bytes_sent"].to_list() == pytest.approx(theirs["bytes_acked"].to_list(), abs=1)


def test_pings_that_were_measured_go_along(tmp_path):
    said = json.loads(gzip.decompress(flent.write(only(FLENT))))
    assert [v for v in said["results"]["Ping (ms) ICMP"] if v is not None][:2] == pytest.approx([25.3, 25.391], abs=1e-3)


def test_streams_that_end_an_interval_microseconds_apart_keep_their_rates(tmp_path):
    two = only(DATA / "iperf3-up-2.json")
    said = json.loads((DATA / "iperf3-up-2.json").read_text())
    for back in (only(saved(tmp_path, "a.json", iperf3.write(two))), only(saved(tmp_path, "a.flent.gz", flent.write(two)))):
        for flow in (0, 1):
            mine = back.samples.filter(back.samples["flow"] == flow)["bytes_sent"].to_list()
            theirs = [sum(i["streams"][flow]["bytes"] for i in said["intervals"][: k + 1]) for k in range(3)]
            assert mine == pytest.approx(theirs, rel=0.01)


def test_a_trial_without_samples_is_no_flent_file(one):
    with pytest.raises(InterchangeError, match="--samples 100ms"):
        flent.write(tcpscape.Trial(**{f: getattr(one, f) for f in one.__dataclass_fields__ if f != "samples"}))


# ---- damaged documents

JUNK = (None, -1, 0, 1e308, float("inf"), float("nan"), "x", [], {}, True, [None], {"a": 1}, 10**30, -1e-9)


def places(value, prefix=()):
    """Paths of every value in a document; of lists the first three."""
    children = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    yield from (found for k, v in children for found in ((*prefix, k), *places(v, (*prefix, k))))


def damaged(document: dict, rng: random.Random) -> dict:
    """The document with junk in one to three places, or with something missing."""
    made = json.loads(json.dumps(document))
    for _ in range(rng.randint(1, 3)):
        *path, last = rng.choice(list(places(made)))
        home = made
        for key in path:
            home = home[key]
        if rng.random() < 0.2:
            del home[last]
        else:
            home[last] = rng.choice(JUNK)
    return made


@pytest.mark.parametrize("seed", range(120))
def test_whatever_is_in_a_document_it_is_read_or_refused_in_one_line(seed, tmp_path):
    rng = random.Random(seed)
    flent = json.loads(gzip.decompress(FLENT.read_bytes()))
    short = {
        "metadata": flent["metadata"],
        "version": 4,
        "x_values": flent["x_values"][:12],
        "results": {k: v[24:36] for k, v in flent["results"].items()},
    }
    name = rng.choice(["up-2", "reverse", "interrupted", "flent"])
    document = short if name == "flent" else json.loads((DATA / f"iperf3-{name}.json").read_text())
    path = saved(tmp_path, "a.flent" if name == "flent" else "a.json", json.dumps(damaged(document, rng)))
    said = ""
    try:
        trials = interchange.read(path).trials
    except InterchangeError as e:
        trials, said = (), str(e)
    assert "\n" not in said
    for trial in trials:
        json.dumps(trial.to_dict(), allow_nan=False)
        assert keys(json.loads(iperf3.write(trial)))


def test_a_count_below_0_is_not_known(tmp_path):
    said = json.loads((DATA / "iperf3-up-2.json").read_text())
    said["end"]["streams"][0]["sender"]["retransmits"] = -1
    assert interchange.read(saved(tmp_path, "a.json", json.dumps(said))).rows()["retransmits"].to_list() == [None, None]


# ---- the registry


def test_an_unknown_ending_names_those_there_are(tmp_path):
    with pytest.raises(InterchangeError, match=r"\.flent\.gz"):
        interchange.read(saved(tmp_path, "a.txt", "x"))


@pytest.mark.parametrize("known", [f for f in interchange.REGISTRY.values() if f.read], ids=lambda f: f.name)
def test_a_missing_or_binary_file_is_one_line(known, tmp_path):
    for path in (tmp_path / f"none{known.suffixes[0]}", saved(tmp_path, f"binary{known.suffixes[0]}", bytes(range(256)) * 3)):
        with pytest.raises(InterchangeError, match=re.escape(str(path))):
            interchange.read(path)


def test_a_segment_of_less_than_a_byte_has_no_windows(tmp_path):
    """An iperf3 file with `tcp_mss: 1e-320` divided by 0."""
    document = json.loads((DATA / "iperf3-up-2.json").read_text("utf-8"))
    document["start"]["tcp_mss"] = document["start"]["tcp_mss_default"] = 1e-320
    (tmp_path / "x.json").write_text(json.dumps(document))
    source = sources.load(tmp_path / "x.json")
    assert all(trial.trial.flows[0].cwnd.mean is None for group in source.groups for trial in group.items)
