"""scikit-learn's own tests, run with classifiers of this library in the place of its own."""
