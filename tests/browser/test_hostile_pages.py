"""Names, files and addresses of somebody who wants the page to run a script: everything stands there as text."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tcpscape
from browser.driving import open_view, views
from browser.explorer import Explorer
from conftest import ROOT
from tcpscape.store.database import FILE

if TYPE_CHECKING:
    from playwright.sync_api import Page

IMAGE = "<img src=x onerror=window.ran=1>"
SCRIPT = "<script>window.ran=1</script>"
LINK = "javascript:window.ran=1"
MARKUP = f"{IMAGE}{SCRIPT}<svg onload=window.ran=1><a href='{LINK}'>here</a>"
REFUSED = r"status of 4\d\d"


def expect_text_alone(page: Page) -> None:
    """Nothing of it ran, or is an element."""
    page.wait_for_selector("main")
    page.wait_for_timeout(500)
    assert page.evaluate("() => window.ran") is None
    assert page.locator("img, iframe, object, embed, a[href^='javascript:' i], main script, aside script").count() == 0
    assert page.evaluate("() => [...document.scripts].every((s) => s.src.startsWith(location.origin))")


@pytest.mark.parametrize(
    "fragment",
    [
        {"rtt": MARKUP},
        {"jitter": LINK},
        {"cca": f"cubic|{IMAGE}"},
        {"cca": MARKUP},
        {"view": MARKUP},
        {"map.x": IMAGE, "view": "map"},
        {"curves.axis": SCRIPT},
        {"changes": MARKUP},
        {"mix": MARKUP, "view": "mix"},
        {"words": f"forward: {MARKUP}"},
        {"kernel": MARKUP},
        {MARKUP: MARKUP},
        {"__proto__": "x", "constructor": "y", "toString": "z"},
        {"learn.walk": IMAGE, "view": "learn"},
        {"measure.flow": MARKUP, "view": "measure"},
    ],
    ids=lambda fragment: "-".join(name[:12] for name in fragment),
)
def test_an_address_runs_nothing(visit, explorer: Explorer, fragment: dict[str, str]):
    page = visit(explorer, urllib.parse.urlencode(fragment))
    page.watch.allow(REFUSED)
    expect_text_alone(page)


def scenario(directory: Path) -> Path:
    """A scenario whose description and file name have markup in them."""
    file = directory / f"{IMAGE}.yaml"
    file.write_text(
        json.dumps({"about": MARKUP, "forward": {"delay": "20ms"}, "bottleneck": {"rate": "10mbit"}, "reverse": {"delay": "20ms"}, "duration": "2s"})
    )
    return file


def results(directory: Path) -> Path:
    """A result directory in which whatever is only shown was replaced."""
    place = directory / f"{IMAGE}results"
    tcpscape.sweep(rtt="20ms", rate="5mbit", jitter=["0ms", "4ms"], duration="1s", cca=["cubic", "bbr"], seeds=3, out=place)
    database = sqlite3.connect(place / FILE)
    for row, text in database.execute("SELECT place, document FROM manifests").fetchall():
        document = json.loads(text)
        document["name"] = document["campaign"]["name"] = document["tcpscape"] = MARKUP
        for cell in document["cells"]:
            cell["command"] = MARKUP
        database.execute("UPDATE manifests SET document = ? WHERE place = ?", (json.dumps(document), row))
    database.commit()
    database.close()
    return place


def capture(directory: Path) -> Path:
    """A capture of a real transfer with markup in its name."""
    file = directory / f"{IMAGE}.pcapng"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "tcpscape",
            "run",
            "--forward",
            "netem delay 20ms",
            "--bottleneck",
            "tbf rate 5mbit burst 5000 limit 60000",
            "--cca",
            "cubic",
            "--duration",
            "3s",
            "--seeds",
            "1",
            "--pcap",
            str(file),
            "--quiet",
        ],
        check=True,
    )
    return file


def iperf3(directory: Path) -> Path:
    """A file of iperf3 with markup in every text that is not a number of its protocol."""
    file = directory / f"{IMAGE}.json"
    document = json.loads((ROOT / "tests/data/interchange/iperf3-reverse.json").read_text())
    document["title"] = MARKUP
    document["start"]["system_info"] = document["start"]["version"] = document["start"]["cookie"] = MARKUP
    for connection in document["start"]["connected"]:
        connection["local_host"] = connection["remote_host"] = MARKUP
    file.write_text(json.dumps(document))
    return file


@pytest.mark.parametrize("make", [results, *(pytest.param(make, marks=pytest.mark.slow) for make in (scenario, capture, iperf3))])
def test_a_file_that_is_opened_runs_nothing(visit, built, tmp_path: Path, make: Callable[[Path], Path]):
    with Explorer(str(make(tmp_path))) as server:
        page = visit(server)
        page.watch.allow(REFUSED)
        for view in views(page):
            open_view(page, view)
            expect_text_alone(page)
        page.context.close()
