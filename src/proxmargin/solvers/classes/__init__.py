"""Second-order methods for losses that couple the classes.

The multiclass hinge is smoothed around multipliers (`multiplier_newton`), any loss and penalty with
semismooth proxes by an augmented Lagrangian of the dual (`ssnal`); both solve their systems in the
smallest space that holds them. The first wins on elastic nets, the second takes group norms and
budgets. Theory: Rockafellar (1976), Li, Sun and Toh (2018).
"""
