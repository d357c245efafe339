"""The answer: the numbers are those of the command line, with their interval, for what was asked last."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import tcpscape
from browser.driving import answer, answered, fragment, slider
from browser.explorer import Explorer
from tcpscape.words import sentences

if TYPE_CHECKING:
    from playwright.sync_api import Page


def expect_answer(page: Page, **conditions: str) -> None:
    """Waits until the answer has the ratio and the interval of the command line for these conditions, or that both carry the same."""
    from playwright.sync_api import expect

    outcome = tcpscape.sweep(**conditions, cca=["cubic", "bbr"], seeds=20)
    words = re.search(r"[\d.]+ × \S+ \[[^]]+\]|carry (?:nearly )?the same, .*?Mbit/s", sentences.run_answer(outcome))
    assert words
    expect(answer(page)).to_contain_text(words.group())


def test_the_sentence_has_the_numbers_of_the_command_line(visit, explorer: Explorer):
    page = visit(explorer, "rtt=40ms&rate=8mbit&loss=0.5%25&duration=3s")
    answered(page)
    expect_answer(page, rtt="40ms", rate="8mbit", loss="0.5%", duration="3s")


@pytest.mark.parametrize("last", [0.2, *(pytest.param(last, marks=pytest.mark.slow) for last in (0.5, 0.83))])
def test_a_slider_that_is_dragged_quickly_ends_with_the_answer_for_its_last_value(visit, explorer: Explorer, last: float):
    page = visit(explorer, "rate=8mbit&duration=3s")
    answered(page)
    thumb = slider(page, "RTT")
    box = thumb.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, y)
    page.mouse.down()
    for step in range(120):
        page.mouse.move(box["x"] + box["width"] * (0.05 + 0.9 * (step * 37 % 120) / 120), y)
    page.mouse.move(box["x"] + box["width"] * last, y)
    page.mouse.up()
    rtt = re.search(r"rtt=([^&]+)", fragment(page))
    assert rtt
    assert page.get_by_role("textbox", name="RTT").input_value() == rtt.group(1)
    expect_answer(page, rtt=rtt.group(1), rate="8mbit", duration="3s")
