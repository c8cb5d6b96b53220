"""Between which values a parameter makes sense on given data.

The admissible range of nu and kappa, the strength from which all coefficients are zero, the least
loss a budget may ask for and the price that meets one.
"""
