"""Model files: a fitted estimator as one JSON document and plain arrays, and back."""
