"""What several families of solvers use.

`margin_model` states the hinge for its solvers, and has Newton's method for sums of other margin
losses without their penalty (for ridges and balls), `working_set` restricts any solver to some
features, `numerical` has roots and linear systems, and `batched_labels` solves one problem for many
labels at once.
"""
