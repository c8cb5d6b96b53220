"""The published methods under their own names, for who looks for a paper.

| solver | method | paper | file |
|---|---|---|---|
| b-pgh, m-pgh | proximal gradient, Algorithms 1 and 3 | Xu et al. (2015) | proximal_gradient |
| b-pgh-2, m-pgh-2 | their two-stage forms, section 2.5 | Xu et al. (2015) | proximal_gradient |
| gcd | generalised coordinate descent | Yang and Zou (2013) | proximal_gradient |
| apg, fapg, fapg-guaranteed, fapg-star | accelerated steps | Ito et al. (2017) | accelerated |
| fbpd | primal-dual splitting, Algorithms 1 and 2 | Chierchia et al. (2015) | primal_dual |
| fbpd-linear | a budget by linear constraints | their rival, section 4.2 | primal_dual |
| fista, forward-backward | proximal gradient for (19) and (20) | their rivals | accelerated |
| isvm1, isvm2, isvm3 | iterated SVMs, Algorithms 1 to 3 | Liu et al. (2013) | iterated_svm |
| admm | alternating directions | Ye, Chen and Xie (2011) | iterated_svm |

They take almost every problem; a step costs one or two passes over the data, and memory is
O(n + p). ``solver='auto'`` takes b-pgh, fapg, fapg-star and fbpd where the systems of second-order
methods would not fit into memory, fapg-star in small balls too, and the others never.
"""
