"""Small tables of one trait each, as programs write them: read as stated, or refused by a message
with the option that reads them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest

from proxmargin import read_data
from proxmargin.files.errors import DataError
from proxmargin.files.tables.contents import Dialect

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

N = 16
X = np.round(np.random.default_rng(7).normal(size=(N, 3)) + 0.001, 2) + 0.004
NAMES = ["a", "b", "c"]
TARGETS = {
    "words": ["case" if x > 0 else "control" for x in X[:, 0]],
    "numbers": [str(int(x > 0)) for x in X[:, 0]],
    "codes": ["01" if x > 0 else "02" for x in X[:, 0]],
}
TARGETS["rare"] = ["rare", *TARGETS["words"][1:]]


@dataclass(frozen=True)
class Trait:
    """A file, and the options without which it is refused."""

    name: str
    content: Callable[[list[str]], str | bytes]
    suffix: str = "csv"
    typed: dict[str, Any] | None = None  # what the message advises
    names: list[str] | None = None
    values: Any = None  # features, if others than X
    given: dict[str, Any] | None = None  # roles, which no file tells
    targets: tuple[str, ...] = ("words", "numbers", "codes")


def cells(y: list[str], number: Callable[[float], str] = "{:.3f}".format) -> list[list[str]]:
    return [[*map(number, x), label] for x, label in zip(X.tolist(), y, strict=True)]


def lines(
    y: list[str], mark: str = ",", header: list[str] | None = None, end: str = "\n", **how: Any
) -> str:
    top = [[*NAMES, "grp"] if header is None else header]
    rows = cells(y, **how)
    return "".join(mark.join(row) + end for row in [*(top if top[0] else []), *rows])


def with_cell(mark: str) -> Callable[[list[str]], str]:
    """The third cell of the second column is this word."""

    def content(y: list[str]) -> str:
        rows = cells(y)
        rows[2][1] = mark
        return "a,b,c,grp\n" + "".join(",".join(row) + "\n" for row in rows)

    return content


ABSENT = X.copy()
ABSENT[2, 1] = np.nan


def packed(pack: Callable[[bytes], bytes]) -> Callable[[list[str]], bytes]:
    return lambda y: pack(lines(y).encode())


def zipped(content: bytes, name: str = "d.csv") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("folder/", "")
        archive.writestr(name, content)
    return stream.getvalue()


def named_rows(y: list[str], mark: str, name: Callable[[int], str]) -> str:
    body = lines(y, mark, header=[]).splitlines()
    return "".join(f"{name(i)}{mark}{row}\n" for i, row in enumerate(body))


def comma(value: float) -> str:
    return f"{value:.3f}".replace(".", ",")


def workbook(y: list[str], *, title: bool = False, more: int = 0) -> bytes:
    book = pytest.importorskip("openpyxl").Workbook()
    sheet = book.active
    sheet.title = "samples"
    if title:
        sheet.append(["Table 1"])
        sheet.append([])
    sheet.append([*NAMES, "grp"])
    for x, label in zip(X.tolist(), y, strict=True):
        sheet.append([*x, label])
    for k in range(more):
        book.create_sheet(f"more {k}").append(["u", "v"])
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def arff(y: list[str]) -> str:
    top = "".join(f"@attribute {name} real\n" for name in NAMES)
    levels = ",".join(sorted(set(y)))
    rows = lines(y, header=[])
    return f"% a title\n@relation t\n{top}@attribute grp {{{levels}}}\n@data\n{rows}"


def genes(y: list[str], first: str = "gene", mark: str = "\t") -> str:
    rows = [[first, *(f"S{i}" for i in range(N))]]
    rows += [[name, *map("{:.3f}".format, x)] for name, x in zip(NAMES, X.T.tolist(), strict=True)]
    return "\n".join(mark.join(row) for row in [*rows, ["grp", *y]]) + "\n"


def text_arff(y: list[str]) -> str:
    """With a string that names the samples."""
    top, body = arff(y).split("@data\n")
    names = (f"'patient {i}, ward {i % 3}',{row}\n" for i, row in enumerate(body.splitlines()))
    return (
        top.replace("@attribute a", "@attribute name string\n@attribute a")
        + "@data\n"
        + "".join(names)
    )


def series_matrix(y: list[str]) -> str:
    quoted = "\t".join(f'"grp: {label}"' for label in y)
    table = genes(y, '"ID_REF"').rsplit("grp", 1)[0]
    return (
        f'!Series_title\t"T"\n\n!Sample_title\t{quoted}\n!Sample_characteristics_ch1\t{quoted}\n'
        f"!series_matrix_table_begin\n{table}!series_matrix_table_end\n"
    )


def gct(y: list[str]) -> str:
    top, *rows = genes(y, "Name").splitlines()
    wide = [top.replace("Name", "Name\tDescription"), *(r.replace("\t", "\tna\t", 1) for r in rows)]
    return "#1.2\n4\t16\n" + "\n".join(wide) + "\n"


def thousands(value: float) -> str:
    return f'"{1e6 * value:,.1f}"'


PLAIN = "{:.3f}".format


def signed(mark: str, number: Callable[[float], str] = PLAIN) -> Callable[[list[str]], str]:
    """Numbers with a sign before or behind them."""
    return lambda y: lines(y, number=lambda v: mark.replace("0", number(v)))


BIG = np.round(1e6 * X, 1)
FAR = ["1990", "1991", "1992"]
WAVES = [f"{400 + 2.5 * j}" for j in range(3)]


def spoiled(y: list[str], at: int, change: Callable[[str], str]) -> str:
    body = lines(y).splitlines()
    body[at] = change(body[at])
    return "\n".join(body) + "\n"


SHORT = X.copy()
SHORT[4, 2] = np.nan

TRAITS = [
    Trait("plain", lines),
    Trait("tabs", lambda y: lines(y, "\t"), "tsv"),
    Trait("tabs in a file called csv", lambda y: lines(y, "\t")),
    Trait("tabs in a file called txt", lambda y: lines(y, "\t"), "txt"),
    Trait("commas in a file called data", lines, "data"),
    Trait("commas in a file without a suffix", lines, ""),
    Trait("semicolons", lambda y: lines(y, ";")),
    Trait("bars", lambda y: lines(y, "|"), "txt"),
    Trait("blanks", lambda y: lines(y, "  "), "txt"),
    Trait("blanks that align", lambda y: lines(y, " ", number="{:8.3f}".format), "dat"),
    Trait("quotes", lambda y: re.sub(r"[^,\n]+", r'"\g<0>"', lines(y))),
    Trait("quotes and tabs", lambda y: re.sub(r"[^\t\n]+", r'"\g<0>"', lines(y, "\t")), "txt"),
    Trait("UTF-8 with a mark", lambda y: lines(y).encode("utf-8-sig")),
    Trait("UTF-16", lambda y: lines(y).encode("utf-16")),
    Trait("UTF-16, big ends", lambda y: b"\xfe\xff" + lines(y).encode("utf-16-be"), "txt"),
    Trait("UTF-32", lambda y: lines(y).encode("utf-32")),
    Trait("line ends of Windows", lambda y: lines(y, end="\r\n")),
    Trait("line ends of old", lambda y: lines(y, end="\r")),
    Trait("blank lines at the end", lambda y: lines(y) + "\n\n\n"),
    Trait("blank lines everywhere", lambda y: lines(y, end="\n\n")),
    Trait("no end of the last line", lambda y: lines(y).rstrip("\n")),
    Trait("a first row of empty cells", lambda y: ",,,\n" + lines(y)),
    Trait("first rows of quoted empty cells", lambda y: 2 * '"","","",""\n' + lines(y)),
    Trait("a first row of tabs", lambda y: "\t\t\t\n" + lines(y, "\t"), "tsv"),
    Trait("last rows of empty cells", lambda y: lines(y) + 3 * ",,,\n"),
    Trait("separators at all ends", lambda y: lines(y, end=",\n")),
    Trait("separators at the ends of rows", lambda y: lines(y, end=",\n").replace("grp,", "grp")),
    Trait("a separator at the end of the header", lambda y: lines(y).replace("grp", "grp,")),
    Trait("columns of nothing", lambda y: lines(y, end=",,,\n")),
    Trait("row names of R", lambda y: "a\tb\tc\tgrp\n" + named_rows(y, "\t", "s{}".format), "tsv"),
    Trait("quoted row names", lambda y: "a b c grp\n" + named_rows(y, " ", '"{}"'.format), "txt"),
    Trait("counts as row names", lambda y: "a,b,c,grp\n" + named_rows(y, ",", str)),
    Trait("an index without a name", lambda y: ",a,b,c,grp\n" + named_rows(y, ",", str)),
    Trait("a quoted index", lambda y: '"",a,b,c,grp\n' + named_rows(y, ",", '"{}"'.format)),
    Trait("comments", lambda y: "# one\n# two, of it\n" + lines(y)),
    Trait("comments of MATLAB", lambda y: "% one\n\n" + lines(y, "\t"), "txt"),
    Trait("comments of GEO", lambda y: "!one\n!two\n" + lines(y, "\t"), "txt"),
    Trait("a header that begins as comments do", lambda y: "# a table\n#" + lines(y)),
    Trait("a title", lambda y: "Table 1\n\n" + lines(y)),
    Trait("a title in its cells", lambda y: "Table 1,,,\n,,,\n" + lines(y)),
    Trait("the header twice", lambda y: lines(y)[:-1].replace("\n", "\na,b,c,grp\n", 1) + "\n"),
    Trait("years", lambda y: lines(y, header=[*FAR, "grp"]), names=FAR),
    Trait("wavelengths", lambda y: lines(y, header=[*WAVES, "grp"]), names=WAVES),
    Trait("gzip", packed(gzip.compress), "csv.gz"),
    Trait("bzip2", packed(bz2.compress), "csv.bz2"),
    Trait("xz", packed(lzma.compress), "csv.xz"),
    Trait("Zstandard", packed(lambda b: pa.compress(b, "zstd", asbytes=True)), "csv.zst"),
    Trait("ZIP", packed(zipped), "zip"),
    Trait("gzip under another name", packed(gzip.compress), "csv"),
    *(Trait(f"missing: {m}", with_cell(m), values=ABSENT) for m in ("", "NA", "?", ".", "n/a")),
    *(Trait(f"missing: {m}", with_cell(m), values=ABSENT) for m in ("#N/A", "None", "-")),
    *(Trait(f"missing: {m}", with_cell(m), values=ABSENT) for m in ("#DIV/0!", "\\N", "nil")),
    Trait("the minus of typesetters", lambda y: lines(y).replace("-", "\u2212")),
    Trait("names of groups above most columns", lambda y: "Blood,,Urine,Outcome\n" + lines(y)),
    Trait("a number below a limit", with_cell("<0.1"), typed={"missing": "<0.1"}, values=ABSENT),
    Trait("thousands apart by narrow blanks",
          lambda y: lines(y, ";", number=lambda v: thousands(v).replace(",", "\u202f")),
          typed={"thousands": " "}, values=BIG),
    Trait("thousands apart by apostrophes",
          lambda y: lines(y, number=lambda v: thousands(v).replace(",", "'")),
          typed={"thousands": "'"}, values=BIG),
    Trait("an Excel sheet", workbook, "xlsx"),
    Trait("an Excel sheet with a title", lambda y: workbook(y, title=True), "xlsx"),
    Trait("several sheets", lambda y: workbook(y, more=1), "xlsx", {"sheet": "samples"}),
    Trait("ARFF", arff, "arff"),
    Trait("ARFF with strings", text_arff, "arff"),
    Trait("percent", signed("0%")),
    Trait("percent, apart", signed("0 %")),
    Trait("euros behind", signed("0 €")),
    Trait("dollars before", signed("$0")),
    Trait("dollars and thousands", signed('"$0"', lambda v: f"{1e6 * v:,.1f}"),
          typed={"thousands": ","}, values=BIG),
    Trait("brackets around negative numbers",
          lambda y: lines(y, number=lambda v: f"{v:.3f}" if v > 0 else f"({-v:.3f})")),
    Trait("brackets around negative sums",
          lambda y: lines(y, number=lambda v: f"€{v:.3f}" if v > 0 else f"(€{-v:.3f})")),
    Trait("units below the names", lambda y: spoiled(y, 0, "{0}\nmg,mmol/l,years,".format)),
    Trait("units in brackets", lambda y: spoiled(y, 0, "{0}\n[mg],[mmol/l],,[-]".format)),
    Trait("names of groups of columns", lambda y: "Blood,,,Outcome\n" + lines(y)),
    Trait("notes below", lambda y: lines(y) + ",,,\nSource: ward 3\n* by hand,,,\n"),
    Trait("a column of one word", lambda y: lines(y, header=["a", "b", "c", "species", "grp"])
          .replace(",case", ",human,case").replace(",control", ",human,control")
          .replace(",0\n", ",human,0\n").replace(",1\n", ",human,1\n")
          .replace(",01\n", ",human,01\n").replace(",02\n", ",human,02\n")),
    Trait("ARFF in a text file", arff, "txt"),
    Trait("a series matrix", series_matrix, "txt.gz"),
    Trait("GCT", gct, "gct"),
    Trait("another word for missing", with_cell("unknown"), typed={"missing": "unknown"},
          values=ABSENT),
    Trait("decimal commas", lambda y: lines(y, ";", number=comma), typed={"decimal": ","}),
    Trait("quoted decimal commas", lambda y: lines(y, number=lambda v: f'"{comma(v)}"'),
          typed={"decimal": ","}),
    Trait("decimal commas and tabs", lambda y: lines(y, "\t", number=comma), "txt",
          {"decimal": ","}),
    Trait("thousands", lambda y: lines(y, number=thousands), typed={"thousands": ","}, values=BIG),
    Trait("thousands and decimal commas",
          lambda y: lines(y, number=lambda v: thousands(v).translate({44: 46, 46: 44})),
          typed={"decimal": ",", "thousands": "."}, values=BIG),
    Trait("thousands apart",
          lambda y: lines(y, "\t", number=lambda v: thousands(v).replace(",", " ")),
          "tsv", {"thousands": " "}, values=BIG),
    Trait("a short row", lambda y: spoiled(y, 5, lambda r: r.rsplit(",", 2)[0]), typed={
          "short_rows": "missing"}, values=SHORT, given={"unlabelled": "drop"}),
    Trait("comments among rows", lambda y: spoiled(y, 5, "{0}\n# a note\n".format),
          typed={"comment": "#"}),
    Trait("no header", lambda y: lines(y, header=[]), "csv", {"header": False}, ["0", "1", "2"],
          targets=(*TARGETS,)),
    Trait("no header, tabs", lambda y: lines(y, "\t", header=[]), "txt", {"header": False},
          ["0", "1", "2"], targets=(*TARGETS,)),
    Trait("no header but names of samples",
          lambda y: named_rows(y, ",", "P_{}".format), typed={"header": False},
          names=["1", "2", "3"], targets=(*TARGETS,)),
    Trait("numbers as names that are like the data",
          lambda y: lines(y, header=["0.12", "0.4", "0.3", "grp"]),
          typed={"header": True}, names=["0.12", "0.4", "0.3"]),
    Trait("numbers alone as names",
          lambda y: lines(y, header=["1", "2", "3", "4"], number="{:.0f}".format),
          typed={"header": True}, names=["1", "2", "3"], values=np.round(X), targets=("numbers",)),
    Trait("Latin-1", lambda y: lines(y).replace("a", "ä", 1).encode("latin-1"),
          typed={"encoding": "latin-1"}, names=["ä", "b", "c"]),
    Trait("features in rows", genes, "tsv", {"transpose": True}),
    Trait("features in rows, commas", lambda y: genes(y, mark=","), "csv", {"transpose": True}),
]  # fmt: skip
CASES = [(trait, target) for trait in TRAITS for target in trait.targets]
DIALECT = {field.name for field in fields(Dialect)}


def written(tmp_path: Any, trait: Trait, target: str) -> Any:
    content = trait.content(TARGETS[target])
    path = tmp_path / (f"d.{trait.suffix}" if trait.suffix else "d")
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Any, trait: Trait, typed: dict[str, Any]) -> Any:
    target = -1 if typed.get("header") is False or trait.name.startswith("numbers alone") else "grp"
    return read_data(
        path, target=target, blanks=True, dialect=Dialect(**typed), **(trait.given or {})
    )


def listed(typed: dict[str, Any]) -> dict[str, Any]:
    return {name: (value,) if name == "missing" else value for name, value in typed.items()}


def test_the_corpus_has_enough_traits():
    assert len(TRAITS) >= 60
    assert len({trait.name for trait in TRAITS}) == len(TRAITS)


@pytest.mark.parametrize(("trait", "target"), CASES, ids=[f"{t.name}-{y}" for t, y in CASES])
def test_tables_are_read_or_refused_with_what_reads_them(tmp_path, trait, target):
    path = written(tmp_path, trait, target)
    if trait.typed:
        with pytest.raises(DataError) as refused:
            read(path, trait, {})
        for name, value in trait.typed.items():
            advised = (f"{name}={value!r}", f"{name}=)", f"{name}=[")
            assert any(words in str(refused.value) for words in advised), str(refused.value)
    table = read(path, trait, listed(trait.typed or {}))
    values = X if trait.values is None else trait.values
    labels = TARGETS[target]
    if trait.name == "a short row":
        kept = np.arange(N) != 4
        values, labels = X[kept], np.array(labels)[kept].tolist()
    assert table.feature_names == (trait.names or NAMES)
    np.testing.assert_allclose(table.X, values, rtol=1e-12)
    assert list(map(str, table.y.tolist())) == labels
