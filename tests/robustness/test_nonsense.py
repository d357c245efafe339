"""What makes no sense is refused in one line that names the field and says what to do; so is a file that is none, and an option without a value."""

import pytest

from robustness import judge, nonsense
from robustness.case import Case
from robustness.commands import commands

NO_NUMBERS = ("1_0", "٣", "nan", "inf", "9" * 5000, "0x5", "x", "1e999")


@pytest.fixture
def refused(cli, tmp_path, monkeypatch):
    """Carries out a case in an empty directory; its message, one line; nothing was printed, and nothing written where nothing belongs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(case):
        case.write(tmp_path)
        before = {path.name for path in tmp_path.iterdir()}
        got = cli(*case.words)
        if not case.nonsense and got.status == judge.EXIT_OK:
            return ""
        assert (got.status, got.out, list(judge.message(got.err))) == (judge.EXIT_REFUSED, "", []), got
        assert {path.name for path in tmp_path.iterdir()} <= before | {"out", "cache", "__pycache__"}
        return got.err

    return run


@pytest.mark.parametrize("known", nonsense.known(), ids=lambda known: known.line[:60])
def test_known_nonsense_is_refused_by_its_field_and_with_its_fix(known, refused, need_model):
    assert f"{known.said(refused(known.case))}\t{known.line}" == f"{known.field}\t{known.fix}\t{known.line}"


@pytest.mark.parametrize("kind", nonsense.no_files())
@pytest.mark.parametrize("line", nonsense.READERS)
def test_a_file_that_is_none_is_refused(line, kind, refused):
    err = refused(nonsense.unreadable(line, kind))
    assert not err or "; " in err


@pytest.mark.parametrize("text", ["{}", "", "flows: [{cca: bbr}]", "name: x"])
@pytest.mark.parametrize("line", ["run x.yaml", "sweep --axis mtu=1500,9000 x.yaml", "validate --conditions x.yaml", "export --to tc x.yaml"])
def test_a_scenario_without_a_path_is_refused(text, line, refused):
    refused(Case("nonsense", tuple(line.split()), {"x.yaml": text.encode()}, nonsense=True))


OPTIONS = [
    (name, option) for name, command in commands().items() for option in command.params if option.param_type_name == "option" and not option.is_flag
]
"""Every option that takes a value, of every command."""


@pytest.mark.parametrize(("command", "option"), OPTIONS, ids=lambda value: getattr(value, "name", value))
def test_an_option_is_not_empty_not_given_twice_and_no_other_number(command, option, cli):
    typed = next(word for word in option.opts if word.startswith("--"))
    name = typed.lstrip("-")
    wrong = [((typed, empty), "its value is empty; ") for empty in ("", "  ", "\t")]
    wrong += [((typed, "1", typed, "1"), "it is given twice; say it once")] * (not option.multiple)
    wrong += [((typed, text), "") for text in NO_NUMBERS if option.type.name in ("integer", "float")]
    for words, says in wrong:
        got = cli(*command.split(), *words)
        assert (got.status, got.out, list(judge.message(got.err))) == (judge.EXIT_REFUSED, "", [])
        assert got.err.startswith(f"error: {name}: {says}"), (words, got.err)
