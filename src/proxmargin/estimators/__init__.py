"""The scikit-learn estimators: each defines a loss and a penalty."""
