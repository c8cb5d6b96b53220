"""Methods for the binary hinge with an elastic net.

The proximal method of multipliers replaces the kink by smooth problems, solved by semismooth Newton
steps with curvature in the few samples at the kink (`hinge_newton`). It is the fastest on all data
measured; the iterated SVMs and ADMM are published alternatives, available by name.
Theory: Rockafellar (1976), Liu et al. (2013), Ye, Chen and Xie (2011).
"""
