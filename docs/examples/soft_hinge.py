"""A model of one's own: a class with parameters, its loss and its penalty, in one file.

The loss is the hinge smoothed by entropy, a rescaled logistic loss; the penalty is an elastic net.
`fit`, standardisation, weights, several classes, certificates,
predictions and the tests of scikit-learn come from the base class. Run this file to fit it.
"""

from __future__ import annotations

from dataclasses import dataclass

from proxmargin.losses import Logistic, MarginLoss, Rescaled
from proxmargin.models.classifiers.elastic_net import ElasticNetEstimator


@dataclass(eq=False, repr=False)
class SoftHinge(ElasticNetEstimator):
    """The hinge smoothed by entropy, ``width log(1 + exp((1 - t) / width))``, with an elastic net.

    Parameters
    ----------
    alpha, l1_ratio, standardize, class_weight, tol, ...
        As in `proxmargin.HuberizedSVC`.
    width : float > 0
    """

    width: float = 0.2
    multi_class: str = "ovr"

    _joint_allowed = False
    _strengths = {"alpha": False, "width": True}

    def _margin_loss(self) -> MarginLoss:
        inverse = 1 / float(self.width)
        return Rescaled(Logistic(), height=float(self.width), slope=inverse, shift=-inverse)


if __name__ == "__main__":
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    model = SoftHinge(alpha=0.02, l1_ratio=0.9, width=0.1, standardize=True).fit(X, y)
    print(model.certificate_)
