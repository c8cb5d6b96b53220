"""The minimax models with a ridge: means and covariances of the classes, in few coordinates.

A model depends on the data through two means and two covariances, of rank n at most: MM-FDA is a
scalar secular equation after one eigendecomposition, MM-MPM takes a few Newton steps. They beat the
first-order methods if a covariance over the samples or features, whichever are fewer, fits into
memory.
Theory: Lanckriet et al. (2002), Ito et al. (2017).
"""
