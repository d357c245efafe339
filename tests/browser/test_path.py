"""The path: sliders, typed fields and tc's words say the same; presets; congestion controls as chips in the colours of every figure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from browser.driving import answer, answered, field, fragment, open_view, slider, write
from browser.explorer import Explorer
from tcpscape.controls import palette

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def words(page: Page) -> dict[str, Locator]:
    """The three fields of tc's words."""
    page.get_by_text("In tc's words").click()
    return {name: page.get_by_role("textbox", name=name, exact=True) for name in ("Data", "Bottleneck", "ACKs")}


@pytest.mark.parametrize(
    ("name", "text", "where", "expected"),
    [
        ("RTT", "80ms", "Data", r"delay 40ms"),
        ("Jitter", "6ms", "ACKs", r"delay 25ms 6ms"),
        ("Loss", "0.7%", "Data", r"loss 0\.7%"),
        ("Rate", "12mbit", "Bottleneck", r"rate 12mbit"),
        ("Buffer", "2bdp", "Bottleneck", r"limit 525000"),
    ],
)
def test_a_typed_field_is_in_the_slider_and_in_tcs_words(visit, explorer: Explorer, name: str, text: str, where: str, expected: str):
    from playwright.sync_api import expect

    page = visit(explorer)
    said = words(page)[where]
    before = slider(page, name).input_value()
    write(page, name, text)
    expect(said).to_have_value(re.compile(expected))
    assert slider(page, name).input_value() != before
    assert text in fragment(page)


def test_a_slider_that_moves_is_in_the_field_and_in_tcs_words(visit, explorer: Explorer):
    from playwright.sync_api import expect

    page = visit(explorer)
    said = words(page)["Bottleneck"]
    slider(page, "Rate").focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    rate = field(page, "Rate").input_value()
    assert rate != "42mbit"
    assert f"rate={rate}" in fragment(page)
    kbit = f"{1000 * float(rate.removesuffix('mbit')):g}kbit"
    expect(said).to_have_value(re.compile(f"rate ({rate}|{kbit}) ".replace(".", r"\.")))


def test_tcs_words_that_are_typed_move_fields_and_sliders(visit, explorer: Explorer):
    from playwright.sync_api import expect

    page = visit(explorer)
    for name, text in (("Data", "netem delay 70ms loss 1% limit 100000"), ("ACKs", "netem delay 70ms limit 100000")):
        said = page.get_by_role("textbox", name=name, exact=True) if name != "Data" else words(page)[name]
        said.fill(text)
        said.press("Enter")
    expect(field(page, "RTT")).to_have_value("140ms")
    expect(field(page, "Loss")).to_have_value("1%")
    answered(page)


def test_whether_jitter_reorders_is_a_switch(visit, explorer: Explorer):
    from playwright.sync_api import expect

    page = visit(explorer, "jitter=8ms&rate=20mbit&duration=3s")
    answered(page)
    before = answer(page).inner_text()
    page.get_by_role("group", name="Does it reorder?").get_by_role("radio", name="no").check()
    page.wait_for_function("() => location.hash.includes('order=')")
    expect(answer(page)).not_to_have_text(before)
    answered(page)


def test_loss_in_bursts_and_the_queue_and_ecn_are_chosen(visit, explorer: Explorer):
    page = visit(explorer, "loss=1%25&rate=8mbit&duration=2s")
    page.get_by_role("group", name="How").get_by_role("radio", name="in bursts").check()
    page.get_by_role("combobox", name="Queue").select_option(label="CoDel: drops by the time that packets wait")
    page.get_by_role("switch", name="ECN").check()
    page.wait_for_function("() => ['loss_burst=', 'queue=codel', 'ecn=yes'].every((part) => location.hash.includes(part))")
    answered(page)


@pytest.mark.parametrize("name", ["ask", "path"])
def test_the_same_value_typed_again_is_asked_again_after_a_server_that_was_not_there(visit, explorer: Explorer, name: str):
    from playwright.sync_api import expect

    page = visit(explorer, "duration=1s")
    page.watch.allow("status of 503")
    answered(page)
    page.route(f"**/api/{name}", lambda route: route.fulfill(status=503, body="Service Unavailable"))
    write(page, "RTT", "60ms")
    expect(page.get_by_text("The server answers with 503.").first).to_be_visible()
    page.unroute(f"**/api/{name}")
    write(page, "RTT", "60ms")
    expect(page.get_by_text("The server answers with 503.")).to_have_count(0)
    expect(answer(page)).to_contain_text("60 ms")


