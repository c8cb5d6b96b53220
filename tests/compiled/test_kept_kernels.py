"""Compiled kernels are kept on disk and found again, none out of date, damaged or a stranger's."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import proxmargin
from proxmargin.compiled import cache, folders, kept_kernels
from proxmargin.compiled.products.compensated import add

ROOT = Path(proxmargin.__file__).parent
DAY = 86_400.0
UNIX = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners of files are Unix's")

RISE = """
import numpy as np
from proxmargin.functions.losses.margins.hinge import CappedScalars
from proxmargin.compiled.solvers.newton import _rise
one = np.ones(1)
print(_rise(CappedScalars(2.0, np.inf), 0 * one, one, one, one, one, one, 0 * one, 1.0))
"""
ADD = "from proxmargin.compiled.products.compensated import add; print(add(1.0, 0.0, 2.0))"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty place for the cache of this process."""
    monkeypatch.setattr(folders.config, "CACHE_DIR", str(tmp_path))
    begin_anew()
    yield tmp_path
    begin_anew()


def begin_anew() -> None:
    """Forget what is found out once a process."""
    for each in (folders.home, folders.used, kept_kernels._warn_once):
        each.cache_clear()


def fresh() -> Any:
    """A small kernel, as a process that has not used it yet knows it."""
    return cache.just_in_time(add.py_func, {"cache": True, "nogil": True})


def was_found() -> bool:
    """Whether a process finds the kernel on disk; it works in either case."""
    kernel = fresh()
    assert kernel(1.0, 0.0, 2.0) == (3.0, 0.0)
    return sum(kernel.stats.cache_hits.values()) == 1


def kept(place: Path) -> list[Path]:
    return sorted((place / folders.NAME).glob("*.nbc*"))


def told(code: str, source: Path = ROOT.parent, **settings: str) -> tuple[str, str]:
    """What a process of its own prints and logs."""
    clean = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    env = {**clean, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"PROXMARGIN_KERNELS": "numba", **settings}
    result = subprocess.run(
        [sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True
    )
    return result.stdout.strip(), result.stderr


def copied(tmp_path: Path) -> Path:
    """The package, with nothing compiled."""
    source = tmp_path / "source"
    nothing_compiled = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT, source / "proxmargin", ignore=nothing_compiled)
    return source


def test_a_kernel_is_compiled_once(place: Path) -> None:
    assert [was_found() for _ in range(3)] == [False, True, True]
    assert [path.suffix for path in kept(place)] == [".nbc"]


def test_kernels_for_other_types_do_not_disturb_each_other(place: Path) -> None:
    was_found()
    assert fresh()(1, 0, 2) == (3, 0)
    assert was_found()
    assert len(kept(place)) == 2


