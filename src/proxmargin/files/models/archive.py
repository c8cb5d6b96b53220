"""Zip archives of a few uncompressed members, written atomically, and validated when read.

Members are stored and not compressed, so nothing in an archive can be larger than its file.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from proxmargin.files.errors import ModelFileError, UnwritableModelError
from proxmargin.runtime.atomic import replaced
from proxmargin.runtime.brief import brief

_MAGIC = b"PK\x03\x04"
# The earliest date that zip can express: equal models give equal bytes.
_NO_DATE = (1980, 1, 1, 0, 0, 0)
_ENCRYPTED = 0x1


def write_archive(path: Path, members: Mapping[str, bytes]) -> None:
    """Write the members so that `path` holds the whole new archive or what it held before."""
    if path.is_dir():
        raise ModelFileError(f"{path}: this is a folder; name a file for the model.")
    try:
        with replaced(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(name, _NO_DATE), content)
    except OSError as error:
        raise UnwritableModelError(
            f"{path}: cannot be written: {error.strerror or error}."
        ) from error


class Archive:
    """The members of an opened archive, read one at a time.

    Raises
    ------
    ModelFileError
        The members are compressed, encrypted, repeated, or larger than the file.
    """

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive = archive
        self._path = path
        self._members = {info.filename: info for info in archive.infolist()}
        if len(self._members) != len(archive.infolist()):
            raise ModelFileError(f"{path}: damaged: a member appears twice.")

    def names(self) -> set[str]:
        return set(self._members)

    def read(self, name: str) -> bytes:
        """The content of a member, with its checksum verified."""
        if name not in self._members:
            raise ModelFileError(f"{self._path}: not a model file: it has no {name!r}.")
        info = self._members[name]
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & _ENCRYPTED:
            raise ModelFileError(f"{self._path}: {name!r} is compressed or encrypted; no model is.")
        if info.file_size != info.compress_size or info.file_size > os.path.getsize(self._path):
            raise ModelFileError(f"{self._path}: damaged: {name!r} declares a size it cannot have.")
        return self._archive.read(info)


def holds(path: str | os.PathLike[str], name: str) -> bool:
    """Whether there is a readable archive at `path` with a member of that name."""
    try:
        with zipfile.ZipFile(path) as archive:
            return name in archive.namelist()
    except Exception:  # whatever it is, a reader of another kind will say what is wrong
        return False


@contextmanager
def opened_archive(path: Path) -> Iterator[Archive]:
    """The archive at `path`; whatever is wrong with it becomes a `ModelFileError`."""
    _refuse_foreign(path)
    try:
        with zipfile.ZipFile(path) as archive:
            yield Archive(archive, path)
    except ModelFileError:
        raise
    except Exception as error:  # damage surfaces as anything, down to struct.error
        reason = brief(error, 400).rstrip(".") or type(error).__name__
        raise ModelFileError(f"{path}: damaged or cut short: {reason}.") from error


def _refuse_foreign(path: Path) -> None:
    try:
        with open(path, "rb") as stream:
            start = stream.read(len(_MAGIC))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ModelFileError(f"{path}: cannot be read: {reason}.") from error
    if start != _MAGIC:
        raise ModelFileError(f"{path}: not a model file written by proxmargin's save_model.")
