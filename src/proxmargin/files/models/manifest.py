"""The JSON document of a model file: its required fields, checksums and signature.

It holds the SHA-256 of every other member, so that a signature of the document is one of the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NoReturn, TypeAlias

import proxmargin
from proxmargin.files.errors import ModelFileError
from proxmargin.files.models.archive import Archive
from proxmargin.runtime.memory import shortage

__all__ = [
    "MANIFEST",
    "SIGNATURE",
    "VERSION",
    "Sign",
    "Verify",
    "document_of",
    "read_manifest",
    "read_member",
    "signature_of",
]

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


def signature_of(document: bytes, sign: Sign) -> bytes:
    """The signature of the document by `sign`."""
    signature = sign(document)
    if not isinstance(signature, bytes):
        raise ModelFileError(f"sign must return bytes, got {type(signature).__name__}.")
    return signature


def read_manifest(archive: Archive, verify: Verify | None) -> dict[str, Any]:
    """The document of an archive whose signature is verified and whose members it lists.

    Raises
    ------
    ModelFileError
        With the reason only; the caller knows the file.
    """
    document = archive.read(MANIFEST)
    if verify is not None:
        _verify(archive, document, verify)
    manifest = _parsed(document)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"its {MANIFEST} does not describe a proxmargin model")
    _refuse_other_version(manifest)
    if set(manifest) - _OPTIONAL != _KEYS or type(manifest["proxmargin"]) is not str:
        raise ModelFileError(f"its {MANIFEST} lacks entries or has unknown ones")
    _check_members(archive, manifest["members"])
    return manifest


def read_member(archive: Archive, name: str, digests: Mapping[str, str]) -> bytes:
    """The content of a member whose checksum is verified."""
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


def _parsed(document: bytes) -> Any:
    short = shortage(_OBJECT_BYTES * len(document))
    if short:
        raise ModelFileError(f"its {MANIFEST} of {len(document)} bytes may need {short}")
    try:
        return json.loads(
            document,
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=_distinct,
        )
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its {MANIFEST} cannot be read ({error})") from error


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


def _no_constant(word: str) -> NoReturn:
    raise ModelFileError(f"its {MANIFEST} holds {word}, which is not JSON")


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ModelFileError(f"its {MANIFEST} holds the number {word:.40}, which is too large")
    return number


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ModelFileError(f"its {MANIFEST} names an entry twice")
    return dict(pairs)
