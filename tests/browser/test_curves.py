"""Curves along an axis and the map over two: drawn, read as tables, and a way to move the sliders."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

import pytest

import tcpscape
from browser.driving import field, fragment
from browser.explorer import Explorer
from tcpscape import stats

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

QUICK = "rate=8mbit&duration=2s"


def curves(page: Page, runs: int = 5) -> Locator:
    """The view, once every point has its runs."""
    from playwright.sync_api import expect

    view = page.get_by_role("region", name="Curves")
    expect(view).to_contain_text(f"Median of {runs} runs per point with")
    return view


def rows(view: Locator, title: str) -> list[list[str]]:
    """The table behind a chart, as text."""
    view.get_by_text(title).click()
    table = view.get_by_role("table")
    table.wait_for()
    return [[cell.strip() for cell in row] for row in table.evaluate("(t) => [...t.rows].map((r) => [...r.cells].map((c) => c.innerText))")]


def ink(canvas: Locator) -> int:
    """How many colours a canvas shows: one where nothing is drawn."""
    return canvas.first.evaluate("(c) => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size")


@pytest.mark.parametrize(("axis", "title"), [("rtt", "RTT"), ("jitter", "Jitter"), ("loss", "Loss"), ("rate", "Rate"), ("buffer", "Buffer")])
def test_goodput_is_drawn_along_any_axis_with_its_position(visit, explorer: Explorer, axis: str, title: str):
    page = visit(explorer, f"{QUICK}&view=curves&curves.axis={axis}&curves.seeds=5")
    view = curves(page)
    assert view.get_by_role("application", name=re.compile(f"^Goodput against {title}", re.IGNORECASE)).count() == 1
    assert view.get_by_role("slider", name=f"you are here on {title}").count() == 1
    assert ink(view.locator("canvas")) > 10


def test_a_slider_asks_for_its_curve_at_once(visit, explorer: Explorer):
    """Within the event itself: a question that waits for the next frame to be drawn comes a frame late."""
    page = visit(explorer, f"{QUICK}&view=curves&curves.axis=jitter&curves.seeds=5")
    curves(page)
    asked = page.get_by_role("slider", name="RTT", exact=True).evaluate(
        """(slider) => {
          const [fetched, kinds] = [window.fetch, []];
          window.fetch = (where, options) => (kinds.push(JSON.parse(options.body).kind), fetched(where, options));
          slider.value = String(Number(slider.value) + 20);
          slider.dispatchEvent(new Event("input", { bubbles: true }));
          window.fetch = fetched;
          return kinds;
        }"""
    )
    assert "curve" in asked
    curves(page)


def test_the_address_of_a_dragged_slider_is_written_when_it_is_let_go(visit, explorer: Explorer):
    """Also where the focus comes from another slider, which loses it after the pointer is down."""
    page = visit(explorer, f"{QUICK}&view=curves&curves.axis=jitter&curves.seeds=5")
    curves(page)
    page.get_by_role("slider", name="Loss", exact=True).focus()
    before, box = fragment(page), page.get_by_role("slider", name="RTT", exact=True).bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] / 2, steps=5)
    assert fragment(page) == before
    page.mouse.up()
    assert f"rtt={field(page, 'RTT').input_value()}" in fragment(page)
    curves(page)


def test_every_metric_has_a_chart_of_its_own(visit, explorer: Explorer):
    page = visit(explorer, f"{QUICK}&view=curves&curves.axis=loss&curves.seeds=5&curves.metrics=goodput|rtt|retransmissions|cv|delay")
    view = curves(page)
    names = [chart.get_attribute("aria-label").split(" against ")[0] for chart in view.get_by_role("application").all()]
    assert (len(names), len(set(names))) == (5, 5)


def test_the_table_behind_a_curve_has_the_numbers_of_the_command_line(visit, explorer: Explorer, tmp_path: Path):
    page = visit(explorer, f"{QUICK}&loss=1%25&view=curves&curves.axis=rtt&curves.seeds=5")
    view = curves(page)
    with page.expect_download() as download:
        view.get_by_role("group", name=re.compile("^Save Goodput")).get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "curve.csv")
    kept = list(csv.DictReader((tmp_path / "curve.csv").read_text("utf-8").splitlines()))
    outcome = tcpscape.sweep(rtt="50ms", rate="8mbit", loss="1%", duration="2s", cca=["cubic", "bbr"], seeds=5)
    for cell in outcome.cells:
        expected = 1e6 * stats.median(cell.values("goodput")).value
        told = [value for row in kept for value in row.values() if _number(value) == pytest.approx(expected, rel=1e-6)]
        assert told, f"{cell.cca} at 50 ms: {expected} is in no row of {kept}"
    table = rows(view, "Table of these curves")
    assert len(table) > 5


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def test_a_click_into_the_curve_moves_the_slider_there(visit, explorer: Explorer):
    page = visit(explorer, f"{QUICK}&view=curves&curves.axis=rtt&curves.seeds=5")
    chart = curves(page).get_by_role("application")
    box = chart.bounding_box()
    page.mouse.click(box["x"] + 0.85 * box["width"], box["y"] + 0.4 * box["height"])
    page.wait_for_function("() => /rtt=1[0-9][0-9]/.test(location.hash)")
    assert field(page, "RTT").input_value() in fragment(page)


def test_a_stretch_of_the_curve_is_chosen_by_the_mouse_and_all_is_shown_again(visit, explorer: Explorer):
    from playwright.sync_api import expect

    view = curves(visit(explorer, f"{QUICK}&view=curves&curves.axis=rtt&curves.seeds=5"))
    box, mouse, again = view.get_by_role("application").bounding_box(), view.page.mouse, view.get_by_role("button", name="Show all")
    height = box["y"] + 0.5 * box["height"]
    mouse.move(box["x"] + 0.2 * box["width"], height)
    mouse.down()
    mouse.move(box["x"] + 0.4 * box["width"], height, steps=4)
    mouse.up()
    expect(again).to_be_visible()
    mouse.dblclick(box["x"] + 0.3 * box["width"], height)
    expect(again).to_have_count(0)
    assert "rtt=" not in fragment(view.page), "neither a drag nor a double click chooses a place"


def test_you_are_here_moves_by_keys_and_is_the_slider(visit, explorer: Explorer):
    page = visit(explorer, f"{QUICK}&view=curves&curves.axis=rtt&curves.seeds=5")
    here = curves(page).get_by_role("slider", name="you are here on RTT")
    here.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.hash.includes('rtt=')")
    assert field(page, "RTT").input_value() != "50ms"


def filled(page: Page, runs: int, cells: int) -> Locator:
    """The map, once it is complete."""
    from playwright.sync_api import expect

    view = page.get_by_role("region", name="Cliff map")
    expect(view).to_contain_text(f"{runs} runs in {cells} cells", timeout=60_000)
    return view


def test_a_click_into_the_map_moves_the_sliders_there(visit, explorer: Explorer):
    page = visit(explorer, f"{QUICK}&view=map&map.resolution=10&map.seeds=1")
    view = filled(page, 200, 100)
    assert ink(view.locator("canvas")) > 10
    assert len(rows(view, "Table of this map")) == 101
    box = view.get_by_role("application").bounding_box()
    page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 0.3 * box["height"])
    page.wait_for_function("() => location.hash.includes('jitter=') && location.hash.includes('rtt=')")
    assert f"jitter={field(page, 'Jitter').input_value()}" in fragment(page)
    assert f"rtt={field(page, 'RTT').input_value()}" in fragment(page)


def test_the_map_is_read_and_chosen_by_keys(visit, explorer: Explorer):
    page = visit(explorer, f"{QUICK}&view=map&map.resolution=10&map.seeds=1&map.x=loss&map.y=jitter&map.quantity=retention&cca=cubic")
    view = filled(page, 100, 100)
    view.get_by_role("application").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    page.wait_for_function(
        "() => [...document.querySelectorAll('main [aria-live]')].some((e) => /loss/i.test(e.innerText) && /jitter/i.test(e.innerText))"
    )
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.includes('jitter=') && location.hash.includes('loss=')")


def test_a_map_can_be_stopped_and_goes_on(visit, explorer: Explorer):
    page = visit(explorer, "rate=42mbit&duration=20s&view=map&map.resolution=20&map.seeds=20")
    view = page.get_by_role("region", name="Cliff map")
    view.get_by_role("button", name="Stop").click()
    view.get_by_text("stopped").wait_for()
    view.get_by_role("button", name="Go on").click()
    view.get_by_role("button", name="Stop").wait_for()
