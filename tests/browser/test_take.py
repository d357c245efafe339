"""What is taken along: the address, commands, YAML, Python, files of one run; and the guided walks."""

from __future__ import annotations

import csv
import json
import re
import shlex
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browser.driving import answered, field, fragment, open_view, slider, write
from browser.explorer import Explorer
from tcpscape.campaign.outcome import Outcome
from tcpscape.cli.main import call
from tcpscape.words import sentences

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

WALKS = ["The cliff", "HyStart's early exit", "BBR's probes", "Bufferbloat and its cures", "The latency-spike bound", "Fairness"]

BEGINNINGS = {"Command": "tcpscape sweep", "YAML": "# Taken from", "Python": "import tcpscape"}


def taken(page: Page) -> Locator:
    """The dialog, about the path alone."""
    page.get_by_role("button", name="Take it along").click()
    dialog = page.get_by_role("dialog", name="Take it along")
    dialog.get_by_label("What").select_option(label="this path alone")
    dialog.get_by_text("Seeds 0 to 19").wait_for()
    return dialog


def copied(page: Page, dialog: Locator, form: str) -> str:
    """What the button copies."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    dialog.get_by_role("radio", name=form).check()
    dialog.get_by_text(BEGINNINGS[form]).first.wait_for()
    dialog.get_by_role("button", name=re.compile(f"^Copy the {form}", re.IGNORECASE)).click()
    return page.evaluate("() => navigator.clipboard.readText()")


def expect_said(page: Page, sentence: str) -> None:
    """The page has the ratio and its interval of this sentence."""
    ratio = re.search(r"[\d.]+ × \w+ \[[^]]+\]", sentence)
    assert ratio
    page.get_by_role("button", name="Close").click()
    page.wait_for_function("(text) => document.querySelector('main').innerText.includes(text)", arg=ratio.group())


def test_the_address_is_the_whole_state(visit, explorer: Explorer):
    page = visit(explorer)
    answered(page)
    write(page, "RTT", "73ms")
    write(page, "Loss", "0.4%")
    slider(page, "Rate").focus()
    page.keyboard.press("ArrowLeft")
    open_view(page, "Inside one run")
    page.get_by_role("button", name="The next seed").click()
    page.wait_for_function("() => /seed=1/.test(location.hash)")
    there = fragment(page)
    other = visit(explorer, urllib.parse.urlsplit(page.url).fragment)
    other.get_by_role("tabpanel", name="Inside one run").wait_for()
    for name in ("RTT", "Loss", "Rate"):
        assert field(other, name).input_value() == field(page, name).input_value()
    assert sorted(fragment(other).split("&")) == sorted(there.split("&"))


PATH = "rtt=40ms&rate=8mbit&loss=0.5%25&duration=2s&cca=cubic|bbr"


def test_a_copied_command_says_what_the_page_says(visit, explorer: Explorer, tmp_path: Path, monkeypatch, capsys):
    page = visit(explorer, PATH)
    words = shlex.split(copied(page, taken(page), "Command").replace("\\\n", " "))
    assert words[0] == "tcpscape"
    monkeypatch.chdir(tmp_path)
    assert call([*words[1:], "--quiet"]) == 0
    expect_said(page, capsys.readouterr().out)


def test_a_copied_program_says_what_the_page_says(visit, explorer: Explorer, tmp_path: Path, monkeypatch):
    page = visit(explorer, PATH)
    program = copied(page, taken(page), "Python")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(program, "taken.py", "exec"), names)
    outcomes = [value for value in names.values() if isinstance(value, Outcome)]
    assert len(outcomes) == 1
    expect_said(page, sentences.run_answer(outcomes[0]))


def test_copied_yaml_says_what_the_page_says(visit, explorer: Explorer, tmp_path: Path, monkeypatch, capsys):
    page = visit(explorer, PATH)
    text = copied(page, taken(page), "YAML")
    command = re.search(r"^# tcpscape (.+ (\S+\.yaml).*)$", text, re.MULTILINE)
    assert command
    monkeypatch.chdir(tmp_path)
    (tmp_path / command[2]).write_text(text)
    assert call([*shlex.split(command[1]), "--quiet"]) == 0
    expect_said(page, capsys.readouterr().out)


def test_one_run_is_saved_for_every_tool(visit, explorer: Explorer, tmp_path: Path):
    page = visit(explorer, "rtt=40ms&rate=8mbit&duration=1s&cca=cubic")
    dialog = taken(page)
    files = {}
    for name in ("pcapng", "Perfetto trace", "qlog", "CSV"):
        with page.expect_download() as download:
            dialog.get_by_role("button", name=name, exact=True).click()
        files[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[name])
    assert files["pcapng"].read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    assert any(event.get("name") == "recovery:metrics_updated" for event in qlog_events(files["qlog"].read_text()))
    assert len(list(csv.reader(files["CSV"].read_text().splitlines()))) > 50
    perfetto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="the package perfetto is not installed")
    trace = perfetto.Trace()
    trace.ParseFromString(files["Perfetto trace"].read_bytes())
    assert any(packet.HasField("track_event") for packet in trace.packet)


def qlog_events(text: str) -> list[dict]:
    """The events of a qlog, as one document or as a sequence of JSON texts."""
    if text.startswith("\x1e"):
        return [json.loads(part) for part in text.split("\x1e") if part.strip()]
    return [event for trace in json.loads(text)["traces"] for event in trace["events"]]


@pytest.mark.parametrize("form", ["PNG", "SVG", "CSV"])
def test_a_chart_is_saved(visit, explorer: Explorer, tmp_path: Path, form: str):
    page = visit(explorer, "rate=8mbit&duration=1s&view=curves&curves.seeds=5")
    page.get_by_role("region", name="Curves").get_by_text(re.compile("^Median of 5 runs per point with")).wait_for()
    with page.expect_download() as download:
        page.get_by_role("group", name=re.compile("^Save Goodput")).get_by_role("button", name=form).click()
    file = tmp_path / "chart"
    download.value.save_as(file)
    data = file.read_bytes()
    assert {"PNG": data[:8] == b"\x89PNG\r\n\x1a\n", "SVG": b"<svg" in data[:300] and b"<script" not in data, "CSV": data.count(b"\n") > 5}[form]


@pytest.mark.parametrize("title", [WALKS[0], *(pytest.param(title, marks=pytest.mark.slow) for title in WALKS[1:])])
def test_a_walk_is_gone_to_its_end(visit, explorer: Explorer, title: str):
    page = visit(explorer, "view=learn")
    page.get_by_role("button", name=f"Begin: {title}").click()
    walk = page.get_by_role("region", name=f"Walk: {title}")
    steps = int(re.search(r"Step 1 of (\d+)", walk.inner_text()).group(1))
    assert steps >= 3
    seen = set()
    for step in range(1, steps + 1):
        walk.get_by_text(f"Step {step} of {steps}").wait_for()
        seen.add((fragment(page), walk.inner_text()))
        if step < steps:
            walk.get_by_role("button", name="Next").click()
    assert len(seen) == steps
    answered(page)
    page.get_by_role("button", name="End the walk").or_(walk.get_by_role("button", name="End", exact=True)).first.click()
    walk.wait_for(state="detached")
    assert "learn.walk" not in fragment(page)
