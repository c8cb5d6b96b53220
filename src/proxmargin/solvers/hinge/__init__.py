"""Methods for the binary hinge with an elastic net.

The proximal method of multipliers replaces the kink by smooth problems, solved by semismooth Newton
steps with curvature in the few samples at the kink (`hinge_newton`). It is the fastest on all data
measured. Theory: Rockafellar (1976).
"""
