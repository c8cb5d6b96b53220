"""The classifiers, a file for those of one form."""
