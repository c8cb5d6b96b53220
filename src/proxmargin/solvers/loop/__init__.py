"""The loop that runs any solver on any problem, and the interface of solvers."""
