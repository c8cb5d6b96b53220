"""Losses of one margin ``y z``: the scalar functions, and their weighted sums over samples."""
