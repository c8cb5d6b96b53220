"""The zip archive of a model file, its JSON document, checksums and signature.

Members are stored and not compressed, so nothing in an archive can be larger than its file, and it
is written atomically. The document ``model.json`` holds the SHA-256 of every other member, so that
a signature of the document is one of the file.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import proxmargin
from proxmargin.files.errors import ModelFileError, UnwritableModelError
from proxmargin.runtime.brief import brief
from proxmargin.runtime.files import replaced
from proxmargin.runtime.memory import shortage

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
    """The members of an opened archive, read one at a time. Raises ModelFileError: the members are
    compressed, encrypted, repeated, or larger than the file."""

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
    try:
        with open(path, "rb") as stream:
            start = stream.read(len(_MAGIC))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ModelFileError(f"{path}: cannot be read: {reason}.") from error
    if start != _MAGIC:
        raise ModelFileError(f"{path}: not a model file written by proxmargin's save_model.")
    try:
        with zipfile.ZipFile(path) as archive:
            yield Archive(archive, path)
    except ModelFileError:
        raise
    except Exception as error:  # damage surfaces as anything, down to struct.error
        text = brief(error, 400).rstrip(".") or type(error).__name__
        raise ModelFileError(f"{path}: damaged or cut short: {text}.") from error


FORMAT = "proxmargin model"
VERSION = 2
MANIFEST = "model.json"
SIGNATURE = "model.sig"
_KEYS = frozenset(
    {"format", "version", "proxmargin", "estimator", "settings", "fitted", "certificate", "members"}
)
# of models with an imputer only
_OPTIONAL = frozenset({"imputed"})
# bytes of Python objects that a byte of JSON may become: empty lists, and copies of them
_OBJECT_BYTES = 64

Sign: TypeAlias = Callable[[bytes], bytes]
Verify: TypeAlias = Callable[[bytes, bytes], bool]


def document_of(content: Mapping[str, Any], members: Mapping[str, bytes]) -> bytes:
    """The JSON document of a model, with the checksums of the other members."""
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "proxmargin": proxmargin.__version__,
        **content,
        "members": {name: sha256(data).hexdigest() for name, data in members.items()},
    }
    return json.dumps(manifest, indent=1, allow_nan=False).encode("ascii")


def read_manifest(archive: Archive, verify: Verify | None) -> dict[str, Any]:
    """The document of an archive whose signature is verified and whose members it lists. Raises
    ModelFileError: with the reason only; the caller knows the file."""
    document = archive.read(MANIFEST)
    if verify is not None:
        _verify(archive, document, verify)
    short = shortage(_OBJECT_BYTES * len(document))
    if short:
        raise ModelFileError(f"its {MANIFEST} of {len(document)} bytes may need {short}")
    try:
        manifest = json.loads(
            document, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_distinct
        )
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its {MANIFEST} cannot be read ({error})") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"its {MANIFEST} does not describe a proxmargin model")
    _refuse_other_version(manifest)
    if set(manifest) - _OPTIONAL != _KEYS or type(manifest["proxmargin"]) is not str:
        raise ModelFileError(f"its {MANIFEST} lacks entries or has unknown ones")
    _check_members(archive, manifest["members"])
    return manifest


def read_member(archive: Archive, name: str, digests: Mapping[str, str]) -> bytes:
    if name not in digests:
        raise ModelFileError(f"it lacks the member {name!r}")
    content = archive.read(name)
    if sha256(content).hexdigest() != digests[name]:
        raise ModelFileError(f"its member {name!r} is damaged: its SHA-256 is not the one noted")
    return content


def _verify(archive: Archive, document: bytes, verify: Verify) -> None:
    if SIGNATURE not in archive.names():
        raise ModelFileError("it is not signed, and a signature is asked for (verify=)")
    signature = archive.read(SIGNATURE)
    try:
        accepted = verify(document, signature)
    except Exception as error:  # libraries for signatures refuse with errors of their own
        raise ModelFileError(f"its signature is refused ({error!r:.200})") from error
    if accepted is not True:
        raise ModelFileError(f"its signature is refused (verify returned {accepted!r:.80})")


def _refuse_other_version(manifest: Mapping[str, Any]) -> None:
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"it states no format version ({version!r:.80})")
    written = f"it has format version {version}, written by proxmargin "
    written += f"{manifest.get('proxmargin')!s:.40}; this proxmargin {proxmargin.__version__} reads"
    if version > VERSION:
        raise ModelFileError(f"{written} up to version {VERSION}: upgrade to read it")
    if version < VERSION:
        raise ModelFileError(
            f"{written} version {VERSION}, which has checksums: fit the model again and save it"
        )


def _check_members(archive: Archive, digests: Any) -> None:
    if not isinstance(digests, dict) or not all(type(each) is str for each in digests.values()):
        raise ModelFileError(f"its {MANIFEST} does not list the members")
    if MANIFEST in digests or SIGNATURE in digests:
        raise ModelFileError(f"its {MANIFEST} lists members that cannot be listed")
    missing = sorted(set(digests) - archive.names())
    if missing:
        raise ModelFileError(f"it lacks the member {missing[0]!r}")
    unknown = sorted(archive.names() - set(digests) - {MANIFEST, SIGNATURE})
    if unknown:
        raise ModelFileError(f"it holds members that do not belong to a model: {unknown[0]!r:.80}")


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ModelFileError(f"its {MANIFEST} holds the number {word:.40}, which is not finite")
    return number


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ModelFileError(f"its {MANIFEST} names an entry twice")
    return dict(pairs)
