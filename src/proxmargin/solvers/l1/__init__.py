"""Proximal Newton methods for smooth losses with l1 norms.

`newton` is the one to read first: a quadratic model on a working set of features, its minimum by
coordinate descent and Newton steps on the support, an exact line search. `class_newton` does so for
losses that couple the classes, `pass_newton` with one reading of the data an iteration.
`chord_newton` is one strength of the method of regularisation paths: its algorithm is in
`proxmargin.compiled.paths` (begin with `driver`), its arrays are in `chord_engine`.
"""
