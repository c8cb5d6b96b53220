"""The minimax models with a ridge: means and covariances of the classes, in few coordinates.

A model depends on the data through two means and two covariances, of rank n at most. A few Newton
steps beat the first-order methods if a covariance over the samples or features, whichever are
fewer, fits into memory. Theory: Lanckriet et al. (2002), Ito et al. (2017).
"""
