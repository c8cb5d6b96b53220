"""Damage: to the bytes of a file, and to what a well-formed file says."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from hashlib import sha256

import numpy as np

# -- bytes ----------------------------------------------------------------------------------------


def _flip(rng, content):
    for at in rng.integers(0, len(content), size=rng.integers(1, 4)):
        content[at] ^= 1 << rng.integers(0, 8)


def _overwrite(rng, content):
    at = rng.integers(0, len(content))
    new = rng.bytes(rng.integers(1, 17)) if rng.random() < 0.7 else bytes(rng.integers(1, 65))
    content[at : at + len(new)] = new


def _cut(rng, content):
    del content[rng.integers(0, len(content)) :]


def _remove(rng, content):
    at = rng.integers(0, len(content))
    del content[at : at + rng.integers(1, 65)]


def _insert(rng, content):
    at = rng.integers(0, len(content) + 1)
    content[at:at] = rng.bytes(rng.integers(1, 17))


def _repeat(rng, content):
    first, last = sorted(rng.integers(0, len(content) + 1, size=2))
    at = rng.integers(0, len(content) + 1)
    content[at:at] = content[first:last]


_DAMAGES = (_flip, _flip, _flip, _overwrite, _cut, _remove, _insert, _repeat)


def damaged(rng, content: bytes) -> bytes:
    """The content with one or two accidents."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 3)):
        if changed:
            _pick(rng, _DAMAGES)(rng, changed)
    return bytes(changed)


# -- text -----------------------------------------------------------------------------------------

_CELLS = ("2.5", "-3", " 4", "1e-3", "+7", "12.", ".5", "0", "", " ",
          "nan", "NA", "?", "inf", "-inf", "1e400", "-0.0", "1_0", "0x10", "1,5", "\0", '"',
          "1e", "+-1", "True", "é", "9" * 40, "2147483647", "-1", "1.5.2", "0" * 3000, "\ufeff",
          "2147483647:1", "0:1", "-3:1", "1:", ":1", "1:nan", "1:1e999", "qid:3", "#", "1e308",
          "-1.7976931348623157e308", "٣", "\r", "\n", "\n\n", "''")  # fmt: skip


def edited(rng, text: str, separator: str) -> str:
    """The text with cells and lines replaced, doubled, swapped or left out."""
    lines = [line.split(separator) for line in text.split("\n")]
    for _ in range(rng.integers(1, 3)):
        line = lines[rng.integers(0, len(lines))]
        at, what = rng.integers(0, len(line)), rng.integers(0, 8)
        if what < 4:
            line[at] = _pick(rng, _CELLS)
        elif what == 4:
            line.insert(at, _pick(rng, (line[at], *_CELLS)))
        elif what == 5 and len(line) > 1:
            line.pop(at)
        elif what == 6:
            lines.insert(rng.integers(0, len(lines) + 1), list(line))
        else:
            line[at] += _pick(rng, _CELLS)
    return "\n".join(separator.join(line) for line in lines)


# -- arrays ---------------------------------------------------------------------------------------

_NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 7.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 2.0**53)
_TYPES = ("<f8", "<f4", ">f8", "<f2", "<i8", "|u1", "|b1", "<c16", "<U3", "|S3", "|O", "<m8[s]")
_SHAPES = ("(-1,)", "(2, 2147483648)", "(0,)", "()", "(99999999999999999999,)", "(1e3,)", "('a',)",
           "(1,", "[3]", "(3, 0)", "(True,)", "((1,),)", "(4611686018427387904, 4)")  # fmt: skip


