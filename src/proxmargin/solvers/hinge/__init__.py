"""Methods for the binary hinge with an elastic net.

The proximal method of multipliers turns the kink into smooth problems that semismooth Newton steps
solve on the few samples at the kink (`hinge_newton`); the iterated SVMs and the alternating
directions are the published alternatives. The first wins on all data measured; the others are
there by name. Theory: Rockafellar (1976), Liu et al. (2013), Ye, Chen and Xie (2011).
"""
