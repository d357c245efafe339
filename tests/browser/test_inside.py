"""Inside one run, and several flows on one bottleneck."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import tcpscape
from browser.driving import fragment
from browser.explorer import Explorer

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

QUICK = "rate=8mbit&duration=4s&loss=0.5%25&view=inside"


def stack(page: Page) -> Locator:
    """The charts over time, once they are drawn."""
    charts = page.get_by_role("application", name=re.compile("^The run over time"))
    charts.locator("canvas").wait_for()
    page.wait_for_function("() => document.querySelectorAll('[aria-roledescription=chart] p').length > 3")
    return charts.first


def shown(page: Page) -> tuple[float, float]:
    """The time that is shown, s."""
    begin, end = (page.get_by_role("slider", name=f"{name} of the shown time") for name in ("start", "end"))
    return float(begin.get_attribute("aria-valuenow")), float(end.get_attribute("aria-valuenow"))


def test_events_of_the_run_are_counted_as_in_its_result(visit, explorer: Explorer):
    page = visit(explorer, f"{QUICK}&cca=cubic&inside.seed=0")
    stack(page)
    retransmitted = tcpscape.sweep(rtt="50ms", rate="8mbit", loss="0.5%", duration="4s", cca="cubic", seeds=1).cells[0].trials[0].flows[0].retransmits
    item = page.get_by_title("The sender sent segments again.")
    item.wait_for()
    assert f"retransmission {retransmitted}" == re.sub(r"\s+", " ", item.inner_text()).strip()


def test_charts_are_zoomed_together_by_keys_and_by_the_mouse(visit, explorer: Explorer):
    page = visit(explorer, QUICK)
    charts = stack(page)
    whole = shown(page)
    charts.focus()
    page.keyboard.press("+")
    zoomed = shown(page)
    assert whole[0] <= zoomed[0] < zoomed[1] <= whole[1]
    assert zoomed[1] - zoomed[0] < whole[1] - whole[0]
    page.keyboard.press("0")
    assert shown(page) == whole
    box = charts.bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"], steps=4)
    page.mouse.up()
    dragged = shown(page)
    assert dragged[1] - dragged[0] < 0.5 * (whole[1] - whole[0])
    page.get_by_role("slider", name="shown time", exact=True).focus()
    page.keyboard.press("ArrowRight")
    assert shown(page)[0] > dragged[0]


def test_the_next_event_is_read_aloud(visit, explorer: Explorer):
    page = visit(explorer, QUICK)
    stack(page).focus()
    page.keyboard.press("n")
    page.wait_for_function("() => [...document.querySelectorAll('main [aria-live]')].some((e) => /loss|retransmission|recovery/.test(e.innerText))")


@pytest.mark.parametrize(
    ("button", "words"),
    [
        ("Add rate step", "rate "),
        pytest.param("Add handover", "handover|delay|loss 100%", marks=pytest.mark.slow),
        pytest.param("Add outage", "loss 100%|outage|down", marks=pytest.mark.slow),
    ],
)
def test_a_change_of_the_path_is_added_and_dragged_on_the_timeline(visit, explorer: Explorer, button: str, words: str):
    page = visit(explorer, QUICK)
    stack(page)
    page.get_by_role("button", name=button).click()
    page.wait_for_function("() => location.hash.includes('changes=')")
    assert re.search(words, fragment(page).replace("+", " ")), fragment(page)
    rows = page.get_by_role("region", name="Changes of the path").get_by_role("textbox", name=re.compile("^time of"))
    before = rows.first.input_value()
    handle = page.get_by_role("slider", name=re.compile(" on ")).first
    # The run with the change may have more kinds of events, whose legend moves the chart down when it arrives.
    page.wait_for_function("() => !document.querySelector('main [aria-busy=true]')")
    handle.hover()
    box = handle.bounding_box()
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 120, box["y"] + box["height"] / 2, steps=6)
    page.mouse.up()
    page.wait_for_function(
        "(before) => [...document.querySelectorAll('main input')].some((i) => i.getAttribute('aria-label')?.startsWith('time of') && i.value !== before)",
        arg=before,
    )
    dragged = rows.first.input_value()
    assert dragged.removesuffix("s") in fragment(page)
    handle.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(
        "(before) => [...document.querySelectorAll('main input')].some((i) => i.getAttribute('aria-label')?.startsWith('time of') && i.value !== before)",
        arg=dragged,
    )
    page.get_by_role("button", name=re.compile("^Remove")).first.click()
    page.wait_for_function("() => !location.hash.includes('changes=')")


def test_a_pinned_scenario_is_compared_on_one_scale(visit, explorer: Explorer):
    page = visit(explorer, f"{QUICK}&cca=cubic")
    stack(page)
    page.get_by_role("button", name="Pin this scenario to compare").click()
    field = page.get_by_role("textbox", name="RTT", exact=True)
    field.fill("120ms")
    field.press("Enter")
    page.wait_for_function("() => document.querySelector('[role=tabpanel]').innerText.match(/pinned/i)")


def test_flows_share_a_bottleneck_with_jains_index(visit, explorer: Explorer):
    page = visit(explorer, "rate=8mbit&duration=3s&view=mix")
    page.get_by_role("button", name="Let cubic and bbr share it").click()
    page.wait_for_function("() => /20 of 20 runs/.test(document.querySelector('[role=tabpanel]').innerText)")
    text = page.get_by_role("tabpanel").inner_text()
    assert "Jain" in text
    assert "mix=cubic,bbr" in fragment(page)
    outcome = tcpscape.sweep(rtt="50ms", rate="8mbit", duration="3s", mix="cubic,bbr", seeds=20)
    jain = outcome.cells[0].mean("jain")
    assert f"{jain.value:.3g}" in text
