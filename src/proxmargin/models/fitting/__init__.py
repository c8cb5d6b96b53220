"""What all classifiers share: from parameters and data to published attributes."""
