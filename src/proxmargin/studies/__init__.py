"""Comparisons of models, their statistics, pages and pictures."""
