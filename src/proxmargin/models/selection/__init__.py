"""Models chosen from the data: cross-validation along paths."""
