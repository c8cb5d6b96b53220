"""Augmented Lagrangian methods with semismooth Newton steps.

For the hinge of two classes or more with an elastic net, the kink is smoothed around multipliers
(`multiplier_newton`, with the state in `multipliers` and the two hinges in `binary` and `classes`),
and Newton steps are in the active coefficients. For any loss of several classes and any
penalty with semismooth proximal maps, norms of groups too, they are in the dual point (`ssnal`, in
the file of that name). Both have the inner loop of `multipliers`.

Linear systems are solved in the smallest space: `hinge_system` for two classes,
`class_system` over `block` for more, `dual_newton_systems` for `ssnal`.
Theory: Rockafellar (1976), Li, Sun and Toh (2018).
"""
