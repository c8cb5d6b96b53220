"""Tests of differences between models, on tables of scores: data sets or folds by models.

Over data sets, which are independent: signed ranks for two models, Friedman's test for more, then
Holm's or Nemenyi's comparisons (Demsar 2006, "Statistical comparisons of classifiers over multiple
data sets"; Xu et al. 2015, 3.1.3). Over the folds of one data set, which share samples: t-tests
whose variance is corrected for that.
"""

from proxmargin.studies.stats.ranks import (
    ControlComparison,
    Friedman,
    Nemenyi,
    SignedRanks,
    against_control,
    friedman,
    holm,
    nemenyi,
    wilcoxon_signed_ranks,
)
from proxmargin.studies.stats.scores import (
    BayesianTTest,
    ResampledInterval,
    ResampledTTest,
    bayesian_correlated_ttest,
    corrected_resampled_interval,
    corrected_resampled_ttest,
)

__all__ = [
    "BayesianTTest",
    "ControlComparison",
    "Friedman",
    "Nemenyi",
    "ResampledInterval",
    "ResampledTTest",
    "SignedRanks",
    "against_control",
    "bayesian_correlated_ttest",
    "corrected_resampled_interval",
    "corrected_resampled_ttest",
    "friedman",
    "holm",
    "nemenyi",
    "wilcoxon_signed_ranks",
]
