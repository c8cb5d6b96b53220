"""Comparing models on a data set by nested cross-validation.

The package is not called ``compare`` because importing it would then replace the function
`proxmargin.compare` by a module.
"""
