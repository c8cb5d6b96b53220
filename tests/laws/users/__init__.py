"""Laws that users take for granted: of every public estimator, in all that they do with it."""
