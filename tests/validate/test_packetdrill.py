"""packetdrill's scripts: the project's own pass, statements about tcp_info are judged and nothing else is carried out, the command, foreign scripts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tcpscape.errors import TcpscapeError
from tcpscape.validate import packetdrill
from tcpscape.validate.packetdrill import Verdict
from tcpscape.words import packetdrill as words

ROOT = Path(__file__).parents[2]
OWN = ROOT / "tests" / "packetdrill"
OPEN = """    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <...>
  +.1 < . 1:1(0) ack 1 win 1000
   +0 accept(3, ..., ...) = 4
"""


def result(tmp_path, body):
    script = tmp_path / "a.pkt"
    script.write_text(OPEN + body)
    return packetdrill.run([script]).results[0]


def tcpscape(*args, cwd=ROOT):
    return subprocess.run([sys.executable, "-m", "tcpscape", *args], cwd=cwd, capture_output=True, text=True, check=False)


DEVIATIONS = {"rfc9293-piggyback": "> . 101:101(0) ack 2001"}
"""Scripts that Linux passes and the model does not (docs/deviations.md), and what leaves instead."""


@pytest.mark.parametrize("script", sorted(OWN.glob("*.pkt")), ids=lambda p: p.stem)
def test_the_projects_own_scripts_pass_but_for_known_deviations(script):
    r = packetdrill.run([script]).results[0]
    assert script.read_text().startswith("// RFC ")
    if script.stem in DEVIATIONS:
        assert (r.verdict, r.actual) == (Verdict.FAILED, DEVIATIONS[script.stem])
    else:
        assert r.verdict is Verdict.PASSED, words.failure(r)


def test_there_are_forty_scripts_and_no_deviation_too_many():
    names = {script.stem for script in OWN.glob("*.pkt")}
    assert len(names) >= 40
    assert names >= set(DEVIATIONS)


def test_statements_are_judged_with_the_values_of_their_moment(tmp_path):
    body = "+0 write(4, ..., 1000) = 1000\n+0 %{ before = tcpi_unacked }%\n+.1 < . 1:1(0) ack 1001 win 1000\n"
    assert result(tmp_path, body + "+0 %{ assert before == 1 and tcpi_unacked == 0 }%\n").verdict is Verdict.PASSED
    wrong = result(tmp_path, body + "+0 %{\nassert tcpi_state == TCP_ESTABLISHED\nassert 12 <= tcpi_snd_cwnd + before <= 12, tcpi_snd_cwnd\n}%\n")
    assert (wrong.verdict, wrong.problem, wrong.line) == (Verdict.FAILED, "tcp_info", 13)
    assert (wrong.expected, wrong.actual) == ("12 <= tcpi_snd_cwnd + before <= 12", "tcpi_snd_cwnd is 10, before is 1")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("assert tcpi_fackets == 0", "tcpi_fackets: a field of tcp_info that the model does not have"),
        ("import os", "statements of Python other than assert and assignments: 'import os'"),
        ("open('/tmp/x', 'w')", "statements of Python other than assert and assignments"),
        ("x = ().__class__", "expressions of Python other than arithmetic"),
        ("x = 9 ** 9 ** 9", "the operator Pow of Python"),
    ],
)
def test_other_code_is_not_applicable_and_not_carried_out(tmp_path, code, reason):
    r = result(tmp_path, f"+0 %{{ {code} }}%\n")
    assert (r.verdict, r.line) == (Verdict.NOT_APPLICABLE, 8)
    assert r.problem.startswith(reason)


def test_a_statement_that_fails_before_a_packet_is_the_first_difference(tmp_path):
    r = result(tmp_path, "+0 %{ assert tcpi_snd_cwnd == 4 }%\n+0 > . 1:1(0) ack 1\n")
    assert (r.line, r.problem) == (8, "tcp_info")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("0 frobnicate(3) = 0\n", "bad.pkt:1: the call frobnicate() is unknown; use one of packetdrill's: "),
        (OPEN + "+0 %{ assert ( }%\n", "bad.pkt:8: the code between %{ and }% is no Python; write assert tcpi_snd_cwnd == 10"),
        (OPEN + "\n+0 > Q 1:1(0)\n", "bad.pkt:9: 'Q' are no flags of TCP; "),
    ],
)
def test_a_bad_script_is_one_line_with_file_and_line(tmp_path, text, line):
    script = tmp_path / "bad.pkt"
    script.write_text(text)
    done = tcpscape("packetdrill", str(script))
    assert (done.returncode, done.stdout) == (2, "")
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_no_script_is_refused(tmp_path):
    for paths, kernel, begin in (([tmp_path], "6.18", "scripts: there is none"), ([tmp_path / "no.pkt"], "6.18", ""), ([OWN], "2.4", "kernel: ")):
        with pytest.raises(TcpscapeError) as e:
            packetdrill.run(paths, kernel)
        assert str(e.value).startswith(begin)


def test_the_command_answers_first_and_check_is_a_status(tmp_path):
    (tmp_path / "ecn-a.pkt").write_text(OPEN)
    (tmp_path / "close-b.pkt").write_text(OPEN + "+0 > . 1:1(0) ack 1\n")
    (tmp_path / "c.pkt").write_text(OPEN + "+0 `iptables -L`\n")
    done = tcpscape("packetdrill", ".", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1] == "→ 1 of 2 scripts pass; 1 not applicable."
    assert "close-b.pkt:8: no packet left: expected > . 1:1(0) ack 1, actual nothing" in " ".join(done.stdout.split())
    checked = tcpscape("packetdrill", ".", "--check", "--json", cwd=tmp_path)
    document = json.loads(checked.stdout)
    assert checked.returncode == 1
    assert (document["passed"], document["failed"], document["not_applicable"]) == (1, 1, 1)
    assert [s["family"] for s in document["scripts"]] == ["other", "close", "ECN and AccECN"]


@pytest.mark.slow
def test_scripts_of_others_differ_where_the_page_says():
    named = os.environ.get("TCPSCAPE_PACKETDRILL")
    if not named:
        pytest.skip("no packetdrill scripts: TCPSCAPE_PACKETDRILL names no directory")
    drill = packetdrill.run([Path(part) for part in named.split(":")])
    page = (ROOT / "docs" / "packetdrill.md").read_text("utf-8")
    assert [words.failure(r) for r in drill.of(Verdict.FAILED) if Path(r.path).name not in page] == []
