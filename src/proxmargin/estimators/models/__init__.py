"""The classifiers, a file for each family."""
