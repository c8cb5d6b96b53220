"""The zip archive of a model file, its JSON document, checksums and signature.

Members are stored and not compressed, so nothing in an archive can be larger than its file, and it
is written atomically. The document ``model.json`` holds the SHA-256 of every other member, so that
a signature of the document is one of the file.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import cache
from hashlib import sha256
from inspect import isabstract
from pathlib import Path
from types import UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

import proxmargin
from proxmargin.data.inputs.aligned import as_dict, by_class, is_labelled
from proxmargin.files.errors import ModelFileError, UnwritableModelError, listed
from proxmargin.models.fitting.registry import model_names
from proxmargin.optimality.certificates.certificate import Certificate, CertificateList
from proxmargin.runtime.brief import brief
from proxmargin.runtime.files import replaced
from proxmargin.runtime.memory import shortage
from proxmargin.runtime.types import Facts, Record, Values
from proxmargin.solvers.choice.names import RETIRED
from proxmargin.solvers.resuming.codec import COMMON, PLAIN, Codec

ESTIMATORS = tuple(sorted(model_names()))


def forgotten(parameters: Facts) -> Record:
    """What stands in a file for parameters that watch a fit, and for arrays of margins: a list."""
    found: Record = {"callbacks": ()} if "callbacks" in parameters else {}
    margins = parameters.get("margins", 1.0)
    if hasattr(margins, "columns"):  # as classes_ are
        margins = np.asarray(by_class("margins", margins, np.unique(margins.index)))
    if np.ndim(margins) and not hasattr(margins, "iloc"):
        found["margins"] = np.asarray(margins).tolist()
    return found


# the packages of kernels, losses and penalties, the table of solvers, which knows them all, and the
# maps from scores to probabilities
_PART_HOMES = (
    "proxmargin.data.kernels",
    "proxmargin.losses",
    "proxmargin.penalties",
    "proxmargin.solvers.choice.names",
    "proxmargin.models.selection.calibrators",
)


@cache
def parts() -> dict[str, type]:
    """Losses, penalties, kernels and solvers: the dataclasses there that are `is_portable`."""
    return {
        name: value
        for home in _PART_HOMES
        for name, value in vars(importlib.import_module(home)).items()
        if isinstance(value, type) and is_dataclass(value) and not isabstract(value)
        if getattr(value, "is_portable", False)
    }


def _part(name: str) -> Any:
    """The class of a part of the library, or of a model that is not fitted; None for others."""
    return getattr(proxmargin, name) if name in ESTIMATORS else parts().get(name)


# types of arrays as they are written, with the length of strings
_ARRAY_TYPE = re.compile(r"[<>|=]?(?:[biuf][1248]|U(\d{1,4}))")
# limit for the bytes of all strings in arrays, each as long as the longest of its array
_MAX_TEXT_BYTES = 2**28


class SettingsCodec(Codec):
    """Parameters, with the parts of the library among them."""

    Error = ModelFileError

    def _encode_number(self, value: np.generic, where: str) -> object:
        plain = value.item()
        # a long double has no Python counterpart, and JSON no complex number
        if isinstance(plain, np.generic) or not isinstance(plain, int | float):
            raise ModelFileError(f"The parameter {where!r} cannot be stored: use a Python number.")
        return self.encode(plain, where)

    def _encode_array(self, value: Values, where: str) -> object:
        if value.ndim != 1 or value.dtype.kind not in PLAIN:
            raise ModelFileError(
                f"The parameter {where!r} cannot be stored: it is an array of {value.dtype} with "
                f"{value.ndim} dimensions; one row of numbers or strings can."
            )
        return {"array": self.encode(value.tolist(), where), "type": value.dtype.str}

    def _encode_object(self, value: Any, where: str) -> object:
        if is_labelled(value):
            return self.encode(as_dict(value), where)
        kind = type(value)
        if _part(kind.__name__) is not kind:  # a derived class would come back changed
            what = "a function" if inspect.isroutine(value) else f"of type {kind.__qualname__}"
            raise ModelFileError(
                f"The parameter {where!r} cannot be stored: it is {what}; numbers, strings, None, "
                "lists, tuples, dicts and the library's own losses, penalties, kernels, solvers "
                "and models can."
            )
        kept = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        kept |= forgotten(kept)
        settings = {name: self.encode(each, f"{where}.{name}") for name, each in kept.items()}
        return {"part": kind.__name__, "settings": settings}

    def _decode_array(self, where: str, plain: Record) -> Values:
        entries = self.decode(self.expect(plain["array"], list, where), where)
        word = self.expect(plain["type"], str, where)
        if not _ARRAY_TYPE.fullmatch(word):
            raise ModelFileError(
                f"{where!r} is no array of numbers or strings, but of {word!r:.80}"
            )
        try:
            found = np.array(entries, dtype=word)
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"{where!r} is no array of {word!r} ({error})") from error
        if found.ndim != 1 or repr(self.encode(found, where)["array"]) != repr(plain["array"]):
            raise ModelFileError(f"{where!r} is no row of entries of the type {word!r}")
        return found

    def _decode_part(self, where: str, plain: Record) -> object:
        name = self.expect(plain["part"], str, where)
        kind: Any = _part(name)
        if (former := re.sub("(?<=.)(?=[A-Z])", "-", name).lower()) in RETIRED:
            return former  # of a solver: predictions need none, and a fit says what to type
        if kind is None:
            raise ModelFileError(f"{where!r} names {name!r}, which is no part of the library")
        fields = {field.name for field in dataclasses.fields(kind) if field.init}
        settings = complete_settings(plain["settings"], fields, name)
        gone = [value for value in settings.values() if isinstance(value, str) and value in RETIRED]
        if gone:
            raise ModelFileError(f"{where!r} has {gone[0]!r}, which is now {RETIRED[gone[0]]}")
        hints = {} if name in ESTIMATORS else _hints(kind)  # models check their own
        unfit = [
            field
            for field, hint in hints.items()
            if field in settings and not _fits(settings[field], hint)
        ]
        if unfit:
            raise ModelFileError(f"{where!r} is no valid {name}: {unfit[0]} is of another type")
        try:
            return kind(**settings)
        except (TypeError, ValueError) as error:
            raise ModelFileError(f"{where!r} is no valid {name} ({error})") from error

    decoders = {
        **COMMON,
        frozenset({"array", "type"}): _decode_array,
        frozenset({"part", "settings"}): _decode_part,
    }


CODEC = SettingsCodec()
_hints = cache(get_type_hints)

_PLAIN_TYPES: dict[Any, tuple[type, ...]] = {
    float: (int, float),
    int: (int,),
    bool: (bool,),
    str: (str,),
    type(None): (type(None),),
}


def _fits(value: object, hint: object) -> bool:
    """Whether a plain value is of the type of a field; nested parts check their own fields."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if not all(kind in _PLAIN_TYPES for kind in kinds):
        return True
    return any(type(value) in _PLAIN_TYPES[kind] for kind in kinds)


