"""What competes in a selection: features, or clusters whose correlations are all at least a level.

Clusters are found without a p x p matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from proxmargin.data.designs import Design, moments
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.factors import checked_factors
from proxmargin.runtime.brief import users_level
from proxmargin.runtime.types import Array, Index

BLOCK = 1024  # features whose correlations with all others are computed together
ROUNDING = 1e-9  # of a correlation: a level of 1 joins copies of a feature


def correlated(design: Design, weights: Array, level: float) -> Index:
    """A cluster for each feature, numbered by first features: complete linkage, any two with an
    absolute correlation of ``level``, in (0, 1], or more. A constant feature is alone. ``weights``,
    (n_samples,), sum to one."""
    p = design.n_features
    parts = []
    for block in _blocks(design, weights, np.arange(p)):
        block[np.abs(block) < level - ROUNDING] = 0.0  # complete linkage joins no such pair
        parts.append(sparse.csr_array(block))
    graph = sparse.csr_array(sparse.vstack(parts))
    _, component = connected_components(graph, directed=False)
    return _numbered(_split(graph, component.astype(np.intp), level))


def partners_of(design: Design, weights: Array, features: Index) -> Iterator[Array]:
    """The correlations of each of some features with all, one after the other, (n_features,)."""
    for block in _blocks(design, weights, features):
        yield from block


def _split(graph: sparse.csr_array, component: Index, level: float) -> Index:
    """Clusters within each connected component, which complete linkage never joins."""
    cluster, taken = np.empty(component.size, np.intp), 0
    order = np.argsort(component, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(component[order])) + 1):
        labels = np.zeros(members.size, np.intp)
        if members.size > 1:
            near = np.abs(graph[members][:, members].toarray())
            distances = 1.0 - np.minimum(near, 1.0)
            np.fill_diagonal(distances, 0.0)
            tree = linkage(squareform((distances + distances.T) / 2.0, checks=False), "complete")
            found = fcluster(tree, 1.0 - level + ROUNDING, "distance")
            labels = found.astype(np.intp) - 1
        cluster[members] = taken + labels
        taken += int(labels.max()) + 1
    return cluster


def _numbered(cluster: Index) -> Index:
    """The same clusters, numbered in the order of their first features."""
    _, first, inverse = np.unique(cluster, return_index=True, return_inverse=True)
    place = np.empty(first.size, np.intp)
    place[np.argsort(first)] = np.arange(first.size)
    return place[inverse]


def _blocks(design: Design, weights: Array, features: Index) -> Iterator[Array]:
    """Correlations of some features with all, some rows at a time; zero for constant features."""
    centre, scale = moments(design, weights, constant=np.inf)
    for start in range(0, features.size, BLOCK):
        index = features[start : start + BLOCK]
        columns = (design.dense_columns(index) - centre[index]) / scale[index]
        # columns sum to zero with these weights, so that the other side needs no centring
        products = design.adjoint(weights[:, None] * columns) / scale[:, None]
        yield np.clip(np.ascontiguousarray(products.T), -1.0, 1.0)


def units_of(
    template: MarginEstimator, design: Design, shares: Array, level: float | None
) -> tuple[Index, Index]:
    """The unit of each feature, -1 if it does not compete, and its cluster from correlation
    ``level``; ``shares``, (n_samples,), sum to one. ValueError: nothing competes. Warns of constant
    features."""
    p = design.n_features
    _, scale = moments(design, shares, constant=np.inf)
    constant = ~np.isfinite(scale)
    if constant.all():
        raise ValueError("all features are constant: there is nothing to select")
    if constant.any():
        first, count = int(np.argmax(constant)), int(constant.sum())
        warnings.warn(
            f"{count} feature{'s are' if count > 1 else ' is'} constant, the first one column "
            f"{first} (counted from 0): never selected, and not counted in the bounds",
            UserWarning,
            stacklevel=users_level(),
        )
    factors = checked_factors(getattr(template, "penalty_factor", None), p)
    competes = ~constant if factors is None else ~constant & (factors > 0)
    if not competes.any():
        raise ValueError("penalty_factor is 0 for all features: there is nothing to select")
    clusters = np.arange(p) if level is None else correlated(design, shares, float(level))
    units = np.full(p, -1, np.intp)
    units[competes] = np.unique(clusters[competes], return_inverse=True)[1]
    return units, clusters
