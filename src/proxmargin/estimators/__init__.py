"""Estimators in scikit-learn's manner: a class is a recipe."""
