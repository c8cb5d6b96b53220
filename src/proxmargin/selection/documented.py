"""The parts of the docstrings of cross-validated classifiers, each written once."""

from __future__ import annotations

from typing import TypeVar

from proxmargin.selection.base import CrossValidated

__all__ = ["documented"]

Class = TypeVar("Class", bound=type[CrossValidated])

_OF_ALPHA = """alphas : int or (n_alphas,), default 100
        How many, as `proxmargin.margin_path` takes them for all rows; or the values. The same for
        all folds.
    """
_OF_C = """Cs : int or (n_Cs,), default 20
        How many, as `proxmargin.margin_path` takes them for all rows (with a nonlinear kernel from
        0.01 to 1000); or the values. The same for all folds.
    """
_RATIOS = """l1_ratios : sequence of float in [0, 1], default (1.0,)
    """
_PARAMETERS = """
    Parameters
    ----------
    {strengths}{ratios}eps : float in (0, 1], default 1e-3
        How far a count of strengths goes, as in `proxmargin.margin_path`.
    cv : int, splitter or iterable of splits, default 5
        A number means stratified folds, as everywhere in scikit-learn.
    scoring : str or callable, optional
        By default the mean loss of the model over the held-out rows, weighted as in the fit,
        negated.
        'neg_log_loss' and 'deviance' (its double) of logistic models are computed from the scores;
        any other scorer of scikit-learn's is asked for each model.
    selection : {{'best', '1se'}}
        The highest mean score, or the strongest penalty within one standard error of it.
    n_jobs : int, optional
        Threads, over the folds; -1 for all cores. The result does not depend on it.
    keep_scores : bool, default False
        Keep the scores of held-out rows in ``oof_scores_``.
    refit : bool, default True
        Fit all rows with what was chosen; without it there is nothing to predict with.
    others
        Those of `{plain}`. Callbacks see the fits to all rows. ``warm_start`` does nothing: each
        fit of a path starts from the one before.

    Attributes
    ----------
    {name}_ : float
    {ratio}{name}s_ : (n_l1_ratios, n_{name}s)
        From the strongest penalty.
    cv_scores_ : (n_l1_ratios, n_{name}s, n_folds)
    cv_results_ : pandas.DataFrame
        A row for each l1_ratio and {name}.
    best_index_ : int
        The chosen row of ``cv_results_``.
    path_ : Path
        Of all rows, for the chosen l1_ratio; of linear models.
    oof_scores_ : (n_l1_ratios, n_{name}s, n_samples) if binary, else with n_classes as well
        With ``keep_scores``: scores of each row where it was held out.
    best_estimator_ : {plain}
        Of all rows. This classifier has all its attributes (``coef_``, ``intercept_``,
        ``certificate_``, ``n_features_in_``, ``feature_names_in_`` and others), and
        `proxmargin.save_model` stores it.
"""


def documented(cls: Class) -> Class:
    """Add parameters and attributes, before the examples if there are any."""
    name = cls.strength.name
    mixes = "l1_ratio" in cls.plain._get_param_names()
    text = _PARAMETERS.format(
        strengths=_OF_ALPHA if name == "alpha" else _OF_C,
        ratios=_RATIOS if mixes else "",
        plain=cls.plain.__name__,
        name=name,
        ratio="l1_ratio_ : float\n    " if mixes else "",
    )
    summary, mark, examples = (cls.__doc__ or "").partition("\n    Examples\n")
    cls.__doc__ = summary.rstrip() + "\n" + text + (mark + examples if mark else "    ")
    return cls
