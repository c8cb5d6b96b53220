"""Data files: tables, matrices and archives, read into features and labels."""
