"""Second-order methods for losses that couple the classes.

The multiclass hinge is smoothed around multipliers (`multiplier_newton`); any loss and penalty with
semismooth proximal maps is solved by an augmented Lagrangian of the dual (`ssnal`). Both solve
their linear systems in the smallest space. The first wins on elastic nets, the second takes group
norms and budgets. Theory: Rockafellar (1976), Li, Sun and Toh (2018).
"""
