"""Estimators in notebooks: scikit-learn's diagram, and below it what is known of the fit."""

from __future__ import annotations

from functools import cache

from proxmargin.models.fitting.bases import BaseEstimator
from proxmargin.runtime.brief import html_line
from proxmargin.runtime.types import Estimator


class ToldEstimator(BaseEstimator):
    """Base of the estimators that say more in a notebook than their diagram does."""

    def _told(self) -> str:
        """HTML below the diagram."""
        raise NotImplementedError

    def _repr_html_inner(self) -> str:
        return f"{super()._repr_html_inner()}{self._told()}"

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:  # not where the user has asked scikit-learn for text
            bundle["text/html"] += self._told()
        return bundle


class CertifiedEstimator(ToldEstimator):
    """Base of the estimators that publish a certificate."""

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn inspects the signature at each call, for a tenth of the time of a small fit
        return super()._get_param_names()

    def _told(self) -> str:
        return certificate_line(self)


def certificate_line(estimator: Estimator) -> str:
    """One line of HTML: what is proved of a fit, or that there is none yet.

    Empty for a fitted combination of estimators that publish no certificates.
    """
    found = getattr(estimator, "certificate_", None)
    if found is not None:
        return str(found._repr_html_())
    if hasattr(estimator, "classes_"):
        return ""
    tol = getattr(estimator, "tol", None)
    shown = f"{tol:g}" if isinstance(tol, int | float) else repr(tol)
    asked = "" if tol is None else f" (relative duality gap of at most tol={shown})"
    return html_line(f"not fitted: fit() publishes a certificate{asked}")
