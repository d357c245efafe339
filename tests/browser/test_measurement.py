"""What is opened: a capture with its replay, a result directory, a campaign that runs, an upload; a check on a kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tcpscape
from browser.driving import field, fragment
from browser.explorer import Explorer
from tcpscape import engines

if TYPE_CHECKING:
    from playwright.sync_api import Page

PATH = ("--forward", "netem delay 20ms", "--bottleneck", "tbf rate 8mbit burst 8000 limit 60000", "--reverse", "netem delay 20ms")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the sender of a transfer over 40 ms and 8 Mbit/s saw."""
    file = tmp_path_factory.mktemp("measured") / "slow.pcapng"
    command = [sys.executable, "-m", "tcpscape", "run", *PATH, "--cca", "cubic", "--duration", "6s", "--seeds", "1", "--pcap", str(file), "--quiet"]
    subprocess.run(command, check=True, timeout=120, stdout=subprocess.DEVNULL)
    return file


def expect_diagnosis(page: Page) -> None:
    """The fitted path stands there, with observation and replay in the same charts, and moves the sliders."""
    from playwright.sync_api import expect

    region = page.get_by_role("region", name="Diagnosis")
    expect(region).to_have_attribute("aria-busy", "false")
    expect(region).to_contain_text("observed")
    expect(region).to_contain_text("replay")
    for name in ("Goodput", "RTT", "In flight"):
        assert region.get_by_role("application", name=re.compile(f"^{name}")).count() == 1
    region.get_by_role("button", name="Move the sliders to this path").click()
    page.wait_for_function("() => /rtt=/.test(location.hash)")
    rtt = float(re.sub("[^0-9.]", "", field(page, "RTT").input_value()))
    assert rtt == pytest.approx(40, rel=0.1)


def test_a_capture_of_the_command_line_is_diagnosed_and_replayed(visit, built, capture: Path):
    with Explorer(str(capture)) as server:
        page = visit(server)
        expect_diagnosis(page)
        page.context.close()


def test_a_capture_that_is_given_to_the_page_is_too_and_can_be_closed(visit, explorer: Explorer, capture: Path):
    page = visit(explorer, "view=measure")
    page.locator("input[type=file]").set_input_files(capture)
    expect_diagnosis(page)
    page.get_by_role("button", name="Close it").click()
    page.get_by_role("button", name="Open a file").wait_for()


def test_a_file_that_is_none_is_refused_in_a_line(visit, explorer: Explorer, tmp_path: Path):
    from playwright.sync_api import expect

    (tmp_path / "nothing.pcap").write_bytes(b"\0" * 4000)
    page = visit(explorer, "view=measure")
    page.watch.allow("status of 400")
    page.locator("input[type=file]").set_input_files(tmp_path / "nothing.pcap")
    expect(page.get_by_role("tabpanel").get_by_role("alert")).to_contain_text("nothing.pcap")


def test_a_result_directory_shows_its_cells(visit, built, tmp_path: Path):
    tcpscape.sweep(rtt="40ms", rate="8mbit", loss=["0%", "1%"], duration="2s", cca=["cubic", "bbr"], seeds=3, out=tmp_path / "kept")
    with Explorer(str(tmp_path / "kept")) as server:
        page = visit(server)
        results = page.get_by_role("region", name="Results")
        results.wait_for()
        page.wait_for_function("() => document.querySelector('[role=tabpanel] [aria-busy=false]')")
        text = results.inner_text()
        assert "cubic" in text
        assert "bbr" in text
        page.context.close()


def test_a_campaign_is_followed_while_it_runs(visit, built, tmp_path: Path):
    command = [sys.executable, "-m", "tcpscape", "sweep", "--rtt", "40ms", "--rate", "100mbit", "--loss", "0%,0.1%,0.5%,1%,2%", "--duration", "120s"]
    with subprocess.Popen([*command, "--cca", "cubic,bbr", "--seeds", "40", "--jobs", "1", "--out", str(tmp_path / "running"), "--quiet"]) as running:
        try:
            while not (tmp_path / "running" / "results.sqlite").exists():
                assert running.poll() is None
            with Explorer(str(tmp_path / "running")) as server:
                page = visit(server)
                page.get_by_role("region", name="Results").wait_for()
                first = page.get_by_role("region", name="Results").inner_text()
                page.wait_for_function("(first) => document.querySelector('[role=tabpanel] section')?.innerText !== first", arg=first)
                assert running.poll() is None
                page.context.close()
        finally:
            running.terminate()


def test_the_same_point_runs_on_a_real_kernel(visit, explorer: Explorer):
    if why := engines.REGISTRY["live"]().unavailable():
        pytest.skip(f"engine live: {why}")
    from playwright.sync_api import expect

    page = visit(explorer, "rate=5mbit&rtt=20ms&duration=2s&cca=cubic&check.engine=live&check.seeds=1")
    page.get_by_text("Check on the real kernel").first.click()
    check = page.get_by_role("region", name="Check on the real kernel")
    check.get_by_role("button", name="Run it").click()
    expect(check.get_by_role("table")).to_contain_text("cubic", timeout=60_000)
    expect(check).to_contain_text("model")


def test_a_scenario_of_the_command_line_moves_the_sliders(visit, built):
    with Explorer("starlink-baseline") as server:
        page = visit(server)
        page.wait_for_function("() => /rtt=26ms/.test(location.hash)")
        assert "jitter=7ms" in fragment(page)
        page.context.close()
