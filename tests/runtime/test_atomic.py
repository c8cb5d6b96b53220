"""A file holds all of what was written or what it held before, and nothing lies beside it."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from proxmargin.runtime.files import replaced


def write(path: Path, content: bytes) -> None:
    with replaced(path) as stream:
        stream.write(content)


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path) -> None:
    path = tmp_path / "a.bin"
    write(path, b"one")
    write(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_failure_leaves_what_there_was(tmp_path) -> None:
    path = tmp_path / "a.bin"
    write(path, b"one")

    def fail() -> None:
        with replaced(path) as stream:
            stream.write(b"half of")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_the_content_and_then_the_name_reach_the_disk(tmp_path, monkeypatch) -> None:
    synced: list[bool] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    write(tmp_path / "a.bin", b"one")
    assert synced == [False, True]


def test_what_a_killed_process_left_is_removed_and_nothing_else_is(tmp_path) -> None:
    path = tmp_path / "a.bin"
    code = (
        "import os, signal, sys; from proxmargin.runtime.files import replaced\n"
        "with replaced(sys.argv[1]) as stream:\n"
        "    stream.write(b'half'); stream.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    died = subprocess.run([sys.executable, "-c", code, str(path)], timeout=60)
    assert died.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 1
    others = {".b.bin.0123456789abcdef.part", ".a.bin.part", ".a.bin.0123.part", "a.bin.part"}
    for name in others:
        (tmp_path / name).write_bytes(b"of somebody else")
    write(path, b"whole")
    assert set(os.listdir(tmp_path)) == {"a.bin"} | others


def test_a_draft_that_somebody_writes_is_no_leftover(tmp_path) -> None:
    path = tmp_path / "a.bin"
    with replaced(path) as stream:
        stream.write(b"late")
        write(path, b"early")
        assert path.read_bytes() == b"early"
    assert path.read_bytes() == b"late"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_permissions_and_links_stay(tmp_path) -> None:
    path, link = tmp_path / "a.bin", tmp_path / "link"
    write(path, b"one")
    path.chmod(0o640)
    link.symlink_to(path)
    write(link, b"two")
    assert link.is_symlink()
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_long_name_has_room_for_drafts(tmp_path) -> None:
    path = tmp_path / ("ä" * 127)
    write(path, b"one")
    assert path.read_bytes() == b"one"


def test_a_pipe_or_a_device_is_written_to_and_not_replaced(tmp_path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    write(pipe, b"one")
    assert reader.communicate(timeout=10)[0] == b"one"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        write(Path("/dev/full"), b"one")


def test_a_folder_is_refused(tmp_path) -> None:
    with pytest.raises(IsADirectoryError):
        write(tmp_path, b"one")


def test_an_error_names_the_file_that_was_asked_for(tmp_path) -> None:
    path = tmp_path / "missing" / "file.html"
    with pytest.raises(FileNotFoundError) as caught, replaced(path):
        pass
    assert str(caught.value) == f"[Errno 2] No such file or directory: {str(path)!r}"


def test_a_full_disk_is_told_by_the_name_of_the_file(tmp_path) -> None:
    path = tmp_path / "file.html"
    with (
        pytest.raises(OSError, match=rf"No space left on device: '{re.escape(str(path))}'$"),
        replaced(path),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as of a write to the draft
