"""A primal-dual interior point method: one loop, and a model for each kind of program.

Losses that are linear or quadratic on an interval, with a ridge, an elastic net or coefficients in
an l_p ball: some tens of linear systems over the samples or features, whichever are fewer. With a
ridge a crossover ends at the exact vertex.
Theory: Mehrotra (1992), Gondzio (1996), Nesterov (2012).
"""