@pytest.mark.slow
def test_an_edit_is_seen_by_the_kernels_of_other_files(tmp_path: Path) -> None:
    source, settings = copied(tmp_path), {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert told(RISE, source, **settings)[0] == "-1.0"  # from (1 - 0)^2 to (1 - 1)^2
    loss = source / "proxmargin/functions/losses/margins/hinge.py"  # whose methods are compiled
    text = loss.read_text(encoding="utf-8")
    assert text.count("return 0.5 * self.smoothness * u * u") == 1
    loss.write_text(text.replace("return 0.5 * self", "return 4.5 * self"), encoding="utf-8")
    assert told(RISE, source, **settings)[0] == "-9.0"
    loss.write_text(text, encoding="utf-8")
    kernels = source / "proxmargin/compiled/solvers/newton.py"
    text = kernels.read_text(encoding="utf-8")
    assert text.count("total += l1[j] * (abs(coef[j] + step") == 1
    kernels.write_text(text.replace("total += l1[j] *", "total += 3.0 + l1[j] *"), encoding="utf-8")
    assert told(RISE, source, **settings)[0] == "2.0"
    kernels.write_text(text, encoding="utf-8")
    assert told(RISE, source, **settings) == ("-1.0", "")  # that of before is still there


@pytest.mark.parametrize("file", ["losses/margins.py", "cache.py", "__init__.py"])
def test_the_name_of_the_folder_tells_every_file(file: str, tmp_path: Path, monkeypatch) -> None:
    here = copied(tmp_path) / "proxmargin/compiled"
    monkeypatch.setattr(folders, "HERE", here)
    assert folders.name() == folders.NAME
    with (here / file).open("a", encoding="utf-8") as end:
        end.write("\n")
    assert folders.name() != folders.NAME


@UNIX
def test_what_editors_leave_changes_nothing(tmp_path: Path, monkeypatch) -> None:
    here = copied(tmp_path) / "proxmargin/compiled"
    (here / "losses/.#margins.py").symlink_to("someone@somewhere.1234")
    monkeypatch.setattr(folders, "HERE", here)
    assert folders.name() == folders.NAME


def test_kernels_in_an_archive_are_not_kept(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(folders, "HERE", tmp_path / "archive.zip/proxmargin/compiled")
    assert folders.name() == ""
    monkeypatch.setattr(folders, "NAME", "")
    assert folders.places() == ()


def test_what_was_compiled_of_files_since_edited_is_not_kept(place: Path, monkeypatch) -> None:
    monkeypatch.setattr(folders, "name", lambda: "proxmargin-edited")
    assert [was_found() for _ in range(2)] == [False, False]
    assert kept(place) == []


def sealed(content: bytes) -> bytes:
    return sha256(content).digest() + content


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "cut in its digest": lambda whole: whole[:20],
    "cut": lambda whole: whole[:-100],
    "garbage": lambda whole: os.urandom(len(whole)),
    "one bit": lambda whole: whole[:-50] + bytes([whole[-50] ^ 1]) + whole[-49:],
    "whole and no pickle": lambda whole: sealed(b"no pickle"),
    "whole and another thing": lambda whole: sealed(pickle.dumps(1)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_made_again(damage: str, place: Path) -> None:
    was_found()
    (path,) = kept(place)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert [was_found(), was_found()] == [False, True]
    assert kept(place) == [path]


def test_readers_and_writers_at_once_see_whole_files(place: Path) -> None:
    path = place / folders.NAME / "kernel.nbc"
    versions = [bytes([k]) * 100_000 for k in range(4)]
    kept_kernels._write(path, versions[0])

    def write_and_read(k: int) -> list[bytes]:
        kept_kernels._write(path, versions[k % 4])
        return [content for _, content in kept_kernels._contents(path.name)]

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(write_and_read, range(200)))
    assert all(len(contents) == 1 and contents[0] in versions for contents in seen)
    assert kept(place) == [path]


@pytest.mark.parametrize("where", ["write", "replace"])
def test_a_full_disk_costs_no_more_than_a_warning(where, place: Path, monkeypatch, caplog) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments))

    was_found()  # its folder is there
    kept(place)[0].unlink()
    if where == "write":
        monkeypatch.setattr(kept_kernels, "sha256", lambda content: Full(sha256(content), full))
    else:
        monkeypatch.setattr(kept_kernels.os, "replace", full)
    assert [was_found(), was_found()] == [False, False]
    assert kept(place) == []
    warnings = [record.getMessage() for record in caplog.records if "kept in" in record.message]
    assert sum("No space left" in warning for warning in warnings) == 1


class Full:
    """A digest that meets a full disk where it is to be written."""

    def __init__(self, digest: Any, fail: Callable[..., None]) -> None:
        self.hexdigest, self.digest = digest.hexdigest, fail


