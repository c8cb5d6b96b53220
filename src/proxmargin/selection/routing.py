"""Metadata of a search: what goes to the splitter and what to the scorer."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)

from proxmargin.estimators.base import MarginEstimator
from proxmargin.estimators.frames import users_level
from proxmargin.selection.scoring import SklearnScorer, judge_of
from proxmargin.selection.splitting import routed_splitter

__all__ = ["RoutesMetadata"]


class RoutesMetadata:
    """Routing of the arguments of `fit`, with scikit-learn's metadata routing or without."""

    cv: Any
    scoring: Any

    @abstractmethod
    def _template(self) -> MarginEstimator:
        """The plain classifier."""

    def get_metadata_routing(self) -> MetadataRouter:
        """Which of the arguments of `fit` go to the splitter (groups) and which to the scorer."""
        router = MetadataRouter(owner=self).add_self_request(self)
        fit = MethodMapping
        router.add(
            splitter=routed_splitter(self.cv),
            method_mapping=fit().add(caller="fit", callee="split"),
        )
        judge = judge_of(self.scoring, self._template())
        if isinstance(judge, SklearnScorer):
            mapping = fit().add(caller="fit", callee="score")
            router.add(scorer=judge.scorer, method_mapping=mapping)
        return router

    def _routed(self, sample_weight: Any, params: Mapping[str, Any]) -> Any:
        unrouted = {name: value for name, value in params.items() if name != "groups"}
        _raise_for_params(unrouted, self, "fit")
        if _routing_enabled():
            weights = {} if sample_weight is None else {"sample_weight": sample_weight}
            routed = process_routing(self, "fit", **weights, **params)
            return Bunch(splitter=routed["splitter"], scorer=routed.get("scorer", Bunch(score={})))
        weights = {}
        if sample_weight is not None and self._scores_with_weights():
            weights = {"sample_weight": sample_weight}
        return Bunch(splitter=Bunch(split=dict(params)), scorer=Bunch(score=weights))

    def _scores_with_weights(self) -> bool:
        """Whether the scoring takes weights; says so if not, as scikit-learn's searches do."""
        judge = judge_of(self.scoring, self._template())
        takes = not isinstance(judge, SklearnScorer) or judge.takes_weights
        if not takes:
            warnings.warn(
                f"scoring={self.scoring!r} takes no sample_weight: held-out rows are judged as if "
                "all weighed the same; give a callable with an argument sample_weight",
                stacklevel=users_level(),
            )
        return takes
