"""What the page's TypeScript takes the server's answers for is what the server says."""

import importlib
import sys

import pytest

from conftest import ROOT

pytest.importorskip("starlette", reason="tcpscape[web] is not installed")


def test_the_page_s_types_are_those_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "scripts"), *sys.path])
    contract = importlib.import_module("page_contract")
    assert contract.FILE.read_text("utf-8") == contract.text(), "run `python scripts/page_contract.py`"
