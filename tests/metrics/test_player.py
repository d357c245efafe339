"""Video players: how they are written, closed forms of what a viewer sees on the model, what is kept of them and what is shown."""

import itertools
import json

import pytest

import tcpscape
from conftest import ROOT, need
from tcpscape import metrics
from tcpscape.campaign import groups
from tcpscape.scenario import files
from tcpscape.scenario.flows import Flow, carried
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.rows import decode, encode, flow_rows
from tcpscape.trial import Cwnd, FlowResult, PlayerResult, Rtt, Trial
from tcpscape.words import paths

LADDER = "1,2.5,5,8,16mbit"
CLEAN = {"forward": "netem delay 25ms", "reverse": "netem delay 25ms"}


def watch(**options):
    """The players of the first trial of each congestion control."""
    outcome = tcpscape.run(**{**CLEAN, "duration": "60s", "seeds": 1, "player": LADDER, **options})
    return [flow.player for cell in outcome.cells for flow in cell.trials[0].flows]


# ---- how it is written ----


def test_the_unit_of_the_last_rung_holds_for_all():
    player = Flow.model_validate({"player": LADDER}).player
    assert player.ladder == (1_000_000, 2_500_000, 5_000_000, 8_000_000, 16_000_000)
    assert Flow.model_validate({"player": "800kbit,2,4mbit"}).player.ladder == (800_000, 2_000_000, 4_000_000)
    assert (player.segment, player.buffer, player.abr) == (4_000_000_000, 30_000_000_000, "bola")


def test_a_mapping_a_list_and_abr_beside_the_player():
    mapping = {"ladder": ["1mbit", "2.5mbit"], "segment": "2s", "abr": "throughput", "buffer": "20s"}
    written = Flow.model_validate({"player": mapping})
    assert (written.player.ladder, written.player.segment, written.player.abr) == ((1_000_000, 2_500_000), 2_000_000_000, "throughput")
    assert Flow.model_validate({"player": ["1mbit", "2.5mbit"], "abr": "throughput"}).player.abr == "throughput"
    assert Flow.model_validate({"player": mapping, "abr": "bola"}).player.abr == "bola"
    again = Flow.model_validate(written.model_dump(mode="json", exclude_defaults=True))
    assert again == written


def test_the_example_of_the_page_is_a_scenario():
    page = (ROOT / "docs" / "models" / "methods" / "player.md").read_text("utf-8")
    flows = Scenario.of(files.read_yaml(page.partition("```yaml\n")[2].partition("```")[0], "the page")).flows
    assert [(f.cca, f.player.abr, len(f.player.ladder)) for f in flows] == [("bbr", "bola", 4), ("cubic", "throughput", 5)]


def test_the_path_in_words_names_the_player():
    scenario = Scenario.of({"forward": "netem delay 25ms", "flows": [{"player": LADDER, "abr": "throughput"}]})
    assert "video player of 1 to 16 Mbit/s (throughput, buffer 30s)" in paths.in_words(scenario)


@pytest.mark.parametrize(
    ("mbps", "name"), [(0.9, "below 360p"), (1, "360p"), (2.49, "360p"), (2.5, "480p"), (7.3, "720p"), (8, "1080p"), (100, "2160p")]
)
def test_the_quality_that_a_rate_carries(mbps, name):
    """The published judgement of 7.3 Mbit/s is 720p."""
    assert carried(mbps) == name


# ---- closed forms ----


def test_the_first_picture_comes_after_a_request_and_a_segment(need_model):
    """20 kbit/s for 4 s are 10,000 B, which fit the initial window: 8,192 B in 6 packets and 1,808 in 2, 66 B of headers each, 10,528 B at
    1 Mbit/s are 84.2 ms. 25 ms for the request, 25 ms for the answer."""
    (seen,) = watch(forward="netem delay 25ms rate 1mbit", player="20kbit")
    assert seen.startup_s == pytest.approx(0.025 + 10_528 * 8 / 1e6 + 0.025, abs=1e-3)
    assert (seen.began, seen.stalls, seen.switches, seen.bitrate_mbps) == (True, 0, 0, 0.02)


def test_slow_start_decides_on_the_first_picture(need_model):
    """500,000 B are 346 packets; windows of 10, 20, … 160 carry 310 in five round trips: the rest come in the sixth."""
    (seen,) = watch()
    assert seen.startup_s == pytest.approx(6 * 0.05, abs=2e-3)


