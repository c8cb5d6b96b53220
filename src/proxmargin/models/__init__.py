"""The classifiers, and what fits, chooses and judges them."""
