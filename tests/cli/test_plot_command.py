"""`tcpscape plot`: which figures it draws, where it writes them, what it refuses."""

import re
from pathlib import Path

import pytest

WORDS = (
    "--bottleneck",
    "tbf rate 5mbit burst 6056 limit 30000",
    "--reverse",
    "netem delay 20ms",
    "--duration",
    "2s",
    "--seeds",
    "2",
    "--cca",
    "cubic,bbr",
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    from conftest import model
    from tcpscape.cli.main import call

    model()
    root = tmp_path_factory.mktemp("kept")
    assert call(["run", *WORDS, "--out", str(root), "--samples", "50ms", "--quiet"]) == 0
    return root


def files(root):
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}


def test_quantities_share_a_figure_beside_the_results(cli, kept):
    before = files(kept)
    answer = cli("plot", kept, "--what", "cwnd,rtt,queue")
    assert (answer.status, answer.out.splitlines()) == (0, [str(kept / "plots" / "cwnd-rtt-queue.png")])
    assert files(kept) - before == {"plots/cwnd-rtt-queue.png"}
    assert (kept / "plots" / "cwnd-rtt-queue.png").read_bytes()[:4] == b"\x89PNG"


def test_figures_and_quantities_in_several_formats(cli, kept, tmp_path):
    answer = cli("plot", kept, "--what", "bars,goodput", "--formats", "svg,pdf", "--out", tmp_path)
    assert answer.status == 0
    assert files(tmp_path) == {"bars.svg", "bars.pdf", "goodput.svg", "goodput.pdf"}
    assert "throughput, Mbit/s" in (tmp_path / "goodput.svg").read_text("utf-8")


def test_one_file_of_one_congestion_control(cli, kept, tmp_path):
    assert cli("plot", kept, "--what", "cwnd", "--cca", "bbr", "--out", tmp_path / "w.svg").status == 0
    text = (tmp_path / "w.svg").read_text("utf-8")
    assert "bbr" in text
    assert "cubic" not in text


def test_without_a_name_it_is_what_fits(cli, kept, tmp_path):
    cli("plot", kept, "--out", tmp_path)
    assert files(tmp_path) == {"bars.png"}


def test_a_figure_for_each_point_on_the_axes(cli, tmp_path, need_model):
    path = ("--rtt", "20ms", "--rate", "5,10mbit", "--duration", "1s", "--seeds", "1", "--samples", "50ms")
    assert cli("sweep", *path, "--out", tmp_path, "--quiet").status == 0
    assert len(cli("plot", tmp_path, "--what", "cwnd,queue").out.splitlines()) == 2

    assert cli("plot", tmp_path, "--what", "cwnd", "--at", "rate=5mbit").out.splitlines() == [str(tmp_path / "plots" / "cwnd.png")]


def test_another_metric_and_title(cli, tmp_path):
    import tcpscape

    tcpscape.sweep(rtt="40ms", rate="20mbit", buffer="100kB,500kB", mix="cubic,reno", engine="mock", seeds=3, out=tmp_path)
    drawn = cli("plot", tmp_path, "--metric", "added_rtt:reno", "--title", "What a call waits", "--formats", "svg")
    assert drawn.status == 0, drawn.err
    (file,) = drawn.out.split()
    assert not file.endswith("split.svg")
    text = Path(file).read_text("utf-8")
    assert "What a call waits" in text
    assert "added RTT (95th percentile) of reno, ms" in text


def test_metrics_are_listed(cli):
    listed = cli("metric", "list")
    assert listed.status == 0
    assert {"goodput", "added_rtt", "jain", "share:bbr"} <= {line.split()[0] for line in listed.out.splitlines() if line.strip()}


def test_a_figure_for_a_column_is_as_wide_and_has_its_fonts(cli, kept, tmp_path):
    assert cli("plot", kept, "--what", "bars", "--column", "--out", tmp_path / "bars.pdf").status == 0
    pdf = (tmp_path / "bars.pdf").read_bytes()
    width = float(re.search(rb"/MediaBox \[ ?0 0 ([0-9.]+)", pdf)[1])
    assert abs(width - 3.33 * 72) < 0.5
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