def test_what_is_played_and_what_is_not_is_the_time(need_model):
    """0.5 Mbit/s for a rung of 1 Mbit/s: playing takes half as long as waiting. A trial begins with two RTTs until the connection is open."""
    (seen,) = watch(bottleneck={"rate": "500kbit", "buffer": "2bdp"}, duration="120s")
    assert seen.bitrate_mbps == 1
    assert seen.startup_s + seen.played_s + seen.stalled_s == pytest.approx(120 - 3.5 * 0.05, abs=0.05)
    # 500,000 B in packets of 1,514 B for 1,448 B of data at 0.5 Mbit/s.
    assert seen.startup_s == pytest.approx(500_000 * 8 / 0.5e6 * 1514 / 1448, rel=0.02)
    assert seen.played_s / (seen.played_s + seen.stalled_s) == pytest.approx(0.5, abs=0.03)


def test_a_player_by_throughput_takes_the_highest_rung_below_its_share(need_model):
    """12 Mbit/s carry 11.5 of data, 85 % of them 9.8: 8 Mbit/s and not 10. Once there it stays: one change, from the lowest to 8."""
    (seen,) = watch(bottleneck={"rate": "12mbit", "buffer": "1bdp"}, player="1,8,10mbit", abr="throughput", duration="120s")
    assert (seen.switches, seen.stalls) == (1, 0)
    lowest = (8 - seen.bitrate_mbps) / 7 * seen.segments
    assert lowest == pytest.approx(round(lowest), abs=1e-6)
    assert round(lowest) <= 5


def test_a_full_buffer_slows_the_player_to_real_time(need_model):
    """Where anything can be carried, segments come as fast as they are played once 30 s of them are there."""
    (seen,) = watch(duration="120s")
    assert seen.segments * 4 == pytest.approx(seen.played_s + 30, abs=8)


def test_a_lost_request_is_sent_again(need_model):
    """A third of the packets on the way back are lost, requests among them; each costs a timeout of RTT + 200 ms, and nothing stops."""
    for seen in watch(reverse="netem delay 25ms loss 33%", cca="cubic,bbr"):
        assert seen.segments > 10


def test_the_window_is_halved_after_idle_only_where_linux_does(need_model):
    """Between two segments the connection is idle for more than a timeout: with tcp_slow_start_after_idle the window after it is smaller."""
    path = {"forward": "netem delay 100ms", "reverse": "netem delay 100ms", "bottleneck": {"rate": "60mbit", "buffer": "1bdp"}}

    def most_after_idle(kernel):
        outcome = tcpscape.run(**path, kernel=kernel, player="16mbit", duration="60s", seeds=1, samples="100ms")
        rows = outcome.trials[0].samples.filter(outcome.trials[0].samples["t_ns"] > 35_000_000_000)
        flight = rows["in_flight"].to_list()
        return max(now for before, now in itertools.pairwise(flight) if before == 0 and now > 0)

    assert most_after_idle("6.1") < 0.75 * most_after_idle("6.1,slow_start_after_idle=false")


def test_players_are_repeatable_and_differ_by_seed(need_model):
    lossy = {"forward": "netem delay 25ms loss 1%", "cca": "cubic"}
    assert watch(**lossy) == watch(**lossy)
    assert watch(**lossy) != watch(**lossy, seeds="7..7")


# ---- against the kernel ----

ROUTERS = {"forward": {"at": "router", "delay": "25ms"}, "reverse": {"at": "router", "delay": "25ms"}}


@pytest.mark.slow
@pytest.mark.parametrize("abr", ["bola", "throughput"])
@pytest.mark.parametrize("cca", ["cubic", "bbr"])
def test_the_kernel_shows_the_same_pictures(cca, abr, need_model):
    """Where nothing is random, start-up agrees to a millisecond and so does every choice of a rung; after random losses, the mean bit rate does."""
    need("virtual")
    words = {**ROUTERS, "bottleneck": {"rate": "10mbit", "buffer": "1bdp"}, "cca": cca, "abr": abr}
    (model,), (kernel,) = (watch(**words, engine=engine) for engine in ("model", "virtual"))
    assert model.startup_s == pytest.approx(kernel.startup_s, abs=1e-3)
    assert (model.segments, model.stalls) == (kernel.segments, kernel.stalls)
    assert model.bitrate_mbps == pytest.approx(kernel.bitrate_mbps, rel=0.03)
    lossy = {**words, "forward": {"at": "router", "delay": "25ms", "loss": "1%"}, "seeds": 6, "duration": "60s", "player": LADDER}
    views = [groups.viewer(tcpscape.run(**lossy, engine=engine).trials) for engine in ("model", "virtual")]
    assert views[0].bitrate.value == pytest.approx(views[1].bitrate.value, rel=0.15)


