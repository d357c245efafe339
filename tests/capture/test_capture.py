"""Captures as users have them: files and pipes, compressed, cut, in any format that editcap writes; what is none is one line; nothing is kept."""

import gzip
import io
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import forked
from tcpscape import capture
from tcpscape.capture import Pseudonyms, annotate, read, verdicts, write_xpl
from tcpscape.errors import TcpscapeError
from tcpscape.findings.diagnosis.observed import Observation
from tcpscape.reading import files
from tcpscape.reading.streams import Stream


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is missing: apt-get install tshark")
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of the model with jitter and loss, as pcapng with Ethernet."""
    file = tmp_path_factory.mktemp("capture") / "m.pcapng"
    command = ["run", "--forward", "netem delay 10ms 2ms loss 0.5%", "--cca", "cubic", "--duration", "2s", "--seeds", "1", "--pcap", str(file)]
    subprocess.run([*forked.python(), "-m", "tcpscape", *command, "--quiet"], check=True, capture_output=True)
    return file


def same(a: Observation, b: Observation) -> None:
    assert [(f.source, f.destination, f.packets, f.bytes, f.seconds) for f in a.flows] == [
        (f.source, f.destination, f.packets, f.bytes, f.seconds) for f in b.flows
    ]
    for ours, theirs in zip(a.flows, b.flows, strict=True):
        for name in ("segments", "acks", "events"):
            left, right = getattr(ours, name), getattr(theirs, name)
            assert left.keys() == right.keys()
            assert all(np.array_equal(left[column], right[column]) for column in left)


def test_a_capture_has_its_flows(recorded: Path) -> None:
    observation = read(recorded)
    assert (observation.kind, observation.notes, observation.facts["is_whole"]) == ("pcapng", [], True)
    flow = observation.flows[0]
    assert flow.source.port == 50_000
    assert flow.packets > 100
    assert 0 < flow.bytes <= flow.segments["len"].sum()
    assert observation.facts["packets"] == observation.facts["frames"] > flow.packets + len(flow.acks["t"]) / 2


@pytest.mark.parametrize("name", ["gzip", "zstd", "bzip2", "xz"])
def test_compressed_captures_are_the_same(recorded: Path, tmp_path: Path, name: str) -> None:
    import bz2
    import lzma

    compress = {"gzip": gzip.compress, "zstd": files.zstd().compress, "bzip2": bz2.compress, "xz": lzma.compress}[name]
    file = tmp_path / "packed"
    file.write_bytes(compress(recorded.read_bytes()))
    observation = read(file)
    assert observation.facts["compression"] == name
    same(observation, read(recorded))


def test_a_compressed_capture_that_ends_early_gives_what_came_before(recorded: Path, tmp_path: Path) -> None:
    file = tmp_path / "cut.gz"
    content = gzip.compress(recorded.read_bytes())
    file.write_bytes(content[: len(content) // 2])
    observation = read(file)
    assert 10 < observation.facts["frames"] < read(recorded).facts["frames"]
    assert observation.notes[0] == "The capture was not read to its end: its gzip data end early."


@pytest.mark.parametrize("form", ["pcap", "nsecpcap", "pcapng"])
def test_forms_of_editcap_give_the_same_packets(recorded: Path, tmp_path: Path, form: str) -> None:
    file = tmp_path / "converted"
    subprocess.run([tool("editcap"), "-F", form, recorded, file], check=True, capture_output=True)
    ours, theirs = read(recorded), read(file)
    assert [(f.packets, f.bytes, f.facts["retransmissions"]) for f in ours.flows] == [
        (f.packets, f.bytes, f.facts["retransmissions"]) for f in theirs.flows
    ]
    if form != "pcap":  # which has microseconds
        same(ours, theirs)


def test_standard_input_is_read_as_it_comes(recorded: Path) -> None:
    code = "from tcpscape import capture; o = capture.read('-'); print(o.name, o.facts['frames'])"
    with subprocess.Popen([*forked.python(), "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        content = gzip.compress(recorded.read_bytes())
        for at in range(0, len(content), 5_000):
            process.stdin.write(content[at : at + 5_000])
            process.stdin.flush()
        output, _ = process.communicate()
    assert output.decode().strip() == f"standard input {read(recorded).facts['frames']}"


def test_progress_tells_the_bytes_of_the_file(recorded: Path) -> None:
    told: list[tuple[int, int | None]] = []
    read(recorded, lambda done, total: told.append((done, total)))
    size = recorded.stat().st_size
    assert told[-1] == (size, size)


def test_a_stream_shows_its_begin_without_taking_it(recorded: Path) -> None:
    with Stream(recorded, capture.CAPTURE) as stream:
        assert capture.recognises(stream.peek(16))
        observation = read(stream)
    assert observation.facts["frames"] == read(recorded).facts["frames"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty; capture again"),
        (b'{"log": {"creator": {"name": "WebInspector"}}}', "is JSON, not a capture; give the packets (tcpdump -w FILE); a browser's .har"),
        (b"12:00:01 IP 10.0.0.1.443 > 10.0.0.2.5: Flags [.]\n", "is text, not a capture"),
        (b"PK\x03\x04rest of it", "is a zip archive; unpack it"),
        (b"\0" * 64, "is neither pcap nor pcapng; give what tcpdump -w"),
        (bytes.fromhex("d4c3b2a1 02000400 00000000 00000000 00000400 7f000000"), "link type 127 (Wi-Fi with radiotap headers), which is not read"),
    ],
)
def test_what_is_no_capture_is_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "given"
    for raw in (content, gzip.compress(content)):
        file.write_bytes(raw)
        with pytest.raises(TcpscapeError) as e:
            read(file)
        message = str(e.value)
        assert said in message
        assert message.startswith(f"{file}: ")
        assert message.isprintable()
        assert len(message) < 400
    with pytest.raises(TcpscapeError, match="is a directory, not a capture"):
        read(tmp_path)


# ---- captures written again


def rows(file: Path, *fields: str) -> list[list[str]]:
    wanted = [word for field in fields for word in ("-e", field)]
    command = [tool("tshark"), "-n", "-r", str(file), "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-T", "fields", *wanted]
    return [line.split("\t") for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()]


SAME = ("frame.number", "frame.time_epoch", "frame.len", "tcp.srcport", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.options.sack_le")
"""What stays of a packet."""


def test_an_annotated_capture_has_the_same_packets_and_our_verdicts(recorded: Path, tmp_path: Path) -> None:
    out, notes = tmp_path / "noted.pcapng", verdicts(read(recorded))
    annotate(recorded, out, notes)
    assert rows(out, *SAME) == rows(recorded, *SAME)
    comments = {int(frame): text for frame, text in rows(out, "frame.number", "frame.comment") if text}
    assert comments.keys() == notes.keys()
    assert all(text.startswith("tcpscape: ") for text in comments.values())
    lost = [frame for frame, texts in notes.items() if any("lost" in text for text in texts)]
    assert lost, "a path with loss has lost segments"


def test_headers_alone_hold_no_payload(recorded: Path, tmp_path: Path) -> None:
    out = tmp_path / "headers.pcapng"
    annotate(recorded, out, {}, headers_only=True)
    assert rows(out, *SAME) == rows(recorded, *SAME)
    assert all(int(kept) <= 14 + 20 + 60 for (kept,) in rows(out, "frame.cap_len"))


def test_pseudonyms_leave_no_address_and_right_checksums(recorded: Path, tmp_path: Path) -> None:
    observation, names = read(recorded), Pseudonyms()
    shown = names.observation(observation)
    assert (shown.name, shown.flows[0].source.address, shown.flows[0].destination.address) == ("capture", "198.18.0.1", "198.18.0.2")
    assert shown.flows[0].source.port == observation.flows[0].source.port
    assert names.address("") == ""
    out = tmp_path / "named.pcapng"
    annotate(recorded, out, {}, pseudonyms=names)
    seen = rows(out, "ip.src", "ip.dst", "eth.src", "ip.checksum.status", *SAME)
    assert {address for row in seen for address in row[:2]} == {"198.18.0.1", "198.18.0.2"}
    assert {(row[2], row[3]) for row in seen} == {("00:00:00:00:00:00", "1")}
    assert [row[4:] for row in seen] == rows(recorded, *SAME)


def test_standard_input_cannot_be_annotated(tmp_path: Path) -> None:
    with pytest.raises(TcpscapeError, match="standard input: can be read only once"):
        annotate("-", tmp_path / "x.pcapng", {})
    assert os.listdir(tmp_path) == []


def test_a_graph_for_xplot_has_every_packet(recorded: Path, tmp_path: Path) -> None:
    flow = read(recorded).flows[0]
    text = write_xpl(flow, tmp_path / "flow.xpl").read_text("utf-8")
    lines = text.splitlines()
    assert (lines[:2], lines[-1]) == (["timeval double", "title"], "go")
    assert sum(line.startswith("uarrow ") for line in lines) == len(flow.segments["t"])
    assert sum(line == "R" for line in lines) == int(np.isin(flow.events["kind"], (1, 2, 3, 4, 15)).sum())
    numbers = [line.split() for line in lines if line.startswith("line ")]
    assert numbers
    assert all(float(t) <= float(u) and int(a) >= 0 and int(b) >= 0 for _, t, a, u, b in numbers)


def test_bytes_of_any_pieces_give_the_same(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(recorded)
    content = recorded.read_bytes()
    pieces = io.BytesIO(content)
    monkeypatch.setattr("tcpscape.reading.streams.os.read", lambda _, size: pieces.read(min(size, 777)))
    same(read(recorded), whole)
