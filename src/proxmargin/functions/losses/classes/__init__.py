"""Losses of all scores of a sample: multiclass hinges, and the multinomial logistic loss."""
