"""The minimax models with a ridge: means and covariances of the classes, in few coordinates.

A model depends on the data through two means and two covariances, of rank n at most: MM-FDA is a
scalar secular equation after one decomposition, MM-MPM a few Newton steps. They win over the
first-order methods whenever a covariance in the short side fits into memory.
Theory: Lanckriet et al. (2002), Ito et al. (2017).
"""
