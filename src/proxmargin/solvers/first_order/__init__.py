"""First-order methods: a gradient or a prox of the loss and a prox of the penalty a step.

They take almost every problem, a step costs one pass over the data or two, and memory is O(n + p):
the methods of the papers live here under their own names. Second-order methods win wherever their
systems fit into memory; these win where no system does, and at loose tolerances.
Theory: Beck and Teboulle (2009), Ito et al. (2017), Condat (2013), Yang and Zou (2013).
"""