@pytest.mark.parametrize(("text", "problem"), [("nonsense", "rtt: 'nonsense'"), ("-5ms", "rtt"), ("50", "rtt"), ("1e99s", "rtt")])
def test_what_makes_no_sense_is_told_at_its_field_and_the_answer_stays(visit, explorer: Explorer, text: str, problem: str):
    from playwright.sync_api import expect

    page = visit(explorer)
    page.watch.allow("status of 400")
    answered(page)
    write(page, "RTT", text)
    expect(page.get_by_role("complementary").get_by_role("alert")).to_contain_text(problem)
    expect(field(page, "RTT")).to_have_attribute("aria-invalid", "true")
    assert field(page, "RTT").input_value() == text
    assert {"cubic", "bbr"} <= set(answer(page).inner_text().split())  # further runs of the old path may have changed its sentence
    write(page, "RTT", "60ms")
    expect(field(page, "RTT")).not_to_have_attribute("aria-invalid", "true")


def test_presets_of_every_kind_move_the_sliders(visit, explorer: Explorer):
    page = visit(explorer)
    page.get_by_role("button", name="Presets").click()
    menu = page.get_by_role("menu", name="Presets")
    for kind in ("Gallery", "Starlink", "Satellite", "Mobile", "Data centre"):
        assert menu.get_by_text(kind, exact=True).count() == 1
    titles = [item.inner_text().split("\n")[0] for item in menu.get_by_role("menuitem").all()]
    assert len(titles) >= 10
    seen = set()
    for title in titles:
        if not menu.is_visible():
            page.get_by_role("button", name="Presets").click()
        before = fragment(page)
        menu.get_by_role("menuitem", name=re.compile("^" + re.escape(title))).first.click()
        page.wait_for_function("(before) => decodeURIComponent(location.hash.slice(1)) !== before", arg=before)
        seen.add(fragment(page))
    assert len(seen) == len(titles)
    answered(page)


def test_chips_choose_controls_in_the_colours_of_every_figure(visit, explorer: Explorer):
    from playwright.sync_api import expect

    page = visit(explorer, "rate=8mbit&duration=2s&view=inside")
    chips = page.get_by_role("region", name="Congestion controls")
    chips.get_by_role("button", name="reno", exact=True).click()
    page.wait_for_function("() => /reno/.test(location.hash)")
    chips.get_by_role("button", name="bbr", exact=True).click()
    page.wait_for_function("() => location.hash.includes('cca=cubic%7Creno') || location.hash.includes('cca=cubic|reno')")
    expect(answer(page)).not_to_contain_text("bbr")
    assert "reno" in answered(page)
    looks = palette.looks(["cubic", "reno"])
    for name, look in looks.items():
        chip = chips.get_by_role("button", name=name, exact=True)
        assert chip.get_attribute("aria-pressed") == "true"
        assert chip.locator("path").first.get_attribute("stroke").lower() == look.colour.lower()
    for view in ("Curves", "Inside one run"):
        open_view(page, view)
        page.wait_for_function("() => document.querySelectorAll('[role=tabpanel] svg path').length >= 2")
        colours = (
            page.get_by_role("tabpanel")
            .locator("svg path")
            .evaluate_all("(paths) => paths.flatMap((p) => [p.getAttribute('stroke'), p.getAttribute('fill')])")
        )
        assert {look.colour.lower() for look in looks.values()} <= {str(colour).lower() for colour in colours}, view


def test_on_a_narrow_page_the_sliders_are_a_sheet_below_the_plot(visit, explorer: Explorer):
    """The plot is in the first screen, and both are in sight while a slider moves."""
    page = visit(explorer, "rate=20mbit&duration=2s&curves.seeds=5", viewport={"width": 400, "height": 800})
    answered(page)
    plot = page.locator(".main .plot").first
    assert plot.bounding_box()["y"] + plot.locator("canvas").first.bounding_box()["height"] < 1.05 * 800
    page.locator("button.fold").click()
    page.wait_for_timeout(300)
    loss = slider(page, "Loss")
    loss.press("ArrowRight")
    sheet = page.get_by_role("complementary", name="Path").bounding_box()
    assert sheet["y"] + sheet["height"] <= 800
    top, height = plot.bounding_box()["y"], plot.locator("canvas").first.bounding_box()["height"]
    assert top >= page.locator(".bar").bounding_box()["height"]
    assert top + 0.9 * height < sheet["y"] < loss.bounding_box()["y"] < 800
    page.locator("button.fold").click()
    assert loss.count() == 0 or not loss.is_visible()