# ---- results ----

SEEN = PlayerResult(0.5, True, 1, 2.0, 50.0, 14, 3, 4.5, 2.25)


def trial(*players):
    flows = tuple(FlowResult("bbr", 5.0, 60.0, 0, 0, Rtt(), Cwnd(), {"app": 1.0}, player=player) for player in players)
    return Trial("s", "bbr", "a", 0, "mock", "1", 60.0, flows)


def test_a_kept_trial_has_its_players():
    _, text, queues = encode(trial(SEEN, None))
    again = decode(text, queues)
    assert again.flows == trial(SEEN, None).flows
    assert isinstance(again.flows[0].player, PlayerResult)
    values = json.loads(json.dumps(trial(SEEN).to_dict()))["flows"][0]
    assert values["player"]["startup_s"] == 0.5
    assert FlowResult.of(values).player == SEEN


def test_rows_have_columns_of_players_where_there_are_any():
    rows = flow_rows([trial(SEEN, None)])
    assert rows["player_startup_s"].to_list() == [0.5, None]
    assert rows["player_segments"].to_list() == [14, None]
    assert not [name for name in flow_rows([trial(None)]).columns if name.startswith("player")]


def test_metrics_are_means_over_the_players_of_a_trial():
    other = PlayerResult(1.5, True, 0, 0.0, 50.0, 14, 0, 5.5, 4.25)
    values = {m.name: m.of(trial(SEEN, other)) for m in metrics.REGISTRY.values() if m.name.startswith("video")}
    assert values == {"video_startup": 1.0, "video_stalls": 0.5, "video_stalled": 1.0, "video_bitrate": 5.0, "video_switches": 1.5, "video_qoe": 3.25}
    assert metrics.find("video_bitrate").of(trial(None)) != metrics.find("video_bitrate").of(trial(None))  # NaN
    nothing = PlayerResult(60.0, False, 0, 0.0, 0.0, 0, 0, None, None)
    assert metrics.find("video_bitrate").of(trial(nothing)) == 0


def test_a_viewer_sees_means_with_intervals():
    view = groups.viewer([trial(SEEN)] * 6)
    assert (view.startup.value, view.stalled.value, view.bitrate.value, view.smooth.value, view.smooth.n) == (0.5, 2.0, 4.5, 0.0, 6)
    assert groups.viewer([trial(None)]) is None


def test_run_and_sweep_show_what_a_viewer_sees(cli, need_model, tmp_path):
    words = ("--player", LADDER, "--seeds", "2", "--duration", "20s", "--cca", "cubic,bbr")
    screen = cli("run", "--forward", "netem delay 25ms", "--reverse", "netem delay 25ms", *words)
    assert screen.status == 0
    assert "With cubic a viewer sees" in screen.out
    assert "What a viewer sees" in screen.out
    table = cli("sweep", "--rtt", "50ms", *words, "--abr", "bola,throughput", "--metric", "video_bitrate", "--out", str(tmp_path))
    assert table.status == 0
    assert "throughput" in table.out


def test_a_short_trial_is_a_caveat():
    scenario = Scenario.of({"duration": "10s", "flows": [{"player": LADDER}]})
    assert groups.player_caveats(scenario) == ["10s show a player's start: a buffer of 30s is hardly full by then; give --duration 60s"]
    assert groups.player_caveats(scenario.model_copy(update={"duration": 60 * 10**9})) == []
    assert groups.player_caveats(Scenario()) == []


def test_no_player_no_word_of_it(cli, need_model):
    screen = cli("run", "--forward", "netem delay 25ms", "--duration", "2s", "--seeds", "2")
    assert "viewer" not in screen.out


def test_ladders_may_be_an_axis(need_model):
    outcome = tcpscape.sweep(rtt="50ms", player=["1,2mbit", "4mbit"], duration="10s", seeds=1)
    assert [cell.values("video_bitrate")[0] <= 2 for cell in outcome.cells] == [True, False]


def test_the_mock_engine_has_players():
    (seen,) = watch(engine="mock", bottleneck={"rate": "6mbit", "buffer": "1bdp"})
    assert (seen.bitrate_mbps, seen.stalls) == (5.0, 0)