def complete_settings(plain: Any, names: Collection[str], what: str) -> Record:
    """Keyword arguments from their JSON form: each of the names, and no other. Raises
    ModelFileError: names are missing or unknown, or a value is nothing that the codec writes."""
    given = set(CODEC.expect(plain, dict, f"settings of {what}"))
    unknown, missing = sorted(given - set(names)), sorted(set(names) - given)
    if unknown:
        raise ModelFileError(f"{what} has no parameters {listed(unknown)} in this version")
    if missing:
        raise ModelFileError(f"the settings of {what} lack {listed(missing)}")
    if _text_bytes(plain) > _MAX_TEXT_BYTES:
        raise ModelFileError(f"the settings of {what} have strings of an excessive size")
    return {name: CODEC.decode(value, name) for name, value in plain.items()}


def _text_bytes(plain: object) -> int:
    """Bytes of the strings in arrays, as their types declare them."""
    if isinstance(plain, list):
        return sum(map(_text_bytes, plain))
    if not isinstance(plain, dict):
        return 0
    entries, word = plain.get("array"), plain.get("type")
    declared = _ARRAY_TYPE.fullmatch(word) if isinstance(word, str) else None
    if declared and declared[1] and isinstance(entries, list):
        return 4 * int(declared[1]) * len(entries)
    return sum(map(_text_bytes, plain.values()))


AnyCertificate: TypeAlias = Certificate | CertificateList


def certificate_to_plain(certificate: AnyCertificate) -> Any:
    """One object for one problem, a list for one problem per class."""
    if isinstance(certificate, CertificateList):
        return [certificate_to_plain(one) for one in certificate]
    names = [field.name for field in dataclasses.fields(Certificate)]
    return {
        name: CODEC.encode(getattr(certificate, name), f"certificate_.{name}") for name in names
    }


def certificate_from_plain(plain: object) -> AnyCertificate:
    """The certificate that was stored. Raises ModelFileError: a field is missing, unknown or of the
    wrong type."""
    if isinstance(plain, list) and plain:
        return CertificateList([_one_certificate(one) for one in plain])
    return _one_certificate(plain)


def _one_certificate(plain: object) -> Certificate:
    kinds = _hints(Certificate)
    if not isinstance(plain, dict) or set(plain) != set(kinds):
        raise ModelFileError("the certificate does not have the fields of a certificate")
    values = {name: CODEC.decode(plain[name], name) for name in kinds}
    for name, kind in kinds.items():
        if kind is float and type(values[name]) is int:
            values[name] = float(values[name])
        if type(values[name]) is not kind:
            raise ModelFileError(f"the certificate's {name} should be a {kind.__name__}")
    return Certificate(**values)


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
# of models with calibrated scores, of estimators within others, and of imputers of version 0.1
OPTIONAL = frozenset({"calibrator", "models", "imputed"})
TABLES = frozenset({"table", "ranges", "roles", "ids"})  # what is known of the training table
# of one estimator
CONTENT = frozenset({"estimator", "settings", "fitted", "certificate"})
_KEYS = CONTENT | {"format", "version", "proxmargin", "members"}
# bytes of Python objects that a byte of JSON may become: empty lists, and copies of them
_OBJECT_BYTES = 64

Sign: TypeAlias = Callable[[bytes], bytes]
Verify: TypeAlias = Callable[[bytes, bytes], bool]


def document_of(content: Mapping[str, object], members: Mapping[str, bytes]) -> bytes:
    """The JSON document of a model, with the checksums of the other members."""
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "proxmargin": proxmargin.__version__,
        **content,
        "members": {name: sha256(data).hexdigest() for name, data in members.items()},
    }
    return json.dumps(manifest, indent=1, allow_nan=False).encode("ascii")


def read_manifest(archive: Archive, verify: Verify | None) -> Record:
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
    unlike = set(manifest) - OPTIONAL - TABLES != _KEYS
    if unlike or type(manifest["proxmargin"]) is not str:
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


def _refuse_other_version(manifest: Mapping[str, object]) -> None:
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


def _check_members(archive: Archive, digests: object) -> None:
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


def _distinct(pairs: list[tuple[str, object]]) -> Record:
    if len(dict(pairs)) != len(pairs):
        raise ModelFileError(f"its {MANIFEST} names an entry twice")
    return dict(pairs)
