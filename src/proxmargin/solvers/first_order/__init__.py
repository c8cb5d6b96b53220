"""First-order methods: a gradient or a prox of the loss and a prox of the penalty a step.

They take almost every problem; a step costs one or two passes over the data, and memory is
O(n + p). The methods of the papers are here under their own names. Second-order methods win if
their systems fit into memory; these win otherwise, and at loose tolerances.
Theory: Beck and Teboulle (2009), Ito et al. (2017), Condat (2013), Yang and Zou (2013).
"""
