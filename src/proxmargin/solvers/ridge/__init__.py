"""Newton methods for smooth losses with a ridge or in a ball (`newton`).

Step, line search and progress are those of `proxmargin.solvers.shared.margin_model`; the linear
systems of the ridge, over the features, over the samples or by conjugate gradients, are in
`ridge_forms`. Theory of the ball: More and Sorensen (1983).
"""
