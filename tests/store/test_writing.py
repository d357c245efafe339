"""Files are written whole or not at all, and what a killed writer left is removed."""

import os
import resource
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tcpscape import writing
from tcpscape.errors import StoreError

KILLED = """
import os, signal, sys
from pathlib import Path
from tcpscape import writing
with writing.replacing(Path(sys.argv[1])) as part:
    part.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_has_its_content_the_usual_permissions_and_nothing_beside_it(tmp_path):
    mask = os.umask(0o027)
    try:
        file = writing.whole(tmp_path / "new" / "a.txt", "µ\n")
    finally:
        os.umask(mask)
    assert file.read_bytes() == "µ\n".encode()
    assert file.stat().st_mode & 0o777 == 0o640
    assert names(file.parent) == ["a.txt"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    file = writing.whole(tmp_path / "a.txt", "before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(StoreError, match=r"out: cannot write .*a.txt: File too large; free some space"):
            writing.whole(file, b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert file.read_text() == "before"
    assert names(tmp_path) == ["a.txt"]


def test_what_a_killed_writer_left_is_removed_and_what_is_being_written_is_not(tmp_path):
    file = writing.whole(tmp_path / "a.txt", "before")
    assert subprocess.run([sys.executable, "-c", KILLED, file], check=False).returncode == -signal.SIGKILL
    (left,) = set(names(tmp_path)) - {"a.txt"}
    with writing.replacing(file) as part:
        part.write_text("after")
        writing.clear(tmp_path)
        assert names(tmp_path) == sorted([part.name, "a.txt"])
        assert part.name != left
    assert names(tmp_path) == ["a.txt"]
    assert file.read_text() == "after"


def test_threads_that_write_one_file_leave_one_of_their_contents(tmp_path):
    file, texts = tmp_path / "a.txt", [str(i) * 1000 for i in range(8)]
    with ThreadPoolExecutor(len(texts)) as threads:
        written = [threads.submit(writing.whole, file, text) for _ in range(50) for text in texts]
        for _ in range(50):
            writing.clear(tmp_path)
    assert [one.result() for one in written] == [file] * 400
    assert file.read_text() in texts
    assert names(tmp_path) == ["a.txt"]


def test_a_link_that_the_user_names_stays_a_link_and_a_device_a_device(tmp_path):
    file = writing.whole(tmp_path / "there" / "a.txt", "before")
    link = tmp_path / "link"
    link.symlink_to(file)
    writing.named(link, "after")
    assert link.is_symlink()
    assert file.read_text() == "after"
    device = tmp_path / "null"
    device.symlink_to(os.devnull)
    writing.named(device, "nothing")
    assert not os.path.isfile(os.devnull)
    device.unlink()
    device.symlink_to("/dev/full")
    with pytest.raises(StoreError, match="No space left on device"):
        writing.named(device, "nothing")


def test_a_link_or_a_fifo_in_a_result_directory_is_replaced(tmp_path):
    file = writing.whole(tmp_path / "there" / "a.txt", "mine")
    link, fifo = tmp_path / "link", tmp_path / "fifo"
    link.symlink_to(file)
    os.mkfifo(fifo)
    for place in (link, fifo):
        assert writing.whole(place, "new").read_text() == "new"
        assert not place.is_symlink()
    assert file.read_text() == "mine"


def test_a_name_as_long_as_a_file_system_allows(tmp_path):
    assert writing.whole(tmp_path / ("n" * 251 + ".txt"), "text").read_text() == "text"


@pytest.mark.parametrize("place", ["file/below.txt", "."])
def test_a_place_that_cannot_be_written_is_one_line(tmp_path, place):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"^out: cannot write [^\n]*; free some space, or choose another place that can be written$"):
        writing.whole(tmp_path / place, "text")
