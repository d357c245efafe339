"""Inputs that must be refused, in one line and at once; and the ones that are taken with a hint."""

from __future__ import annotations

import pytest

from robustness import judge, nonsense


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in nonsense.cases()])
def test_nonsense_is_refused_in_one_line(case, cli, tmp_path, monkeypatch, need_model):
    case.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = cli(*case.words)
    assert result.status == judge.EXIT_REFUSED, result.out[-300:]
    assert list(judge.message(result.err)) == []