def unwritable(tmp_path: Path) -> str:
    """A folder that cannot be made, not even by the administrator."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    return str(tmp_path / "file" / "folder")


def test_a_place_that_cannot_be_written_is_named_once(tmp_path: Path) -> None:
    place = unwritable(tmp_path)
    printed, log = told(ADD + "; print(add(1, 0, 2))", NUMBA_CACHE_DIR=place)
    assert printed == "(3.0, 0.0)\n(3, 0)"
    assert log.count("compiling kernels") == log.count("set NUMBA_CACHE_DIR") == 1
    assert place in log


@UNIX
def test_an_installation_that_cannot_be_written_serves_users_without_a_home(tmp_path) -> None:
    source, nowhere = copied(tmp_path), unwritable(tmp_path)
    (source / "proxmargin/compiled/__pycache__").write_text("", encoding="utf-8")
    printed, log = told(ADD, source, HOME=nowhere)
    assert printed == "(3.0, 0.0)"
    assert log.count("set NUMBA_CACHE_DIR") == 1


@UNIX
@pytest.mark.slow
def test_an_installation_that_cannot_be_written_uses_the_caches_of_the_user(tmp_path) -> None:
    source, caches = copied(tmp_path), tmp_path / "caches"
    (source / "proxmargin/compiled/__pycache__").write_text("", encoding="utf-8")
    logs = [told(ADD, source, XDG_CACHE_HOME=str(caches))[1] for _ in range(2)]
    assert f"kept in {caches / 'proxmargin'}" in logs[0]
    assert logs[1] == ""


def test_without_a_setting_the_place_beside_the_kernels_comes_first(monkeypatch) -> None:
    monkeypatch.setattr(folders.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/someone"))
    first, second = folders.places()
    assert first == ROOT / "compiled" / "__pycache__"
    assert second.parts[-1] == "proxmargin"
    assert Path("/home/someone") in second.parents


def test_a_user_without_a_home_has_no_caches(monkeypatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(folders.config, "CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    assert folders.places() == (ROOT / "compiled" / "__pycache__",)


@UNIX
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_everybody_may_write_is_not_read(what: str, place: Path) -> None:
    was_found()
    (file,) = kept(place)
    open_to_all = file if what == "file" else file.parent
    open_to_all.chmod(0o777)
    begin_anew()
    before = file.stat().st_mtime_ns
    assert not was_found()
    assert (file.stat().st_mtime_ns == before) == (what == "folder")  # a file is made again
    file.parent.chmod(0o755)
    assert was_found()


@UNIX
def test_the_files_of_a_stranger_are_not_trusted(tmp_path: Path) -> None:
    owner = folders.HERE.stat().st_uid
    stranger = 1 + max(owner, os.geteuid())
    (tmp_path / "file").touch(mode=0o644)
    status = list((tmp_path / "file").stat())
    trust = {uid: folders.trusted(os.stat_result([*status[:4], uid, *status[5:]]))
             for uid in (0, owner, os.geteuid(), stranger)}  # fmt: skip
    assert [uid for uid, trusted in trust.items() if not trusted] == [stranger]


@UNIX
def test_files_are_written_by_their_owner_alone_whatever_the_mask(place: Path) -> None:
    before = os.umask(0)
    try:
        was_found()
    finally:
        os.umask(before)
    assert was_found()


def aged(path: Path, days: float) -> Path:
    os.utime(path, 2 * (time.time() - days * DAY,))
    return path


def old_folder(place: Path, name: str, days: float) -> Path:
    folder = place / name
    folder.mkdir()
    (folder / "kernel.nbc").touch()
    return aged(folder, days)


def test_folders_that_are_long_unused_are_removed_and_nobody_elses(place: Path) -> None:
    old, recent = "proxmargin-" + 16 * "0", "proxmargin-" + 16 * "1"
    others = ("proxmargin-notes", "package_" + 16 * "0", "proxmargin-" + 17 * "0")
    for name in (old, *others):
        old_folder(place, name, days=31)
    old_folder(place, recent, days=29)
    was_found()
    left = {path.name for path in place.iterdir()}
    assert left == {recent, *others, folders.NAME}


def test_of_many_unused_folders_the_latest_are_left(place: Path) -> None:
    today = [old_folder(place, f"proxmargin-{k:016x}", days=0.5) for k in range(3)]
    unused = [old_folder(place, f"proxmargin-{k:016x}", days=k) for k in range(3, 20)]
    was_found()
    left = {path for path in place.iterdir() if path.name != folders.NAME}
    assert left == {*today, *unused[: folders.MOST - 3]}


def test_use_keeps_a_folder(place: Path) -> None:
    was_found()
    folder = aged(place / folders.NAME, days=31)
    was_found()
    assert time.time() - folder.stat().st_mtime < DAY


def test_what_interrupted_processes_have_left_is_removed(place: Path) -> None:
    was_found()
    left, at_work = (place / folders.NAME / f"kernel.nbc.{k}.tmp" for k in range(2))
    left.touch()
    at_work.touch()
    aged(left, days=2)
    begin_anew()
    folders.home()
    assert at_work.exists()
    assert not left.exists()


def test_an_interruption_leaves_no_draft(place: Path, monkeypatch) -> None:
    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(kept_kernels.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        kept_kernels._write(place / "folder" / "kernel.nbc", b"content")
    assert list((place / "folder").iterdir()) == []


def test_the_files_of_a_kernel_can_be_forgotten(place: Path) -> None:
    was_found()
    fresh()._cache.flush()
    assert not was_found()
