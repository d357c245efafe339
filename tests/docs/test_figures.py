"""Every generated figure that users see was made with a model that has today's behaviour table, and is as it was written."""

import json

import pytest

from conftest import bench

refresh = bench("refresh")
FIGURES = {figure.name: figure for figure in refresh.FIGURES}


@pytest.mark.parametrize("name", FIGURES)
def test_a_generated_figure_belongs_to_todays_model(name):
    reason = refresh.why_stale(FIGURES[name], refresh.read())
    assert reason is None, f"{name}: {reason}; `make refresh FIGURES={name}` makes it again"


@pytest.fixture
def behaviour_table(tmp_path, monkeypatch):
    """A behaviour table of three rows, and the root in which a figure is made."""
    table = tmp_path / "behaviour.csv"
    table.write_text("case,hash\na,1\nb,2\n")
    monkeypatch.setattr(refresh, "ROOT", tmp_path)
    monkeypatch.setattr(refresh, "RECORD", tmp_path / "figures.json")
    monkeypatch.setattr(refresh, "BEHAVIOUR", table)
    return table


def writes(name, text):
    """A figure of one file, whose command writes the text."""
    return refresh.Figure(name, (f"{name}.md",), (("-c", f"import pathlib; pathlib.Path('{name}.md').write_text({text!r})"),))


def test_a_figure_is_stale_when_a_row_of_the_behaviour_table_changes(behaviour_table):
    figure = writes("speed", "fast")
    assert refresh.why_stale(figure, refresh.read()) == "there is no record of how it was made"
    assert refresh.refresh([figure]) == 0
    assert refresh.why_stale(figure, refresh.read()) is None
    behaviour_table.write_text("case,hash\na,1\nb,2\nc,3\n")
    assert refresh.why_stale(figure, refresh.read()) is None  # a row more: what was measured is still true
    behaviour_table.write_text("case,hash\na,1\nb,7\n")
    assert refresh.why_stale(figure, refresh.read()).startswith("the model's results are others since")


def test_a_figure_is_stale_when_a_default_of_scenarios_changes(behaviour_table, monkeypatch):
    figure = writes("speed", "fast")
    refresh.refresh([figure])
    monkeypatch.setattr(refresh, "default_address", lambda: "another")
    assert refresh.why_stale(figure, refresh.read()).startswith("the model's results are others since")


def test_a_figure_that_was_edited_by_hand_is_stale(behaviour_table, tmp_path):
    figure = writes("speed", "fast")
    refresh.refresh([figure])
    (tmp_path / "speed.md").write_text("faster")
    assert refresh.why_stale(figure, refresh.read()) == "speed.md is not as it was written"


def test_what_was_made_stays_made_when_a_later_figure_fails(behaviour_table, tmp_path, capsys):
    broken = refresh.Figure("broken", ("broken.md",), (("-c", "raise SystemExit(3)"),))
    lacking = refresh.Figure("lacking", ("lacking.md",), (), unavailable=lambda: "no kernel: tcpscape kernel build")
    assert refresh.refresh([writes("speed", "fast"), broken, lacking]) == 2
    assert list(json.loads((tmp_path / "figures.json").read_text())) == ["speed"]
    printed = capsys.readouterr().out
    assert "ended with status 3" in printed
    assert "lacking: not made: no kernel: tcpscape kernel build" in printed


def test_the_errors_in_the_readme_are_those_of_the_last_measurement():
    errors = json.loads((refresh.ROOT / "python/tcpscape/data/fidelity.json").read_text("utf-8"))["controls"]["bbr"]["alone"]
    sentence = f"for BBR alone on a path the goodput is off by {100 * errors['median']:.2g} % in the median and by {100 * errors['p90']:.1g} % or"
    assert sentence in " ".join((refresh.ROOT / "README.md").read_text("utf-8").split())
