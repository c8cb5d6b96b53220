"""Augmented Lagrangian methods with semismooth Newton steps.

For the hinge of two classes or more with an elastic net, the kink is smoothed around multipliers
(`method`), and Newton steps are in the active coefficients. For any loss and penalty with
semismooth proximal maps they are in the dual point (`ssnal`): group norms, budgets. Linear systems
are solved in the smallest space. Theory: Rockafellar (1976), Li, Sun and Toh (2018).
"""
