"""What scores over the same splits say about models."""

from proxmargin.comparing.evidence.basis import MetricRange, basis_of
from proxmargin.comparing.evidence.evidence import COLUMNS, LIKELY, Evidence
from proxmargin.comparing.evidence.pairs import ModelPairs

__all__ = ["COLUMNS", "LIKELY", "Evidence", "MetricRange", "ModelPairs", "basis_of"]
