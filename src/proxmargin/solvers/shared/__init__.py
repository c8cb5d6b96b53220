"""What several families of solvers use."""
