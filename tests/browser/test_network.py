"""The view *Network*: a preset is drawn, what each part gets is told, and a click on a part leads to its text, which can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from browser.driving import field, fragment, write
from browser.explorer import Explorer
from browser.test_accessibility import violations

if TYPE_CHECKING:
    from playwright.sync_api import Page

NETWORK = "view=network&rtt=20ms&rate=10mbit&duration=1s&cca=cubic&links=name home delay 5ms rate 5mbit&transfers=5/s,20kB&probes=ping|voice~up"


def drawing(page: Page):
    return page.get_by_role("img", name="The path of the packets").locator("visible=true")


def test_rrul_is_a_preset_whose_probes_and_flows_are_told(visit, explorer: Explorer):
    page = visit(explorer)
    page.get_by_role("button", name="Presets").click()
    page.get_by_role("menuitem", name="RRUL at a home link").click()
    probes = page.get_by_role("region", name="Probes")
    probes.get_by_role("cell", name="udp_ping").wait_for()
    assert "home+delay+15ms" in fragment(page)
    drawing(page).locator("text", has_text="4 cubic up").wait_for()
    assert page.get_by_role("region", name="What each gets").get_by_role("row").count() == 4
    assert page.get_by_role("textbox", name="enter at").count() == 2


@pytest.mark.parametrize("width", [1280, 400])
def test_a_click_on_a_part_leads_to_its_text(visit, explorer: Explorer, width: int):
    page = visit(explorer, NETWORK, viewport={"width": width, "height": 900})
    page.watch.allow("status of 400")
    drawing(page).locator("text", has_text="Home").click()
    assert field(page, "link 1").evaluate("(e) => e === document.activeElement")
    write(page, "link 1", "name home delay 5ms rate 2mbit")
    drawing(page).locator("text", has_text="2 Mbit/s").first.wait_for()
    write(page, "link 1", "dely 5ms")
    page.get_by_role("alert").get_by_text("'dely' is no field of a link").wait_for()
    assert "rate+2mbit" in fragment(page)
    write(page, "link 1", "delay 1ms")
    page.get_by_role("button", name="Remove probe 2").click()
    page.get_by_role("button", name="Add probe").click()
    page.get_by_role("textbox", name="probe 2").wait_for()
    assert "probes=ping|voice&" in f"{fragment(page)}&"
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    page.wait_for_function("() => !document.querySelector('main [aria-busy=true]')")
    page.wait_for_timeout(400)
    assert violations(page) == []


def test_back_goes_back_to_the_view_and_the_path_before(visit, explorer: Explorer):
    page = visit(explorer, NETWORK)
    drawing(page).wait_for()
    before = fragment(page)
    page.get_by_role("tab", name="Curves", exact=True).click()
    page.get_by_role("button", name="Presets").click()
    page.get_by_role("menuitem", name="Lossy DSL").click()
    assert "loss=0.5" in fragment(page)
    page.go_back()
    page.get_by_role("region", name="Curves").wait_for()
    assert "links=" in fragment(page)
    page.go_back()
    drawing(page).wait_for()
    assert fragment(page) == before


def test_a_scenario_that_is_a_network_opens_as_one(visit):
    with Explorer("upload-and-call") as own:
        page = visit(own)
        drawing(page).locator("text", has_text="1 cubic up").wait_for()
        page.get_by_role("region", name="Probes").get_by_role("cell", name="voice-up").wait_for()
