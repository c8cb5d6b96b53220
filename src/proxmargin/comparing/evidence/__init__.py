"""What scores over the same splits say about models."""

from proxmargin.comparing.evidence.basis import Basis, basis_of
from proxmargin.comparing.evidence.evidence import COLUMNS, LIKELY, Evidence
from proxmargin.comparing.evidence.pairs import Pairs

__all__ = ["COLUMNS", "LIKELY", "Basis", "Evidence", "Pairs", "basis_of"]