def npy(array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def changed_array(rng, array):
    """The array with other entries, another type or another shape."""
    what = rng.integers(0, 5)
    new = array.copy()
    if what == 0 and new.size and new.dtype.kind in "fiu":
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            new.flat[rng.integers(0, new.size)] = np.array(_pick(rng, _NUMBERS)).astype(new.dtype)
        return new
    if what == 1:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return new.astype(_pick(rng, _TYPES))
            except (ValueError, TypeError):
                return new
    if what == 2:
        return new.ravel() if new.ndim > 1 else new[None, :]
    axis = rng.integers(0, max(new.ndim, 1))
    if what == 3 and new.ndim:
        return np.concatenate([new, new], axis=axis)
    return np.delete(new, 0, axis=axis) if new.ndim and new.shape[axis] else new


def changed_npy(rng, content: bytes) -> bytes:
    """The bytes of an array with the array or its header changed."""
    try:
        array = np.load(io.BytesIO(content))
    except Exception:
        return damaged(rng, content) if content else content
    if rng.random() < 0.7:
        return npy(changed_array(rng, array))
    header, rest = content[10:128], content[128:]
    old, new = _pick(
        rng,
        (
            (str(array.shape), _pick(rng, _SHAPES)),
            (array.dtype.str, _pick(rng, (*_TYPES, "<U999999999", "<f16", "i4,i4", "<U0", "V8"))),
            ("False", _pick(rng, ("True", "None", "0", "Fals"))),
            ("{", _pick(rng, ("", "(", "{'x': 1, ", "'''"))),
            ("'shape'", "'descr'"),
        ),
    )
    changed = header.replace(old.encode(), new.encode(), 1).rstrip() + b"\n"
    return content[:8] + len(changed).to_bytes(2, "little") + changed + rest


def changed_members(rng, members: dict[str, bytes]) -> list[tuple[str, bytes]]:
    """Members with one changed, renamed, left out, doubled, swapped or added."""
    names, listed = sorted(members), dict(members)
    one, other = _pick(rng, names), _pick(rng, names)
    what = rng.integers(0, 12)
    if what < 7:
        listed[one] = changed_npy(rng, listed[one])
    elif what == 7:
        listed[_pick(rng, ("x.npy", "../y.npy", one + ".npy", one.upper(), "é"))] = listed.pop(one)
    elif what == 8:
        del listed[one]
    elif what == 9:
        return [*listed.items(), (one, listed[other])]
    elif what == 10:
        listed[one], listed[other] = listed[other], listed[one]
    else:
        listed["more.npy"] = npy(np.zeros(rng.integers(0, 100_000)))
    return list(listed.items())


def zipped(members, compression=zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def unzipped(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# -- the document of a model ----------------------------------------------------------------------

_VALUES = (None, True, False, 0, 1, -1, 2, 3, 0.5, -0.5, 1e308, 5e-324, 10**30, 2**31, "", "l1",
           "l2", "rbf", "linear", "poly", "precomputed", "auto", "balanced", "joint", "ovr",
           "0.3max", "é\ud800", "a" * 5000, [], {}, [[]], [1, 2], ["a", "a"], {"float": "nan"},
           {"float": "inf"}, {"tuple": []}, {"tuple": [1, "a"]}, {"entries": []},
           {"entries": [["a", 1.5]]},
           {"entries": [[[1], 2]]}, {"array": [1, 2], "type": "<i8"},
           {"array": [1.5], "type": "<i8"}, {"array": ["a"] * 5, "type": "<U1024"},
           {"array": [[1]], "type": "<f8"},
           {"array": [1], "type": "|O"}, {"part": "Ridge", "settings": {"l2": 1.0}},
           {"part": "Rbf", "settings": {"gamma": 0.5}}, {"part": "Ball", "settings": {}},
           {"part": "Precomputed", "settings": {}}, {"part": "os", "settings": {}},
           {"array": "coef_.npy"}, {"text": ["a", "b"], "dtype": "O"},
           {"text": ["a"], "dtype": "U"},
           {"sparse": "csr_array", "shape": [2, 2**40]})  # fmt: skip


def _places(tree, path=()):
    yield path
    items = tree.items() if isinstance(tree, dict) else ()
    for key, value in enumerate(tree) if isinstance(tree, list) else items:
        yield from _places(value, (*path, key))


def changed_document(rng, document):
    """The document with one or two of its values replaced, changed, renamed or left out."""
    for _ in range(rng.integers(1, 3)):
        places = [path for path in _places(document) if path and path[0] != "members"]
        *path, last = places[rng.integers(0, len(places))]
        inner = document
        for key in path:
            inner = inner[key]
        what, old = rng.integers(0, 6), inner[last]
        if what == 0:
            del inner[last]
        elif what == 1 and isinstance(inner, dict):
            inner[_pick(rng, ("more", "coef_", "tol", "part", "", last + "_"))] = inner.pop(last)
        elif what == 2 and isinstance(inner, list):
            inner.insert(rng.integers(0, len(inner) + 1), old)
        elif what == 3 and isinstance(old, int | float) and not isinstance(old, bool):
            inner[last] = _pick(rng, (-old, old + 1, old * 0.5, int(old), str(old), [old]))
        else:
            inner[last] = json.loads(json.dumps(_pick(rng, _VALUES)))
    return document


def crafted_model(rng, content: bytes) -> bytes:
    """A model file that says something else, with checksums that agree."""
    members = unzipped(content)
    document = json.loads(members.pop("model.json"))
    whole = rng.random() < 0.3
    arrays = list(members.items()) if whole else changed_members(rng, members)
    if whole or rng.random() < 0.2:
        document = changed_document(rng, document)
    if rng.random() < 0.9:
        digests = {name: sha256(data).hexdigest() for name, data in arrays}
        document["members"] = {name: each for name, each in digests.items() if name != "model.sig"}
    text = json.dumps(document).encode()
    if rng.random() < 0.05:
        text = damaged(rng, text)
    return zipped([("model.json", text), *arrays])


def _pick(rng, items):
    return items[rng.integers(0, len(items))]
