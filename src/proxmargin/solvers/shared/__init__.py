"""What several families of solvers use.

`margin_model` is Newton's method for a sum of margin losses without its penalty (for ridges and
balls), `working_set` restricts any solver to some features, `hinge_terms` states the hinge for its
solvers, `numerical` has roots and linear systems, and `batched_labels` solves
one problem for many labels at once.
"""
