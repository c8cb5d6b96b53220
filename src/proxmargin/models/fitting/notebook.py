"""Estimators in notebooks: scikit-learn's diagram, and below it the certificate of the fit."""

from __future__ import annotations

from html import escape
from typing import Any

from sklearn.base import BaseEstimator

from proxmargin.optimality.certificates.certificate import Certificate, CertificateList

# border of the line, readable on light and dark pages; the words say the same
MET = "#2e8b57"  # sea green: every tolerance was met
UNMET = "#d2691e"  # chocolate: one was not
UNFITTED = "#888888"  # grey: nothing is known yet
LINE = (
    '<div class="proxmargin-certificate" style="margin:0.4em 0;padding:0.1em 0.6em;'
    'border-left:3px solid {colour};font-family:monospace;font-size:0.9em">{text}</div>'
)


class CertifiedEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that publish a certificate."""

    def _repr_html_inner(self) -> str:
        return f"{super()._repr_html_inner()}{certificate_line(self)}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:  # not where the user has asked scikit-learn for text
            bundle["text/html"] += certificate_line(self)
        return bundle


def certificate_line(estimator: Any) -> str:
    """One line of HTML: what is proved of a fit, or that there is none yet.

    Empty for a fitted combination of estimators that publish no certificates.
    """
    found = getattr(estimator, "certificate_", None)
    if found is None:
        if hasattr(estimator, "classes_"):
            return ""
        tol = getattr(estimator, "tol", None)
        asked = "" if tol is None else f" (relative duality gap of at most tol={_shown(tol)})"
        return _line(UNFITTED, f"not fitted: fit() publishes a certificate{asked}")
    if found.converged:
        return _line(MET, f"certificate met: {_told(found)}")
    return _line(UNMET, f"certificate not met ({found.stop_reason}): {_told(found)}")


def _told(found: Certificate | CertificateList) -> str:
    several = isinstance(found, CertificateList)
    of = f", sum of {len(found)} problems" if isinstance(found, CertificateList) else ""
    return (
        f"objective {found.primal:.6g}{of}, within {found.gap:.2g} of the optimum "
        f"({'largest relative' if several else 'relative'} gap {found.relative_gap:.2g}); "
        f"solver {found.solver}, {found.n_iter} iterations, {found.seconds:.3g} s"
    )


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else repr(value)


def _line(colour: str, text: str) -> str:
    return LINE.format(colour=colour, text=escape(text))
