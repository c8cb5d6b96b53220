"""``proxmargin warm-up``: compile the kernels of models before they are needed.

For whoever builds an image: the first fits of its users then take milliseconds. Kernels are
compiled by what calls them: fits of small data, of each layout that has kernels of its own.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from pathlib import Path
from time import process_time
from typing import Any

from proxmargin.cli import failures, options, output
from proxmargin.models.fitting.registry import MODELS, model_names
from proxmargin.runtime.progress import ProgressBar
from proxmargin.studies.comparing.layout import Listing

SEED = 0
SHAPES = {"tall": (300, 20), "wide": (40, 300)}  # samples, features
DENSITY = 0.2
TOLERANCE = 1e-3
STRENGTHS = 5  # of a path
THIRDS = (-0.6, 0.6)  # of scores of variance two


def register(commands: options.Commands) -> None:
    parser = options.subcommand(
        commands,
        "warm-up",
        run,
        "compile the kernels of default fits, once for all later processes",
    )
    parser.add_argument(
        "--models",
        nargs="+",
        metavar="NAME",
        help=f"some of {', '.join(model_names())} (default: all but MarginClassifier)",
    )
    options.add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    names, home = _checked(arguments.models), _home()
    done = {}
    with ProgressBar("models warmed up", len(names), shown=not arguments.quiet) as progress:
        for name in names:
            done[name] = dict(_seconds(name))
            progress.advance(latest=name)
    if arguments.json:
        output.print_json({"folder": str(home), "seconds": done})
    else:
        rows = [(name, str(len(s)), f"{sum(s.values()):.1f}") for name, s in done.items()]
        output.print_listing(Listing(("model", "first fits", "CPU seconds"), rows))
        print(f"\nKernels are kept in {home}")
    return failures.OK


def _checked(names: list[str] | None) -> list[str]:
    """The models that are asked for; all that need no loss or penalty to be named."""
    unknown = set(names or ()) - set(model_names())
    if unknown:
        raise ValueError(
            f"there is no model {min(unknown)!r}; models are {', '.join(model_names())}"
        )
    return list(names or (name for name in model_names() if MODELS[name].compared))


def _home() -> Path:
    """Where kernels are kept."""
    from proxmargin.compiled import folders

    home = folders.home()
    if home is None:
        tried = " or ".join(map(str, folders.places())) or "a home of the user"
        raise OSError(
            f"kernels cannot be kept in {tried}: set NUMBA_CACHE_DIR to a folder that this user "
            "can write"
        )
    return home


def _seconds(name: str) -> Iterator[tuple[str, float]]:
    """What is fitted, and the CPU seconds of its first fit."""
    for what, fit in _fits(name):
        before = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a loose tolerance, data of noise
            fit()
        yield what, process_time() - before


def _fits(name: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is fitted, in words, and how: single fits, paths, kernel machines."""
    import proxmargin

    kind: Any = getattr(proxmargin, name)
    model = kind(tol=TOLERANCE)
    varies = {"alpha", "C"} & set(MODELS[name].parameters)
    for layout, X, y in _data():
        yield layout, partial(model.fit, X, y)
        if varies:
            path = partial(proxmargin.margin_path, n_alphas=STRENGTHS)
            yield f"path, {layout}", partial(path, model, X, y)
        if MODELS[name].kernels:
            yield f"rbf, {layout}", partial(kind(kernel="rbf", tol=TOLERANCE).fit, X, y)
        if "standardize" in signature(kind).parameters:
            standardized = kind(standardize=True, tol=TOLERANCE)
            yield f"standardized, {layout}", partial(standardized.fit, X, y)


def _data() -> Iterator[tuple[str, Any, Any]]:
    """Layout, samples and labels, of classes that overlap: two, and three."""
    import numpy as np
    from scipy.sparse import csc_array, csr_array

    rng = np.random.default_rng(SEED)
    for shape, (n, p) in SHAPES.items():
        X = rng.standard_normal((n, p))
        scores = X[:, 0] + rng.standard_normal(n)
        sparse = np.where(rng.random((n, p)) < DENSITY, X, 0.0)
        for precision in (np.float64, np.float32):
            for form in (np.asarray, csr_array, csc_array):
                layout = f"{shape}, {form.__name__}, {precision.__name__}"
                design = X if form is np.asarray else sparse
                yield layout, form(design.astype(precision)), scores > 0
        yield f"{shape}, three classes", X, np.digitize(scores, THIRDS)
