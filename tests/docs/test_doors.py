"""Every file from outside is opened by one package: `scripts/doors.py` finds the others."""

from __future__ import annotations

import runpy
import sys

import pytest

from conftest import ROOT

SCRIPTS = ROOT / "scripts"


@pytest.fixture
def doors(monkeypatch) -> dict:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield runpy.run_path(str(SCRIPTS / "doors.py"))
    sys.modules.pop("layers", None)


def test_no_module_opens_a_file_by_itself(doors, capsys):
    assert doors["main"]() == 0, capsys.readouterr().out


@pytest.mark.parametrize("line", [
    "open('x')", "path.read_text('utf-8')", "Path(x).read_bytes()", "path.open('rb')", "os.open(x, 0)", "json.loads(x)", "pl.read_parquet(x)", "yaml.safe_load(x)",
    "sqlite3.connect(x)", "gzip.open(x)", "gzip.decompress(x)", "pickle.loads(x)", "csv.DictReader(f)", "from_json(x)", "np.load(x)", "tarfile.open(x)",
])  # fmt: skip
def test_a_call_that_opens_or_parses_is_found(doors, tmp_path, line):
    (tmp_path / "new.py").write_text(f"def f(x, path):\n    return {line}\n")
    assert sum(doors["calls"](tmp_path / "new.py").values()) == 1


def test_what_a_module_writes_or_computes_is_no_door(doors, tmp_path):
    (tmp_path / "new.py").write_text("json.dumps(x)\nfile.write_text(x)\nopened(x)\nzlib.compress(x)\nyaml.safe_dump(x)\n")
    assert not doors["calls"](tmp_path / "new.py")
