"""The features of a model in words."""

from __future__ import annotations

from typing import Any

__all__ = ["in_words", "top_features"]

TOP = 5  # that a line has room for


def top_features(model: Any) -> str:
    """The largest coefficients of a linear model on one line; empty for others, and without any."""
    from proxmargin.files.models.model import leading_features

    several = len(model.classes_) > 2
    words = in_words(leading_features(model, TOP) or [], several)
    return f"{words}; positive speaks for {model.classes_[1]}" if words and not several else words


def in_words(rows: list[dict[str, Any]], with_class: bool) -> str:
    """Features with their coefficients, per standard deviation where that is known.

    Parameters
    ----------
    rows : list of dict
        As `describe_model` has them.
    with_class : bool
        Whether to say for which class each speaks: with two classes it is the second.
    """
    return ", ".join(f"{row['feature']} ({_value(row, with_class)})" for row in rows)


def _value(row: dict[str, Any], with_class: bool) -> str:
    scaled = row["coefficient_per_sd"]
    number = f"{row['coefficient']:+.3g}" if scaled is None else f"{scaled:+.3g} per sd"
    return f"{row['class']} {number}" if with_class else number
