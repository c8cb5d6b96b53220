"""Newton methods for one column of scores and a smooth loss, the intercept eliminated exactly.

They differ in the quadratic model: a working set of features (`newton`), a Hessian that serves
several steps and, on paths, several strengths (`chord_newton`), a ridge (`ridge_newton`), a ball
(`ball_newton`). Each wins on its own penalty and shape of data; all need few passes, and none takes
a loss with kinks.
Theory: Lee, Sun and Saunders (2014), proximal Newton; Conn, Gould and Toint (2000), trust regions.
"""
