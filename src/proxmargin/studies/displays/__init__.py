"""Pictures in scikit-learn's manner, with matplotlib, which is imported when one is drawn."""
