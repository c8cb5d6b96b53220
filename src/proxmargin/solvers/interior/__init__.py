"""A primal-dual interior point method: one loop, and a model for each kind of program.

Losses that are linear or quadratic on an interval, with a ridge, an elastic net or coefficients in
an l_p ball: some tens of linear systems over the samples or features, whichever are fewer.

`box_program` is the loss with its linear systems, `boxes` the predictor-corrector step, and loss
and penalty together; the penalties are in `boxes` (ridge, net) and `ball`. `active_set` is a method
of its own for few samples. Theory: Mehrotra (1992), Nesterov (2012).
"""
